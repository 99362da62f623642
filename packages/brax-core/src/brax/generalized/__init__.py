"""The generalized pipeline: minimal coordinates and MuJoCo's soft constraints.

`pipeline` is its `init` and `step`, `stepper` the moves of a step, and `newton` the constraint
solver. The folders hold the dynamics without constraints, the constraints, and the linear algebra.
`brax.dynamics`, `brax.sensors` and `brax.builder` import parts of it. Start reading at `pipeline`,
then `stepper`.
"""
