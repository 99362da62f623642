"""The contact manifold of two flat faces: clipping a face, and reducing the result to four points.

The reference face is a rectangle |x| <= half_x, |y| <= half_y in its own plane, and the incident
face a parallelogram over it, seen along the rectangle's normal z. Arrays are batch last, with the
candidate points on the first axis: (candidates, pairs, batch).
"""

import functools
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from brax.components import Vec3
from brax.kernels.gather import picked

_VERTEX_SLACK = 1e-5
"""Relative slack by which a vertex may lie outside, so that equal faces keep all of their vertices
in single precision."""

Point = TypeVar("Point", bound=Any)
"""A named tuple with coordinates x and y in a plane and the height z over it, such as a `Vec3`."""


class Parallelogram(NamedTuple):
    """The incident face, in the frame of the reference face: z is the height over its plane [m]."""

    middle: Vec3
    """The centre."""
    e: Vec3
    """Vector from the centre to the midpoint of an edge."""
    f: Vec3
    """Vector from the centre to the midpoint of the next edge."""


def clip_parallelogram(
    face: Parallelogram, half_x: jax.Array, half_y: jax.Array
) -> tuple[Vec3, jax.Array]:
    """Clip the incident face to the reference face.

    The overlap of two convex polygons has its vertices where an edge of one enters or leaves the
    other, and at the vertices of each that the other covers.

    Args:
        face: the incident face.
        half_x: half-size of the reference face along x.
        half_y: half-size of the reference face along y.

    Returns:
        Twelve candidates (12, pairs, batch), and a mask of those that are vertices of the overlap.
        The first eight are where the four edges of the incident face enter and leave. An edge that
        is not cut enters and leaves at its ends, so these are the covered incident vertices too.
        The last four are the reference vertices.
    """
    # All candidates are always computed. Sutherland and Hodgman's clipping (Ericson 2005, section
    # 8.3.4) makes a list of vertices whose length depends on the data.
    wide_x, wide_y = half_x * (1 + _VERTEX_SLACK), half_y * (1 + _VERTEX_SLACK)
    entering, crosses = _clip_edges(face, wide_x, wide_y)
    vertices, inside = _covered_vertices(face, half_x, half_y)
    points = Vec3(*(jnp.concatenate(parts) for parts in zip(*entering, vertices, strict=True)))
    valid = jnp.concatenate([crosses, crosses, inside])
    # The slack lets vertices through that lie outside by rounding; they return onto the face.
    x, y = jnp.clip(points.x, -half_x, half_x), jnp.clip(points.y, -half_y, half_y)
    return Vec3(x, y, points.z), valid


def _clip_edges(
    face: Parallelogram, half_x: jax.Array, half_y: jax.Array
) -> tuple[tuple[Vec3, Vec3], jax.Array]:
    """Return where the incident face's edges enter and leave the rectangle, and which meet it.

    Source: Liang, Barsky (1984), A New Concept and Method for Line Clipping.
    """
    m, e, f = face
    starts = [m - e - f, m + e - f, m + e + f, m - e + f]
    start = Vec3(*(jnp.stack(c) for c in zip(*starts, strict=True)))
    steps = [e * 2.0, f * 2.0, e * -2.0, f * -2.0]
    step = Vec3(*(jnp.stack(c) for c in zip(*steps, strict=True)))
    enter, leave = jnp.zeros_like(start.x), jnp.ones_like(start.x)
    crosses = enter < leave
    # Each pair of opposite sides is a slab. An edge is inside from the last slab that it enters to
    # the first one that it leaves.
    for s, d, half in ((start.x, step.x, half_x), (start.y, step.y, half_y)):
        moves = jnp.abs(d) > 1e-9 * half
        slope = jnp.where(moves, d, 1.0)
        first, second = (-half - s) / slope, (half - s) / slope
        enter = jnp.where(moves, jnp.maximum(enter, jnp.minimum(first, second)), enter)
        leave = jnp.where(moves, jnp.minimum(leave, jnp.maximum(first, second)), leave)
        # An edge along the slab never crosses its sides; it is within the slab or beside it.
        crosses &= moves | (jnp.abs(s) <= half)
    return (start + step * enter, start + step * leave), crosses & (enter <= leave)


