"""Colliders of convex shapes that are known by their support points.

This folder holds the search for the axis of least penetration (`support_search`, a GJK iteration),
the clipping of two faces to a contact manifold (`clipping`, `contact_manifold`), and the colliders
built from them, `convex_convex` and `convex_height_field`. `contact_derivatives` gives a contact
the derivatives of two surfaces that roll on each other. Of the geometry types, only the height
field's collider names any. `brax.colliders.dispatch` and the other colliders import this folder.
Start reading at `convex_convex`.
"""
