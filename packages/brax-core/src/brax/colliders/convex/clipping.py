"""Clipping of two facing faces of convex shapes, each a polygon, a line or a point.

Both faces are seen along the contact normal z. The contact plane has the coordinates x and y. The
general case of `contact_manifold`: a face may have any number of vertices, and they may coincide.
Arrays are batch last, with vertices on the first axis: (vertices, pairs, batch).
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.colliders.convex.contact_manifold import reduce_manifold
from brax.components import Vec3

_FACE_SLACK = 1e-5
"""Share of the size by which a vertex may lie outside of a face: equal faces keep all of theirs."""

_MAX_GAP_EXCESS = 0.005
"""Share of the size by which the gap at a contact point may exceed the least gap."""

_MIN_FACE_COSINE = 0.1
"""Least cosine between the normal of a face and the contact normal, so that heights stay finite."""


class ClipPoint(NamedTuple):
    """A point of the contact plane, with the gap and the height of the faces there."""

    x: jax.Array
    """First coordinate in the contact plane [m]."""
    y: jax.Array
    """Second coordinate in the contact plane [m]."""
    z: jax.Array
    """Gap between the two faces, negative where they overlap [m]."""
    height: jax.Array
    """Height of the first face over the plane [m]."""


def clip_faces(
    first: Sequence[Vec3], second: Sequence[Vec3], exact: ClipPoint, size: jax.Array
) -> list[ClipPoint]:
    """Return up to four contact points in the overlap of two faces, seen along z.

    Args:
        first: vertices of the first face in order around it, with x and y in the contact plane and
            the height z over it.
        second: vertices of the second face.
        exact: the point where the gap is known to be least. It is the only point if the faces,
            which only approximate round shapes, miss it.
        size: size of the two shapes together [m].

    Returns:
        Four points. The gap is wider by `size` at those that the manifold lacks.
    """
    # As in `contact_manifold.clip_parallelogram`, the vertices of the overlap are where the edges
    # of each face enter and leave the other. Both directions are needed: an edge that lies wholly
    # inside enters and leaves at its ends, which are the covered vertices.
    one, other = _stack_vertices(first), _stack_vertices(second)
    (points, meets), (more, meet_too) = _clip_edges(one, other, size), _clip_edges(other, one, size)
    x, y = jnp.concatenate([points.x, more.x]), jnp.concatenate([points.y, more.y])
    below, above = _height(one, x, y, size), _height(other, x, y, size)
    there = jnp.concatenate([meets, meet_too])
    # Gaps relative to the exact one, which the faces' planes reproduce only up to rounding.
    wider = jnp.maximum(above - below - exact.z, 0.0)
    missed = (jnp.min(jnp.where(there, wider, jnp.inf), axis=0) > _FACE_SLACK * size)[None]
    begin = exact._replace(z=jnp.zeros_like(exact.z))
    found = zip(begin, (x, y, wider, below), strict=True)
    every = ClipPoint(*(jnp.concatenate([e[None], s]) for e, s in found))
    # Ten sizes make the distance up to which `reduce_manifold` takes two points for one a hundredth
    # of the size.
    nearest, *others = reduce_manifold(
        every, jnp.concatenate([missed, there]), 10.0 * size, every.z < -exact.z
    )
    chosen = [nearest, *(_if_near(point, nearest, size) for point in others)]
    return [point._replace(z=point.z + exact.z) for point in chosen]


def _if_near(point: ClipPoint, first: ClipPoint, size: jax.Array) -> ClipPoint:
    """Keep a point whose gap is near the least; else put it at the first point, far apart."""
    # A point that is far apart still has a position, and the first point's is a harmless one.
    near = point.z - first.z < _MAX_GAP_EXCESS * size
    return ClipPoint(
        jnp.where(near, point.x, first.x),
        jnp.where(near, point.y, first.y),
        jnp.where(near, point.z, size),
        jnp.where(near, point.height, first.height),
    )


def _stack_vertices(vertices: Sequence[Vec3]) -> Vec3:
    """Stack the vertices of a face on the first axis."""
    return Vec3(*(jnp.stack(jnp.broadcast_arrays(*c)) for c in zip(*vertices, strict=True)))


def _diagonals(face: Vec3) -> tuple[Vec3, Vec3]:
    """Return two vectors across a face, between vertices that lie a quarter of the way apart."""
    # With fewer than four vertices some of these coincide, so that a line has one diagonal or two
    # equal ones, and a point none.
    n = face.x.shape[0]
    p = [Vec3(*(c[i] for c in face)) for i in (0, n // 4, n // 2, 3 * n // 4)]
    return p[2] - p[0], p[3] - p[1]


def _half_planes(face: Vec3, size: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return half-planes a x + b y + c >= 0 whose intersection is a face, a little widened.

    There is one for each edge, and four more of the bounding rectangle along x and y. The edges
    alone do not bound a line at its ends, nor a point anywhere.
    """
    p, q = _diagonals(face)
    # The vertices run either way around, as seen along z; the inward normals follow that.
    turn = jnp.where(p.x * q.y - p.y * q.x < 0, -1.0, 1.0)
    ahead = Vec3(*(jnp.roll(c, -1, axis=0) for c in face)) - face
    a, b = _unit(-ahead.y * turn, ahead.x * turn, size)
    c = -(a * face.x + b * face.y)
    # Bounds across the ends of one diagonal, instead of the rectangle, would not bound a point: the
    # tip of a mesh on a face would touch it at all of the face's vertices.
    zero, one = jnp.zeros_like(p.x), jnp.ones_like(p.x)
    ends = [end(x, axis=0) for x in face[:2] for end in (jnp.min, jnp.max)]
    a = jnp.concatenate([a, jnp.stack([one, -one, zero, zero])])
    b = jnp.concatenate([b, jnp.stack([zero, zero, one, -one])])
    c = jnp.concatenate([c, jnp.stack([-ends[0], ends[1], -ends[2], ends[3]])])
    return a, b, c + _FACE_SLACK * size


