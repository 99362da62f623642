"""Dispatch: chooses a collider for two geoms whose types have no registered one."""

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
"""The colliders that are not registered but derived from the methods of two geometry types."""


class GeomShape(NamedTuple):
    """The properties of a geom that decide its collider; NumPy, on the host."""

    kind: GeometryType
    """Its type."""
    size: np.ndarray
    """Size parameters (3,)."""
    points: np.ndarray
    """Vertices of the geom (n, 3)."""
    grid: tuple[int, int]
    """Rows and columns of its height field."""
    margin: float
    """Contact margin: the distance from which its contacts are active [m]."""


def collider_of_geoms(first: GeomShape, second: GeomShape) -> Collider | None:
    """Return a collider for two geoms in either order; None if none can be derived."""
    # A height field's collider depends on the geoms and not only on their types: its window of
    # cells is as large as the other shape needs.
    for field, other in ((first, second), (second, first)):
        if field.kind.has_heights and other.kind.corners:
            return HeightFieldConvex(other.kind, field.grid, _window(field, other))
    return collider_of_types(first.kind, second.kind)


def collider_of_types(first: GeometryType, second: GeometryType) -> Collider | None:
    """Return a collider for two geometry types in either order; None if none can be derived."""
    # Both orders of two types must give the same collider, so that all such pairs are one call.
    one, other = sorted((first, second), key=lambda kind: (kind.corners, kind.name))
    # Sorted, the first type has a support function only if both do.
    if one.corners:
        return ConvexConvex(one, other)
    for surface, met in ((one, other), (other, one)):
        if surface.has_distance and (met.corners or met.has_distance or met is PLANE):
            return SignedDistance(surface, met)
    return None


def is_derived(collider: Collider) -> bool:
    """Return whether a collider is the one that `dispatch` derives from its geometry types."""
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
    """Return the rows and columns of a field's cells that another shape covers at most."""
    # The shape's diameter with its margins, in any orientation. One more cell, because the shape
    # may begin anywhere within its first cell.
    reach = 2 * (_radius(other) + field.margin + other.margin)
    cells = np.array(field.grid) - 1
    widths = 2 * field.size[1::-1] / cells
    rows, columns = np.minimum(np.ceil(reach / widths) + 1, cells).astype(int).tolist()
    return rows, columns


def _radius(solid: GeomShape) -> float:
    """Return the radius of a ball around the frame's origin that contains a convex shape [m]."""
    if len(solid.points):
        return float(np.linalg.norm(solid.points, axis=1).max())
    # A type without vertices has only its support function. It is sampled along 500 directions of
    # a Fibonacci lattice, whose spacing in longitude is the golden angle.
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
