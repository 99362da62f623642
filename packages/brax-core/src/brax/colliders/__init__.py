"""Collision detection: from the geoms of a model to contact points.

`narrow_phase` places the geoms of a model in the world and calls the collider of each pair. The
contact points themselves are found in the `collide` method of that collider, one pair of geometry
types a file: those of two boxes in `primitive/box_box.py`, of a capsule and a box in
`primitive/capsule_box.py`, of two meshes in `convex/convex_convex.py`. `primitive` holds closed
forms, `convex` a search over support points, and `distance_field` a descent on a signed distance.
Geometry types are in `shapes`.

The builder asks `dispatch` for a collider where two types have no closed form. In models with many
pairs, `broad_phase` first selects the candidate pairs. The pipelines, `brax.contact` and
`brax.sensors` import the two phases, `brax.builder` imports the dispatch, and plugins import only
what is exported here. Start reading at `interface`, then at `narrow_phase`.
"""

from brax.colliders.interface import Collider, CollisionGroup, GeometryType, Shape, Touch

DEFAULT_GEOMETRY = "sphere"
"""The geometry type of a model that names none, as in MJCF."""

__all__ = ["DEFAULT_GEOMETRY", "Collider", "CollisionGroup", "GeometryType", "Shape", "Touch"]
