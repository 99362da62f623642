"""Maximal coordinates: what the pipelines `spring` and `positional` share.

The unknowns are the frame and velocity of every link. `links` and `coordinates` hold the links and
how they follow from joint coordinates, `joint_errors` how far joints are from closed, `contacts`
the links of contacts and how impulses act on them, `limits` the rows of limits and dry friction,
`equality` and `equality_errors` hard equality constraints, and `tendons`, `actuation` and
`rotation` the rest of a step. Joints are solved over the trees by `brax.tree_solve`. Only
`brax.spring` and `brax.positional` import this folder. Start reading at `links`, then
`brax.tree_solve`.
"""
