"""The collider of two shapes that none was registered for."""

from brax.colliders.convex_convex import ConvexConvex
from brax.colliders.interface import Collider, GeometryType


def between(first: GeometryType, second: GeometryType) -> Collider | None:
    """A collider for two geometry types in either order; None if they do not say enough."""
    one, other = sorted((first, second), key=lambda kind: (kind.corners, kind.name))
    if one.corners:
        return ConvexConvex(one, other)
    return None
