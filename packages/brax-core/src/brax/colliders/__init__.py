"""Collision detection: from the geoms of a model to contact points.

Geometry types are in `shapes`, and colliders of two types in `primitive` (closed forms), `convex`
(support points) and `distance_field`. `dispatch` chooses the collider of two types that have no
closed form, `broad_phase` the candidate pairs of models with many, and `narrow_phase` tests the
pairs. The pipelines, `brax.contact` and `brax.sensors` import the two phases, `brax.builder` the
dispatch, and plugins only what is exported here. Start reading at `interface`, then `narrow_phase`.
"""

from brax.colliders.interface import Collider, CollisionGroup, GeometryType, Shape, Touch

DEFAULT_GEOMETRY = "sphere"
"""The geometry type of a model that names none, as in MJCF."""

__all__ = ["DEFAULT_GEOMETRY", "Collider", "CollisionGroup", "GeometryType", "Shape", "Touch"]
