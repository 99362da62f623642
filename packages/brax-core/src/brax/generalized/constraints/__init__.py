"""Soft constraints of the generalized pipeline, as MuJoCo defines them.

This folder holds one module a kind of constraint (`contact`, `joint_limit`, `scalar`,
`body_equality`, `coupling`, `adhesion`), their force laws and friction cones (`constraint_laws`),
and the layout of the constraint rows (`constraint_layout`, `coupling_layout`). Only
`brax.generalized` imports it, apart from `inverse_weights`, which `brax.builder` calls once a
model. Start reading at `evaluation`, which evaluates all constraints at a state.
"""
