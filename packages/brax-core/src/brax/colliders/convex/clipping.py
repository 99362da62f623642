"""Where two sides of convex shapes, that need not be flat or wide, lie over each other."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.colliders.convex.contact_manifold import reduce_manifold
from brax.components import Vec3

_SIDE_SLACK = 1e-5
"""Share of the size by which a point may lie outside of a side, so that equal ones keep theirs."""

_MAX_GAP_EXCESS = 0.005
"""Share of the size by which the gap may be wider than the least for a spot to count."""

_MIN_SIDE_COSINE = 0.1
"""Least cosine between a side's normal and the contact's, so that heights stay finite."""


class ClipPoint(NamedTuple):
    """A place on the contact plane, and what is there."""

    x: jax.Array
    y: jax.Array
    z: jax.Array
    """Gap between the two sides, negative where they overlap [m]."""
    height: jax.Array
    """Of the first side over the plane [m]."""


def clip_faces(
    first: Sequence[Vec3], second: Sequence[Vec3], exact: ClipPoint, size: jax.Array
) -> list[ClipPoint]:
    """Up to four spots of the overlap of two sides, seen along z.

    Args:
        first: corners of the first side, around it: x and y in the plane, z the height.
        second: of the second side.
        exact: the spot where the gap is known to be least; it stands for all if the sides, which
            only approximate round shapes, miss it.
        size: of the two shapes [m].

    Returns:
        Four spots; the gap is wider by `size` at those that are not there.
    """
    one, other = _side(first), _side(second)
    (points, meets), (more, meet_too) = _cut(one, other, size), _cut(other, one, size)
    x, y = jnp.concatenate([points.x, more.x]), jnp.concatenate([points.y, more.y])
    below, above = _height(one, x, y, size), _height(other, x, y, size)
    there = jnp.concatenate([meets, meet_too])
    wider = jnp.maximum(above - below - exact.z, 0.0)
    missed = (jnp.min(jnp.where(there, wider, jnp.inf), axis=0) > _SIDE_SLACK * size)[None]
    begin = exact._replace(z=jnp.zeros_like(exact.z))
    found = zip(begin, (x, y, wider, below), strict=True)
    every = ClipPoint(*(jnp.concatenate([e[None], s]) for e, s in found))
    # Ten sizes, so that what lies apart by less than the slack is one spot.
    nearest, *others = reduce_manifold(every, jnp.concatenate([missed, there]), 10.0 * size)
    chosen = [nearest, *(_if_near(spot, nearest, size) for spot in others)]
    return [spot._replace(z=spot.z + exact.z) for spot in chosen]


def _if_near(spot: ClipPoint, first: ClipPoint, size: jax.Array) -> ClipPoint:
    """The spot, or the first one's place far away where the gap is much wider there."""
    near = spot.z - first.z < _MAX_GAP_EXCESS * size
    return ClipPoint(
        jnp.where(near, spot.x, first.x),
        jnp.where(near, spot.y, first.y),
        jnp.where(near, spot.z, size),
        jnp.where(near, spot.height, first.height),
    )


def _side(corners: Sequence[Vec3]) -> Vec3:
    return Vec3(*(jnp.stack(jnp.broadcast_arrays(*c)) for c in zip(*corners, strict=True)))


