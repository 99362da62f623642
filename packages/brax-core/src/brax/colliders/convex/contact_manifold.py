"""Where two flat faces overlap: up to four of the corners of the overlap."""

from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from brax.components import Vec3

_CORNER_SLACK = 1e-5
"""Share of the sizes by which a corner may lie outside, so that equal faces keep all of theirs."""


Point = TypeVar("Point", bound=Any)
"""Coordinates x and y in a plane and the height z over it, maybe with more; a `Vec3` is one."""


class Parallelogram(NamedTuple):
    """A parallelogram over a rectangle: x and y along the rectangle's sides, z its height."""

    middle: Vec3
    e: Vec3
    """From the centre to the midpoint of an edge; `f` goes to the next edge."""
    f: Vec3


def clip_parallelogram(
    face: Parallelogram, half_x: jax.Array, half_y: jax.Array
) -> tuple[Vec3, jax.Array]:
    """Corners of the overlap of a parallelogram and the rectangle |x| <= half_x, |y| <= half_y.

    Args:
        face: the parallelogram.
        half_x: half-size of the rectangle along x, as `half_y` is along y.

    Returns:
        Twelve candidates (12, pairs, batch), where each edge of the parallelogram enters and
        leaves the rectangle and the rectangle's corners, and which of them are corners.
    """
    wide_x, wide_y = half_x * (1 + _CORNER_SLACK), half_y * (1 + _CORNER_SLACK)
    entering, crosses = _cut_edges(face, wide_x, wide_y)
    corners, inside = _covered_corners(face, half_x, half_y)
    points = Vec3(*(jnp.concatenate(parts) for parts in zip(*entering, corners, strict=True)))
    valid = jnp.concatenate([crosses, crosses, inside])
    x, y = jnp.clip(points.x, -half_x, half_x), jnp.clip(points.y, -half_y, half_y)
    return Vec3(x, y, points.z), valid


def _cut_edges(
    face: Parallelogram, half_x: jax.Array, half_y: jax.Array
) -> tuple[tuple[Vec3, Vec3], jax.Array]:
    """Where the four edges enter and leave, and whether they meet the rectangle at all.

    Source: Liang, Barsky (1984), A New Concept and Method for Line Clipping.
    """
    m, e, f = face
    starts = [m - e - f, m + e - f, m + e + f, m - e + f]
    start = Vec3(*(jnp.stack(c) for c in zip(*starts, strict=True)))
    steps = [e * 2.0, f * 2.0, e * -2.0, f * -2.0]
    step = Vec3(*(jnp.stack(c) for c in zip(*steps, strict=True)))
    enter, leave = jnp.zeros_like(start.x), jnp.ones_like(start.x)
    crosses = enter < leave
    for s, d, half in ((start.x, step.x, half_x), (start.y, step.y, half_y)):
        moves = jnp.abs(d) > 1e-9 * half
        slope = jnp.where(moves, d, 1.0)
        first, second = (-half - s) / slope, (half - s) / slope
        enter = jnp.where(moves, jnp.maximum(enter, jnp.minimum(first, second)), enter)
        leave = jnp.where(moves, jnp.minimum(leave, jnp.maximum(first, second)), leave)
        crosses &= moves | (jnp.abs(s) <= half)
    return (start + step * enter, start + step * leave), crosses & (enter <= leave)


def _covered_corners(
    face: Parallelogram, half_x: jax.Array, half_y: jax.Array
) -> tuple[Vec3, jax.Array]:
    """The rectangle's corners at the parallelogram's height, and which of them it covers."""
    m, e, f = face
    x, y = (
        jnp.stack([sx * half_x for sx in (-1, 1, 1, -1)]),
        jnp.stack([sy * half_y for sy in (-1, -1, 1, 1)]),
    )
    area = e.x * f.y - e.y * f.x
    flat = jnp.abs(area) < 1e-9 * half_x * half_y
    scale = 1.0 / jnp.where(flat, 1.0, area)
    dx, dy = x - m.x, y - m.y
    along_e, along_f = (dx * f.y - dy * f.x) * scale, (dy * e.x - dx * e.y) * scale
    inside = ~flat & (jnp.maximum(jnp.abs(along_e), jnp.abs(along_f)) <= 1 + _CORNER_SLACK)
    return Vec3(x, y, m.z + e.z * along_e + f.z * along_f), inside


def reduce_manifold(points: Point, valid: jax.Array, far: jax.Array) -> list[Point]:
    """The deepest of some points, the one farthest from it, and the widest to either side.

    Args:
        points: candidates (n, pairs, batch), a named tuple with x, y and z.
        valid: which of them count.
        far: the height that a point gets that is not there; also the scale of lengths.

    Returns:
        Four points (pairs, batch).
    """

    def best(score: jax.Array) -> tuple[Point, jax.Array]:
        score = jnp.where(valid, score, -jnp.inf)
        places = jnp.arange(score.shape[0]).reshape((-1,) + (1,) * (score.ndim - 1))
        chosen = places == jnp.argmax(score, axis=0)
        point = jax.tree.map(lambda c: jnp.sum(jnp.where(chosen, c, 0.0), axis=0), points)
        return point, jnp.max(score, axis=0)

    first, _ = best(-points.z)
    dx, dy = points.x - first.x, points.y - first.y
    second, length2 = best(dx * dx + dy * dy)
    side = (second.x - first.x) * dy - (second.y - first.y) * dx
    third, left = best(side)
    fourth, right = best(-side)
    least = 1e-6 * far * far
    there = (jnp.any(valid, axis=0), length2 > least, left > least, right > least)
    return [
        p._replace(z=jnp.where(t, p.z, far))
        for p, t in zip((first, second, third, fourth), there, strict=True)
    ]
