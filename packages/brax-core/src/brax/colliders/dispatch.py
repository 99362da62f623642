"""The collider of two shapes that none was registered for."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.colliders.convex.convex_convex import ConvexConvex
from brax.colliders.convex.convex_height_field import HeightFieldConvex
from brax.colliders.distance_field.signed_distance import SignedDistance
from brax.colliders.interface import Collider, GeometryType, Shape
from brax.colliders.shapes.plane import PLANE
from brax.components import Quat, Vec3

DERIVED = (ConvexConvex, HeightFieldConvex, SignedDistance)
"""The colliders that are not registered, but follow from what two geometry types say."""


class GeomShape(NamedTuple):
    """A geom that is to meet another."""

    kind: GeometryType
    size: np.ndarray
    """Size parameters (3,)."""
    points: np.ndarray
    """Those of the geom (n, 3)."""
    grid: tuple[int, int]
    """Rows and columns of its heights."""
    margin: float
    """Distance at which its contacts begin to act [m]."""


def collider_of_geoms(first: GeomShape, second: GeomShape) -> Collider | None:
    """A collider for two geoms in either order; None if their types do not say enough."""
    for field, other in ((first, second), (second, first)):
        if field.kind.has_heights and other.kind.corners:
            return HeightFieldConvex(other.kind, field.grid, _window(field, other))
    return collider_of_types(first.kind, second.kind)


def collider_of_types(first: GeometryType, second: GeometryType) -> Collider | None:
    """A collider for two geometry types in either order; None if they do not say enough."""
    one, other = sorted((first, second), key=lambda kind: (kind.corners, kind.name))
    if one.corners:
        return ConvexConvex(one, other)
    for surface, met in ((one, other), (other, one)):
        if surface.has_distance and (met.corners or met.has_distance or met is PLANE):
            return SignedDistance(surface, met)
    return None


def is_derived(collider: Collider) -> bool:
    """Return whether a collider of `DERIVED` is one that its geometry types lead to."""
    if isinstance(collider, HeightFieldConvex):
        cells = [n - 1 for n in collider.grid]
        fits = all(0 < w <= n for w, n in zip(collider.window, cells, strict=True))
        return fits and collider.kind.corners > 0
    if isinstance(collider, ConvexConvex):
        return collider_of_types(collider.first, collider.second) == collider
    return isinstance(collider, SignedDistance) and (
        collider_of_types(collider.surface, collider.other) == collider
    )


def _window(field: GeomShape, other: GeomShape) -> tuple[int, int]:
    """How many rows and columns of a field's cells the other shape can be over, however it lies."""
    reach = 2 * (_radius(other) + field.margin + other.margin)
    cells = np.array(field.grid) - 1
    widths = 2 * field.size[1::-1] / cells
    rows, columns = np.minimum(np.ceil(reach / widths) + 1, cells).astype(int).tolist()
    return rows, columns


def _radius(solid: GeomShape) -> float:
    """Of a ball around the frame's origin that holds a convex shape: by many of its points."""
    if len(solid.points):
        return float(np.linalg.norm(solid.points, axis=1).max())
    n = 500
    up = np.linspace(-1, 1, n)
    angle = np.arange(n) * np.pi * (3 - np.sqrt(5))
    around = np.stack([np.cos(angle), np.sin(angle)]) * np.sqrt(1 - up * up)
    with jax.ensure_compile_time_eval():
        x, y, z = (jnp.asarray(c)[:, None, None] for c in (*around, up))
        zero, one = jnp.zeros((1, 1)), jnp.ones((1, 1))
        size = Vec3(*(jnp.full((1, 1), s) for s in solid.size))
        shape = Shape(Vec3(zero, zero, zero), Quat(one, zero, zero, zero), size)
        found = solid.kind.support(shape, Vec3(x, y, z))
        return float(jnp.max(jnp.sqrt(found.dot(found))))
