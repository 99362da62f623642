"""A capsule and a box."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.primitive.sphere_box import ball_and_box
from brax.components import Mat3, Vec3, total

_MAX_PARALLEL_SINE = 1e-6
"""Sine of the angle to a face up to which an axis counts as parallel to it."""

_CROSSING_SLACK = 1e-6
"""Share of a box's size by which a crossing of its face may miss the face by rounding."""


class Segment(NamedTuple):
    """A capsule's axis in a box's frame: the points `middle + t direction` with |t| <= half."""

    middle: Vec3
    direction: Vec3
    half: jax.Array
    enter: Vec3
    """For each axis of the box, the least t between its two faces; `half` if there is none."""
    leave: Vec3
    """And the largest; `-half` if there is none."""


def _segment(a: Shape, b: Shape, axes: Mat3) -> Segment:
    middle, direction = axes.inv_rotate(a.pos - b.pos), axes.inv_rotate(a.axis_z)
    half = a.size.y
    enter, leave = [], []
    for m, d, h in zip(middle, direction, b.size, strict=True):
        steep = jnp.abs(d) > _MAX_PARALLEL_SINE
        ends = [
            jnp.clip((side * h - m) / jnp.where(steep, d, 1.0), -half, half) for side in (-1, 1)
        ]
        always = jnp.where(jnp.abs(m) < h, half, -half)
        enter.append(jnp.where(steep, jnp.minimum(*ends), -always))
        leave.append(jnp.where(steep, jnp.maximum(*ends), always))
    return Segment(middle, direction, half, Vec3(*enter), Vec3(*leave))


def _nearest(line: Segment, size: Vec3) -> jax.Array:
    """Where a segment outside of the box is nearest to it.

    The squared distance is convex, and its slope is linear between the places where the segment
    crosses a face; so is found first between which two of them the slope changes its sign.
    """
    places = jnp.stack(
        jnp.broadcast_arrays(-line.half, line.half, *line.enter, *line.leave), axis=0
    )
    slopes = total(
        d * (p - jnp.clip(p, -h * (1 + _CROSSING_SLACK), h * (1 + _CROSSING_SLACK)))
        for m, d, h in zip(line.middle, line.direction, size, strict=True)
        for p in [m + places * d]
    )
    below = jnp.max(jnp.where(slopes <= 0, places, -line.half), axis=0)
    above = jnp.min(jnp.where(slopes >= 0, places, line.half), axis=0)
    falling = jnp.max(jnp.where(slopes < 0, slopes, -jnp.inf), axis=0)
    rising = jnp.min(jnp.where(slopes > 0, slopes, jnp.inf), axis=0)
    between = below < above
    fall, rise = (jnp.where(between & jnp.isfinite(s), s, 1.0) for s in (-falling, rising))
    return jnp.where(between, below + (above - below) * fall / (fall + rise), below)


def _deepest(line: Segment, size: Vec3) -> tuple[jax.Array, jax.Array]:
    """Where a segment is deepest in the box, and how far outside of the nearest face that is.

    The distance outside of the nearest face is the largest of six linear ones, so it is least
    where two of them are equal, or at an end.
    """
    m, d, half = line.middle, line.direction, line.half
    places = [-half, half, *(_ratio(-a, b) for a, b in zip(m, d, strict=True))]
    for i, j in ((0, 1), (1, 2), (2, 0)):
        for s, r in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            places.append(_ratio(size[i] - size[j] - s * m[i] + r * m[j], s * d[i] - r * d[j]))
    t = jnp.clip(jnp.stack(jnp.broadcast_arrays(*places)), -half, half)
    x, y, z = (jnp.abs(a + t * b) - h for a, b, h in zip(m, d, size, strict=True))
    out = jnp.maximum(jnp.maximum(x, y), z)
    index = jnp.arange(len(places)).reshape((-1,) + (1,) * half.ndim)
    chosen = index == jnp.argmin(out, axis=0)
    return jnp.sum(jnp.where(chosen, t, 0.0), axis=0), jnp.min(out, axis=0)


def _ratio(a: jax.Array, b: jax.Array) -> jax.Array:
    steep = jnp.abs(b) > _MAX_PARALLEL_SINE
    return jnp.where(steep, a, 0.0) / jnp.where(steep, b, 1.0)


def _over_face(line: Segment, size: Vec3, t: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The stretch of the segment over the face that is next to the point at `t`."""
    over = [
        jnp.abs(m + t * d) - h for m, d, h in zip(line.middle, line.direction, size, strict=True)
    ]
    most = jnp.maximum(jnp.maximum(over[0], over[1]), over[2])
    begin = [jnp.where(o < most, e, -line.half) for o, e in zip(over, line.enter, strict=True)]
    end = [jnp.where(o < most, e, line.half) for o, e in zip(over, line.leave, strict=True)]
    return (
        jnp.maximum(jnp.maximum(begin[0], begin[1]), begin[2]),
        jnp.minimum(jnp.minimum(end[0], end[1]), end[2]),
    )


def _two_places(line: Segment, size: Vec3) -> tuple[jax.Array, jax.Array]:
    """Where on its axis the capsule may touch the box.

    The first is the nearest or the deepest point. The second is the far end of the stretch over the
    same face, so that a capsule that lies on a face rests on two points; or else the far end.
    """
    deepest, out = _deepest(line, size)
    first = jnp.where(out < 0, deepest, _nearest(line, size))
    begin, end = _over_face(line, size, first)
    second = jnp.where(jnp.abs(end - first) > jnp.abs(begin - first), end, begin)
    apart = (begin < end) & (jnp.abs(second - first) > 1e-4 * line.half)
    return first, jnp.where(apart, second, jnp.where(first > 0, -line.half, line.half))


class CapsuleBox(Collider):
    """Two points: at the nearest point of the capsule, and at the end of what lies on the face."""

    types = ("capsule", "box")
    n_contacts = 2

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """The balls at two places of the capsule's axis."""
        axes, along = b.rot.matrix(), a.axis_z
        places = _two_places(_segment(a, b, axes), b.size)
        return [ball_and_box(a.pos + along * t, a.size.x, b, axes) for t in places]


CAPSULE_BOX = CapsuleBox()
