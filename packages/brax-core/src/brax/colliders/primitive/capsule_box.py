"""The collider of a capsule and a box, in the box's frame."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.primitive.sphere_box import ball_and_box
from brax.components import Mat3, Vec3, total

_MAX_PARALLEL_SINE = 1e-6
"""Sine of the angle to a face up to which an axis counts as parallel to it."""

_CROSSING_SLACK = 1e-6
"""Share of the half-size by which a crossing of a face may lie beyond the face by rounding."""


class Segment(NamedTuple):
    """A capsule's segment in a box's frame: the points `middle + t direction` with |t| <= half."""

    middle: Vec3
    """The midpoint [m]."""
    direction: Vec3
    """The unit direction."""
    half: jax.Array
    """The half-length [m]."""
    enter: Vec3
    """For each slab of the box, the least t inside of it; `half` if there is none [m]."""
    leave: Vec3
    """For each slab, the largest t inside of it; `-half` if there is none [m]."""


def _segment(a: Shape, b: Shape, axes: Mat3) -> Segment:
    """Express a capsule's segment in a box's frame, and clip it to each slab.

    Source: Ericson (2005), Real-Time Collision Detection, section 5.3.3: slabs.
    """
    middle, direction = axes.inv_rotate(a.pos - b.pos), axes.inv_rotate(a.axis_z)
    half = a.size.y
    enter, leave = [], []
    for m, d, h in zip(middle, direction, b.size, strict=True):
        steep = jnp.abs(d) > _MAX_PARALLEL_SINE
        ends = [
            jnp.clip((side * h - m) / jnp.where(steep, d, 1.0), -half, half) for side in (-1, 1)
        ]
        # A segment along a slab is inside of it as a whole, or nowhere.
        always = jnp.where(jnp.abs(m) < h, half, -half)
        enter.append(jnp.where(steep, jnp.minimum(*ends), -always))
        leave.append(jnp.where(steep, jnp.maximum(*ends), always))
    return Segment(middle, direction, half, Vec3(*enter), Vec3(*leave))


def _nearest(line: Segment, size: Vec3) -> jax.Array:
    """Return the parameter at which a segment outside of the box is nearest to it [m].

    The squared distance is convex in the parameter, and its slope is linear between the points
    where the segment crosses the planes of faces. So the zero of the slope lies between two of
    these points, and is found by linear interpolation.
    """
    places = jnp.stack(
        jnp.broadcast_arrays(-line.half, line.half, *line.enter, *line.leave), axis=0
    )
    # Half the slope of the squared distance: the vector from the nearest point of the box, along
    # the segment. The slack keeps a point that lies on a face's plane by rounding at a slope of
    # zero.
    slopes = total(
        d * (p - jnp.clip(p, -h * (1 + _CROSSING_SLACK), h * (1 + _CROSSING_SLACK)))
        for m, d, h in zip(line.middle, line.direction, size, strict=True)
        for p in [m + places * d]
    )
    # The last point with a falling slope and the first one with a rising slope bracket the minimum.
    below = jnp.max(jnp.where(slopes <= 0, places, -line.half), axis=0)
    above = jnp.min(jnp.where(slopes >= 0, places, line.half), axis=0)
    falling = jnp.max(jnp.where(slopes < 0, slopes, -jnp.inf), axis=0)
    rising = jnp.min(jnp.where(slopes > 0, slopes, jnp.inf), axis=0)
    between = below < above
    fall, rise = (jnp.where(between & jnp.isfinite(s), s, 1.0) for s in (-falling, rising))
    return jnp.where(between, below + (above - below) * fall / (fall + rise), below)


def _deepest(line: Segment, size: Vec3) -> tuple[jax.Array, jax.Array]:
    """Return the parameter at which a segment is deepest in the box, and its distance there [m].

    The signed distance of a point inside is the largest of its distances from the six faces. Each
    is linear in the parameter. So the least of it is at an end, or where two of them are equal.
    """
    m, d, half = line.middle, line.direction, line.half
    # Ends; the middles between opposite faces; and where the distances from two adjacent faces,
    # with signs s and r, are equal.
    places = [-half, half, *(_ratio(-a, b) for a, b in zip(m, d, strict=True))]
    for i, j in ((0, 1), (1, 2), (2, 0)):
        for s, r in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            places.append(_ratio(size[i] - size[j] - s * m[i] + r * m[j], s * d[i] - r * d[j]))
    t = jnp.clip(jnp.stack(jnp.broadcast_arrays(*places)), -half, half)
    # At each candidate, the largest of the distances from the three pairs of faces.
    x, y, z = (jnp.abs(a + t * b) - h for a, b, h in zip(m, d, size, strict=True))
    out = jnp.maximum(jnp.maximum(x, y), z)
    index = jnp.arange(len(places)).reshape((-1,) + (1,) * half.ndim)
    chosen = index == jnp.argmin(out, axis=0)
    return jnp.sum(jnp.where(chosen, t, 0.0), axis=0), jnp.min(out, axis=0)


def _ratio(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return a / b; zero where b is too small, since the distances never are equal then."""
    steep = jnp.abs(b) > _MAX_PARALLEL_SINE
    return jnp.where(steep, a, 0.0) / jnp.where(steep, b, 1.0)


def _over_face(line: Segment, size: Vec3, t: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the stretch of the segment over the face that is nearest to the point at `t`."""
    over = [
        jnp.abs(m + t * d) - h for m, d, h in zip(line.middle, line.direction, size, strict=True)
    ]
    most = jnp.maximum(jnp.maximum(over[0], over[1]), over[2])
    # The slabs other than the face's own bound the face; in its own the segment may go anywhere.
    begin = [jnp.where(o < most, e, -line.half) for o, e in zip(over, line.enter, strict=True)]
    end = [jnp.where(o < most, e, line.half) for o, e in zip(over, line.leave, strict=True)]
    return (
        jnp.maximum(jnp.maximum(begin[0], begin[1]), begin[2]),
        jnp.minimum(jnp.minimum(end[0], end[1]), end[2]),
    )


def _contact_parameters(line: Segment, size: Vec3) -> tuple[jax.Array, jax.Array]:
    """Return two parameters on the segment where the capsule may touch the box [m].

    The first is that of the nearest or the deepest point. The second is the far end of the stretch
    over the same face, so that a capsule that lies on a face rests on two points. If there is no
    such stretch, it is the far end of the segment.
    """
    deepest, out = _deepest(line, size)
    first = jnp.where(out < 0, deepest, _nearest(line, size))
    # Deep in the box the nearest face decides, outside of it the nearest point.
    begin, end = _over_face(line, size, first)
    second = jnp.where(jnp.abs(end - first) > jnp.abs(begin - first), end, begin)
    apart = (begin < end) & (jnp.abs(second - first) > 1e-4 * line.half)
    return first, jnp.where(apart, second, jnp.where(first > 0, -line.half, line.half))


class CapsuleBox(Collider):
    """Collider with two points: the nearest one, and the end of the stretch over the same face."""

    types = ("capsule", "box")
    n_contacts = 2

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Collide balls at two points of the capsule's segment with the box."""
        axes, along = b.rot.matrix(), a.axis_z
        places = _contact_parameters(_segment(a, b, axes), b.size)
        return [ball_and_box(a.pos + along * t, a.size.x, b, axes) for t in places]


CAPSULE_BOX = CapsuleBox()
