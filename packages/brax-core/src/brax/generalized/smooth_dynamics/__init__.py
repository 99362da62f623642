"""Unconstrained dynamics of the generalized pipeline: what Featherstone's algorithms compute.

This folder holds the frames, the mass matrix and the bias force at a state (`smooth`), the sparsity
of the mass matrix (`structure`, which has `MAX_UNROLLED_DOFS`), the applied forces (`forces`), the
variational step (`variational_step`) and, for long trees, accelerations without a mass matrix
(`articulated`). `brax.generalized`, `brax.dynamics` and `brax.sensors` import it. It knows no
constraint. Start reading at `smooth`.
"""
