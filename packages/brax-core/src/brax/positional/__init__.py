"""The positional pipeline: extended position-based dynamics, with joints solved over the tree.

`pipeline` has `init` and `step`, `step` is one physics step, and `position_update` sweeps over
contacts and limits. `contacts` has the contact constraints: the friction cone is enforced in its
`change_within_cone`, and torsional and rolling friction in `torque_change_within_bounds`. `limits`
has joint limits and dry friction. `docs/positional.md` describes the method.

The folder builds on `brax.maximal`, and nothing else in the engine imports it. Start reading at
`pipeline`, then at `step`.
"""
