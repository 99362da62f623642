"""Maximal coordinates: what the pipelines `spring` and `positional` share.

The unknowns are the frame and velocity of every link. `links` and `coordinates` hold the links and
how they follow from joint coordinates, `joint_errors` how far joints are from closed, `tree_solve`
the elimination over the tree (an articulated-body algorithm for impulses), `contacts` the links of
contacts and how impulses act on them, `limits` the rows of limits and dry friction, `equality` and
`equality_errors` hard equality constraints, and `tendons`, `actuation` and `rotation` the rest of a
step. Only `brax.spring` and `brax.positional` import this folder. Start reading at `links`, then
`tree_solve`.
"""
