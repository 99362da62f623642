"""External forces on links: the user's wrenches, fluids, and gravity compensation.

`external` gathers them for a step; `fluid_box` is MuJoCo's inertia-box model of a fluid and
`fluid_ellipsoid` the ellipsoid model; `attached_frames` moves wrenches between frames. The
pipelines import it; it knows neither joints nor contacts. Start reading at `external`.
"""
