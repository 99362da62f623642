"""Lower bounds of the gaps between the shapes of pairs, along some separating axes.

The axes are the line between the centres and the axes of shapes with flat faces, or a plane's
normal. Meshes and height fields count as their bounding boxes.

Source: Ericson (2005), Real-Time Collision Detection, section 5.2.1: separating axes.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.colliders.interface import GeometryType, Shape
from brax.colliders.narrow_phase import height_table, vertices
from brax.colliders.shapes.height_field import extreme
from brax.colliders.shapes.plane import PlaneGeometry
from brax.components import Mat3, Vec3, normalize, rows
from brax.kernels.gather import picked

FACE_CORNERS = 4
"""`GeometryType.corners` of shapes with flat faces."""


class _BoundingBox(NamedTuple):
    """Bounding boxes of vertices along the axes of the geoms' frames, (pairs, 1 or batch)."""

    middle: Vec3
    """The centre in the geom's frame [m]."""
    half: Vec3
    """The half-sizes [m]."""


class BoundedShapes(NamedTuple):
    """Shapes of one type, with the bounding boxes of meshes, (pairs, 1 or batch)."""

    kind: GeometryType
    """The type."""
    shape: Shape
    """The shapes in the world."""
    box: _BoundingBox | None
    """The bounding boxes of a type with flat faces or heights; else None. Bounding balls are no
    substitute: of a fly's 85 meshes two of seven pairs that touched were then not among the 64
    candidates."""

    @staticmethod
    def of(sys: System, geoms: Shape, which: np.ndarray) -> "BoundedShapes":
        """Select some geoms of all, which have one type."""
        kind, index = sys.geom_types[which[0]], which.tolist()
        shape: Shape = rows(geoms, index)
        box = None
        if kind.has_heights:
            box = _field_box(sys, int(which[0]))
        elif sys.geom_points[which[0]]:
            box = _vertex_boxes(sys, which)
        elif kind.corners >= FACE_CORNERS:
            box = _box_by_support(kind, shape)
        return BoundedShapes(kind, shape, box)

    def extent(self, direction: Vec3) -> jax.Array:
        """Return upper bounds of the support function of the shapes, about their origins [m]."""
        local = self.shape.rot.inv_rotate(direction)
        # Of vertices and heights the box is tried instead of all of them.
        if self.box is not None and (self.kind.least_points or self.kind.has_heights):
            # A box with half-sizes h around c has the support function c.n + h.|n|.
            along = Vec3(*(jnp.abs(c) for c in local))
            return self.box.middle.dot(local) + self.box.half.dot(along)
        ahead = Vec3(*(c[None] for c in local))
        return self.kind.support(self.shape, ahead).dot(ahead)[0]

    def world_box(self) -> tuple[Vec3, Vec3]:
        """Return the least and the most coordinates of the shapes, (pairs, 1 or batch) [m]."""
        zero, one = jnp.zeros_like(self.shape.pos.x), jnp.ones_like(self.shape.pos.x)
        axes = Vec3(one, zero, zero), Vec3(zero, one, zero), Vec3(zero, zero, one)
        least = Vec3(*(self.extent(-axis) for axis in axes))
        most = Vec3(*(self.extent(axis) for axis in axes))
        return self.shape.pos - least, self.shape.pos + most

    def picked(self, index: jax.Array) -> "BoundedShapes":
        """Gather some of the shapes, by indices that differ between environments."""
        return BoundedShapes(self.kind, *picked((self.shape, self.box), index))

    def centre(self) -> Vec3:
        """Return the centres of the bounding boxes, or the origins without such, world axes [m]."""
        if self.box is None:
            return self.shape.pos
        return self.shape.pos + self.shape.rot.rotate(self.box.middle)


def _vertex_boxes(sys: System, which: np.ndarray) -> _BoundingBox:
    """Return the bounding boxes of the vertices of given geoms."""
    # Each geom's box is found once, however many pairs it is in.
    geoms, place = np.unique(which, return_inverse=True)
    points = vertices(sys, geoms.tolist())
    assert points is not None
    most, least = (Vec3(*(end(c, axis=0) for c in points)) for end in (jnp.max, jnp.min))
    return rows(_BoundingBox((most + least) * 0.5, (most - least) * 0.5), place.tolist())


