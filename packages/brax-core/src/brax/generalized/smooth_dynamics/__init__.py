"""Unconstrained dynamics of the generalized pipeline.

This folder holds the frames, mass matrix and bias force at a state (`smooth`), the sparsity of the
mass matrix (`structure`), applied forces (`forces`) and the variational step. `brax.generalized`,
`brax.dynamics` and `brax.sensors` import it. Start reading at `smooth`.
"""
