"""The positional pipeline: extended position-based dynamics, its joints solved over the tree.

`pipeline` is its `init` and `step`, `step` one physics step, and `position_update` the sweeps over
contacts and limits. It builds on `brax.maximal`. Nothing else in the engine imports it. Start
reading at `pipeline`, then `step`.
"""
