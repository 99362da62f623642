"""Colliders of convex shapes that are known by their support points.

This folder holds the search for the axis of least penetration (`support_search`, a GJK iteration),
the clipping of two faces to a contact manifold (`clipping`, `contact_manifold`), and the colliders
made of them: `convex_convex` and `convex_height_field`. `contact_derivatives` gives a contact the
derivatives of two surfaces that roll on each other. It names no geometry type but round ones.
`brax.colliders.dispatch` and the other colliders import it. Start reading at `convex_convex`.
"""
