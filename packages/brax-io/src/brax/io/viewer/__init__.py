"""The data of the viewer page: the scene that it shows, and the motion.

`rollout` and `live_source` make the trajectories that the commands show. `brax.io.html`, `live`,
`image` and the commands import these modules. The page's own code is in `packages/brax-io/viewer`,
and is built into `bundle.js` in this folder. Start reading at `scene`.
"""
