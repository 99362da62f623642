"""The generalized pipeline: joint coordinates and MuJoCo's soft constraints.

`pipeline` has `init` and `step`; `stepper` runs the stages of one step; `newton` is the constraint
solver. Three folders hold what they call: `smooth_dynamics` (mass matrix, bias and applied forces),
`constraints` (rows, Jacobians and force laws) and `linalg` (factorization of the mass matrix and
the constraint Hessian).

Two questions are asked often. The friction cone is enforced in `constraints/constraint_laws.py`:
`PyramidalCone.response` and `EllipticCone.response` project the contact force onto the cone.
Whether a factorization is unrolled or blocked is decided by `MAX_UNROLLED_DOFS` in
`smooth_dynamics/structure.py`. All such thresholds stand in `docs/performance-model.md`.

`brax.dynamics`, `brax.sensors` and `brax.builder` import parts of this folder. Start reading at
`pipeline`, then `stepper`.
"""