def _diagonals(side: Vec3) -> tuple[Vec3, Vec3]:
    n = side.x.shape[0]
    p = [Vec3(*(c[i] for c in side)) for i in (0, n // 4, n // 2, 3 * n // 4)]
    return p[2] - p[0], p[3] - p[1]


def _bounds(side: Vec3, size: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Half-planes a x + b y + c >= 0 whose common part is the side, a little widened.

    One for each edge, and four around it along x and y, for a line has two ends, and a point four.
    """
    p, q = _diagonals(side)
    turn = jnp.where(p.x * q.y - p.y * q.x < 0, -1.0, 1.0)
    ahead = Vec3(*(jnp.roll(c, -1, axis=0) for c in side)) - side
    a, b = _unit(-ahead.y * turn, ahead.x * turn, size)
    c = -(a * side.x + b * side.y)
    zero, one = jnp.zeros_like(p.x), jnp.ones_like(p.x)
    ends = [end(x, axis=0) for x in side[:2] for end in (jnp.min, jnp.max)]
    a = jnp.concatenate([a, jnp.stack([one, -one, zero, zero])])
    b = jnp.concatenate([b, jnp.stack([zero, zero, one, -one])])
    c = jnp.concatenate([c, jnp.stack([-ends[0], ends[1], -ends[2], ends[3]])])
    return a, b, c + _SIDE_SLACK * size


def _unit(x: jax.Array, y: jax.Array, size: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The unit vector along another; zero if that is but rounding."""
    length2 = x * x + y * y
    positive = length2 > (_SIDE_SLACK * size) ** 2
    scale = jnp.where(positive, jax.lax.rsqrt(jnp.where(positive, length2, 1.0)), 0.0)
    return x * scale, y * scale


def _cut(side: Vec3, by: Vec3, size: jax.Array) -> tuple[Vec3, jax.Array]:
    """Where each edge of one side enters and leaves the other, and whether it meets it at all.

    Source: Cyrus, Beck (1978), Generalized two- and three-dimensional clipping.
    """
    a, b, c = (x[None] for x in _bounds(by, size))
    ahead = Vec3(*(jnp.roll(x, -1, axis=0) for x in side)) - side
    inside = a * side.x[:, None] + b * side.y[:, None] + c
    slope = a * ahead.x[:, None] + b * ahead.y[:, None]
    crosses = jnp.abs(slope) > 1e-9 * size
    at = -inside / jnp.where(crosses, slope, 1.0)
    enter = jnp.max(jnp.where(crosses & (slope > 0), at, 0.0), axis=1)
    leave = jnp.min(jnp.where(crosses & (slope < 0), at, 1.0), axis=1)
    enter, leave = jnp.maximum(enter, 0.0), jnp.minimum(leave, 1.0)
    meets = (enter <= leave) & jnp.all(crosses | (inside >= 0), axis=1)
    points = [side + ahead * t for t in (enter, leave)]
    return (
        Vec3(*(jnp.concatenate(x) for x in zip(*points, strict=True))),
        jnp.concatenate([meets, meets]),
    )


def _height(side: Vec3, x: jax.Array, y: jax.Array, size: jax.Array) -> jax.Array:
    """Of a side's plane at some places; of a line's plane that leans only along the line."""
    p, q = _diagonals(side)
    area = p.cross(q)
    longer = p.dot(p) >= q.dot(q)
    line = Vec3(*(jnp.where(longer, i, j) for i, j in zip(p, q, strict=True)))
    length2 = line.dot(line)
    long = length2 > (_SIDE_SLACK * size) ** 2
    tilt = jnp.where(long, line.z, 0.0) / jnp.where(long, length2, 1.0)
    leaning = Vec3(-line.x * tilt, -line.y * tilt, 1.0 - line.z * tilt)
    wide = area.dot(area) > _SIDE_SLACK**2 * length2 * jnp.maximum(length2, size * size)
    normal = Vec3(*(jnp.where(wide, i, j) for i, j in zip(area, leaning, strict=True)))
    upright = normal.dot(normal) < _SIDE_SLACK**2  # a line along z leans nowhere
    normal = normal._replace(z=jnp.where(~wide & upright, 1.0, normal.z))
    least = _MIN_SIDE_COSINE * jnp.sqrt(normal.dot(normal))
    level = jnp.where(normal.z < 0, jnp.minimum(normal.z, -least), jnp.maximum(normal.z, least))
    middle = [jnp.mean(c, axis=0) for c in side]
    return middle[2] - (normal.x * (x - middle[0]) + normal.y * (y - middle[1])) / level
