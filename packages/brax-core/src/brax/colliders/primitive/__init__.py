"""Colliders in closed form, one pair of geometry types a file.

Each module holds the collider of the two types in its name, and is registered by it in
`brax._plugin`. `height_field_sphere` has the closed forms of spheres and capsules on triangles,
which `convex.convex_height_field` uses. Nothing outside `brax.colliders` imports this folder.
Start reading at `sphere_sphere`, then `box_box`.
"""
