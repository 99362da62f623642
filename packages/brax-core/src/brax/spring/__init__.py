"""The spring pipeline: impulses in maximal coordinates.

The impulses of all joints of a tree are found at once, by elimination from the tips to the root.
Limits and contacts are solved by sweeps. `docs/physics.md` describes the method.

`pipeline` holds its `init` and `step`, `velocity_update` a step's velocity update, and `bodies` the
state inside a step. The friction cone is enforced in `contacts.project`. The folder builds on
`brax.maximal`. Nothing else in the engine imports it. Start reading at `pipeline`, then at
`velocity_update`.
"""
