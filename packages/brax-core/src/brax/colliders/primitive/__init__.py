"""Colliders in closed form, one pair of geometry types a file.

Each module holds the collider of the two types in its name, and its `collide` method returns the
contact points: `box_box.BoxBox.collide` those of two boxes. `brax._plugin` registers them by these
names. `height_field_sphere` has the closed forms of spheres and capsules on triangles, which
`convex.convex_height_field` uses. Only the registry and `brax.colliders` import this folder. Start
reading at `sphere_sphere`, then at `box_box`.
"""
