"""Shapes and colliders, one a file, behind one interface."""

from brax.colliders.interface import Collider, CollisionGroup, GeometryType, Shape, Touch

__all__ = ["Collider", "CollisionGroup", "GeometryType", "Shape", "Touch"]