def _unit(x: jax.Array, y: jax.Array, size: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the unit vector along another; zero if that is shorter than rounding."""
    # An edge between coinciding vertices has no direction. Zero makes its half-plane the whole
    # plane, so that it bounds nothing.
    length2 = x * x + y * y
    positive = length2 > (_FACE_SLACK * size) ** 2
    scale = jnp.where(positive, jax.lax.rsqrt(jnp.where(positive, length2, 1.0)), 0.0)
    return x * scale, y * scale


def _clip_edges(face: Vec3, by: Vec3, size: jax.Array) -> tuple[Vec3, jax.Array]:
    """Return where each edge of one face enters and leaves another, and a mask of those that meet.

    Source: Cyrus, Beck (1978), Generalized two- and three-dimensional clipping.
    """
    # Axes (edges, half-planes, pairs, batch): each edge against each half-plane.
    a, b, c = (x[None] for x in _half_planes(by, size))
    ahead = Vec3(*(jnp.roll(x, -1, axis=0) for x in face)) - face
    inside = a * face.x[:, None] + b * face.y[:, None] + c
    slope = a * ahead.x[:, None] + b * ahead.y[:, None]
    crosses = jnp.abs(slope) > 1e-9 * size
    at = -inside / jnp.where(crosses, slope, 1.0)
    # An edge is inside from the last half-plane that it enters to the first one that it leaves, in
    # shares of its length. One along a border is inside of that half-plane as a whole, or not.
    enter = jnp.max(jnp.where(crosses & (slope > 0), at, 0.0), axis=1)
    leave = jnp.min(jnp.where(crosses & (slope < 0), at, 1.0), axis=1)
    enter, leave = jnp.maximum(enter, 0.0), jnp.minimum(leave, 1.0)
    meets = (enter <= leave) & jnp.all(crosses | (inside >= 0), axis=1)
    points = [face + ahead * t for t in (enter, leave)]
    return (
        Vec3(*(jnp.concatenate(x) for x in zip(*points, strict=True))),
        jnp.concatenate([meets, meets]),
    )


def _height(face: Vec3, x: jax.Array, y: jax.Array, size: jax.Array) -> jax.Array:
    """Return the height of a face's plane at points of the contact plane.

    The plane of a line leans only along the line, and that of a point is level.
    """
    p, q = _diagonals(face)
    area = p.cross(q)
    longer = p.dot(p) >= q.dot(q)
    line = Vec3(*(jnp.where(longer, i, j) for i, j in zip(p, q, strict=True)))
    length2 = line.dot(line)
    long = length2 > (_FACE_SLACK * size) ** 2
    tilt = jnp.where(long, line.z, 0.0) / jnp.where(long, length2, 1.0)
    leaning = Vec3(-line.x * tilt, -line.y * tilt, 1.0 - line.z * tilt)
    # A face is a plane only if it is wide compared to its length and to the rounding of the size.
    wide = area.dot(area) > _FACE_SLACK**2 * length2 * jnp.maximum(length2, size * size)
    normal = Vec3(*(jnp.where(wide, i, j) for i, j in zip(area, leaning, strict=True)))
    # A line along z has no plane of this kind: its normal vanishes, and a level one stands in.
    # Upright capsules on height fields are this case.
    upright = normal.dot(normal) < _FACE_SLACK**2
    normal = normal._replace(z=jnp.where(~wide & upright, 1.0, normal.z))
    # The height is a division by the normal's z, which is bounded from below with its sign kept.
    least = _MIN_FACE_COSINE * jnp.sqrt(normal.dot(normal))
    level = jnp.where(normal.z < 0, jnp.minimum(normal.z, -least), jnp.maximum(normal.z, least))
    middle = [jnp.mean(c, axis=0) for c in face]
    return middle[2] - (normal.x * (x - middle[0]) + normal.y * (y - middle[1])) / level
