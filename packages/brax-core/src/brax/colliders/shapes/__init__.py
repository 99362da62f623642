"""Geometry types, one a file.

A geometry type gives its size parameters, its support points, nearest points or signed distance,
and its intersection with rays. This folder knows no collider and no pair of shapes, and builds only
on `brax.colliders.interface`, `rays` and `convex.contact_manifold`. The registry imports the types
by name, and each collider imports the few that it is about. Start reading at `sphere`.
"""