def _covered_vertices(
    face: Parallelogram, half_x: jax.Array, half_y: jax.Array
) -> tuple[Vec3, jax.Array]:
    """Return the reference vertices at the incident face's height, and which of them it covers."""
    m, e, f = face
    x, y = (
        jnp.stack([sx * half_x for sx in (-1, 1, 1, -1)]),
        jnp.stack([sy * half_y for sy in (-1, -1, 1, 1)]),
    )
    # The vertex is m + along_e e + along_f f in the plane, solved by Cramer's rule. It is covered
    # where both coefficients are at most one in size. A face on edge covers no vertex.
    area = e.x * f.y - e.y * f.x
    flat = jnp.abs(area) < 1e-9 * half_x * half_y
    scale = 1.0 / jnp.where(flat, 1.0, area)
    dx, dy = x - m.x, y - m.y
    along_e, along_f = (dx * f.y - dy * f.x) * scale, (dy * e.x - dx * e.y) * scale
    inside = ~flat & (jnp.maximum(jnp.abs(along_e), jnp.abs(along_f)) <= 1 + _VERTEX_SLACK)
    return Vec3(x, y, m.z + e.z * along_e + f.z * along_f), inside


def reduce_manifold(
    points: Point, valid: jax.Array, far: jax.Array, touching: jax.Array | None = None
) -> list[Point]:
    """Reduce candidate points to a contact manifold of four.

    They are the deepest point, the point farthest from it, and the points farthest to either side
    of the line between these two. So the manifold has the greatest depth and is nearly the
    quadrilateral of largest area, which keeps a resting body from tipping.

    Args:
        points: candidates (n, pairs, batch), a named tuple with x, y and z.
        valid: mask of the candidates that count, (n, pairs, batch).
        far: height of the points that the manifold lacks, (pairs, batch). It is also the scale of
            lengths: points closer than a thousandth of it are one point.
        touching: mask of the candidates that come before all others, (n, pairs, batch): those
            that penetrate. Where a face is tilted, its farthest points carry nothing.

    Returns:
        Four points (pairs, batch); those that the manifold lacks are at the first one, with the
        height `far`. A candidate whose height is NaN counts, so that the result shows it.
    """
    valid |= jnp.isnan(points.z)

    # Squared length, and area, below which a further point coincides with those before it: else
    # rounding would make two points of one.
    least = 1e-6 * far * far
    # More than any squared length or area: candidates lie within `far` of each other.
    lead = 0.0 if touching is None else jnp.where(touching, 4 * far * far, 0.0)

    def best(score: jax.Array) -> tuple[Point, jax.Array]:
        """Return the valid point of highest score, and the score."""
        score = jnp.where(valid, score, -jnp.inf)
        ranked = score if touching is None else jnp.where(score > least, score + lead, score)
        found = picked((points, score), jnp.argmax(ranked, axis=0)[None])
        return jax.tree.map(lambda c: c[0], found)

    first, _ = best(-points.z)
    dx, dy = points.x - first.x, points.y - first.y
    second, length2 = best(dx * dx + dy * dy)
    # Twice the signed area of the triangle of the first two points and each candidate.
    side = (second.x - first.x) * dy - (second.y - first.y) * dx
    third, left = best(side)
    fourth, right = best(-side)
    further = zip((second, third, fourth), (length2, left, right), strict=True)
    # The place of a point that the manifold lacks is the first one's: any other could be any
    # candidate's, by rounding.
    return [first._replace(z=jnp.where(jnp.any(valid, axis=0), first.z, far))] + [
        jax.tree.map(functools.partial(jnp.where, score > least), p, first._replace(z=far))
        for p, score in further
    ]
