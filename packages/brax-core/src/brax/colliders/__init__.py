"""Shapes and colliders, one a file, behind one interface."""

from brax.colliders.interface import Collider, CollisionGroup, GeometryType, Shape, Touch

DEFAULT_GEOMETRY = "sphere"
"""The geometry type of a model that names none, as in MJCF."""

__all__ = ["DEFAULT_GEOMETRY", "Collider", "CollisionGroup", "GeometryType", "Shape", "Touch"]
