"""The spring pipeline: maximal coordinates, joints as stiff springs solved for the whole tree.

`pipeline` holds its `init` and `step`, `velocity_update` a step's velocity update, and `bodies` the
state inside a step. It builds on `brax.maximal`. Nothing else in the engine imports it. Start
reading at `pipeline`, then `velocity_update`.
"""