def _box_by_support(kind: GeometryType, shape: Shape) -> _BoundingBox:
    """Return the bounding boxes of shapes by their support points along their frames' axes."""
    zero, one = jnp.zeros_like(shape.size.x)[None], jnp.ones_like(shape.size.x)[None]
    axes = (Vec3(one, zero, zero), Vec3(zero, one, zero), Vec3(zero, zero, one))
    most = Vec3(*(kind.support(shape, n).dot(n)[0] for n in axes))
    least = Vec3(*(kind.support(shape, -n).dot(n)[0] for n in axes))
    return _BoundingBox((most + least) * 0.5, (most - least) * 0.5)


def _field_box(sys: System, field: int) -> _BoundingBox:
    """Return the bounding box of a height field, (1, 1 or batch)."""
    heights = height_table(sys, [field])
    assert heights is not None
    x, y, base = (sys.geom.size[field : field + 1, k] for k in range(3))
    # The field is solid from its lowest height down by the base.
    top, low = extreme(jnp.maximum, heights), extreme(jnp.minimum, heights) - base
    none = jnp.zeros_like(top)
    return _BoundingBox(
        Vec3(none, none, 0.5 * (top + low)), Vec3(x + none, y + none, 0.5 * (top - low))
    )


def least_gap(a: BoundedShapes, b: BoundedShapes) -> jax.Array:
    """Return a lower bound of the distance between two shapes, (pairs, batch)."""
    # Along any unit axis n, the distance is at least n.(b - a) - h_a(n) - h_b(-n).
    if isinstance(a.kind, PlaneGeometry):
        up = a.shape.axis_z
        return up.dot(b.shape.pos - a.shape.pos) - b.extent(-up)
    # The line between the centres is exact for balls; face normals help flat shapes. The products
    # of edges are left out, which only makes the bound lower in some poses.
    apart = b.shape.pos - a.shape.pos
    line, _ = normalize(b.centre() - a.centre())
    gaps = [line.dot(apart) - a.extent(line) - b.extent(-line)]
    if a.box is not None and b.box is not None:
        gaps += _gaps_of_boxes(a, b)
    elif a.box is not None:
        gaps += _gaps_of_faces(a, b)
    elif b.box is not None:
        gaps += _gaps_of_faces(b, a)
    return functools.reduce(jnp.maximum, gaps)


def _gaps_of_boxes(a: BoundedShapes, b: BoundedShapes) -> list[jax.Array]:
    """Return the gaps of two shapes' bounding boxes along the face normals of both."""
    assert a.box is not None and b.box is not None
    # Entry (i, j) of the rotation between the frames is the cosine of a's axis i and b's axis j.
    turn, middle = a.shape.rot.inv_mul(b.shape.rot), b.centre() - a.centre()
    at_a, at_b = (shape.rot.inv_rotate(middle) for shape in (a.shape, b.shape))
    cosines = Mat3(*(Vec3(*(jnp.abs(c) for c in column)) for column in turn.matrix()))
    sides = (
        (at_a, a.box.half, cosines.rotate(b.box.half)),
        (at_b, b.box.half, cosines.inv_rotate(a.box.half)),
    )
    # Along each axis of a box: its own half-size, and how far the other box reaches.
    return [jnp.abs(x) - h - reach for side in sides for x, h, reach in zip(*side, strict=True)]


def _gaps_of_faces(flat: BoundedShapes, other: BoundedShapes) -> list[jax.Array]:
    """Return the gaps of a shape's bounding box and another shape along the box's face normals."""
    assert flat.box is not None
    apart, out = other.shape.pos - flat.centre(), []
    for axis, half in zip(flat.shape.rot.matrix(), flat.box.half, strict=True):
        along = axis.dot(apart)
        out += [along - half - other.extent(-axis), -along - half - other.extent(axis)]
    return out
