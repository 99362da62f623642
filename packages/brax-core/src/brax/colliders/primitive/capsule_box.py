"""The collider of a capsule and a box, in the box's frame."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.primitive.sphere_box import ball_and_box
from brax.components import Mat3, Vec3, total

_MAX_PARALLEL_SINE = 1e-6
"""Sine of the angle to a face up to which an axis counts as parallel to it."""

_MIN_EDGE_SINE_SQUARED = 1e-6
"""Squared sine of the angle to an edge below which an axis counts as parallel to it."""

_PREFER_FACES = 0.01
"""Share of the depth by which an edge must be less deep than every face: a contact with an edge has
one point, one with a face two."""

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


def _over_face(line: Segment, size: Vec3, t: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the stretch of the segment over the face that is nearest to the point at `t`."""
    over = [
        jnp.abs(m + t * d) - h for m, d, h in zip(line.middle, line.direction, size, strict=True)
    ]
    most = jnp.maximum(jnp.maximum(over[0], over[1]), over[2])
    return _over(line, [o >= most for o in over])


def _over(line: Segment, face: Sequence[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Return the stretch of the segment over a face, whose normal is along the chosen axis."""
    # The slabs other than the face's own bound the face; in its own the segment may go anywhere.
    begin = [jnp.where(f, -line.half, e) for f, e in zip(face, line.enter, strict=True)]
    end = [jnp.where(f, line.half, e) for f, e in zip(face, line.leave, strict=True)]
    return _latest(begin), _earliest(end)


def _latest(enter: Sequence[jax.Array]) -> jax.Array:
    """Return the parameter from which on a segment is inside of three slabs."""
    return jnp.maximum(jnp.maximum(enter[0], enter[1]), enter[2])


def _earliest(leave: Sequence[jax.Array]) -> jax.Array:
    """Return the parameter up to which a segment is inside of three slabs."""
    return jnp.minimum(jnp.minimum(leave[0], leave[1]), leave[2])


def _outer_parameters(line: Segment, size: Vec3) -> tuple[jax.Array, jax.Array]:
    """Return two parameters where the capsule may touch the box, if its segment is outside [m].

    The first is that of the nearest point. The second is the far end of the stretch over the same
    face, so that a capsule that lies on a face rests on two points. If there is no such stretch, it
    is the far end of the segment.
    """
    first = _nearest(line, size)
    begin, end = _over_face(line, size, first)
    second = jnp.where(jnp.abs(end - first) > jnp.abs(begin - first), end, begin)
    apart = (begin < end) & (jnp.abs(second - first) > 1e-4 * line.half)
    return first, jnp.where(apart, second, jnp.where(first > 0, -line.half, line.half))


class InnerContact(NamedTuple):
    """The contacts of a capsule whose segment crosses the box, with the least translation."""

    depth: jax.Array
    """Length of the translation that takes the segment out of the box [m]."""
    out: Vec3
    """Unit direction of that translation, the box's frame."""
    places: tuple[jax.Array, jax.Array]
    """Parameters of two points of the segment [m]."""
    dists: tuple[jax.Array, jax.Array]
    """Distances of these points from the box's surface along `out` [m]."""


def _through_face(line: Segment, size: Vec3) -> InnerContact:
    """Return the contacts with the face that takes the least translation.

    They are at the ends of the stretch of the segment that is over the face.
    """
    depths = [
        h + line.half * jnp.abs(d) - jnp.abs(m)
        for m, d, h in zip(line.middle, line.direction, size, strict=True)
    ]
    depth, chosen = _least(depths)
    side = Vec3(*(jnp.where(m < 0, -1.0, 1.0) for m in line.middle))
    out = Vec3(*(jnp.where(c, s, 0.0) for c, s in zip(chosen, side, strict=True)))
    begin, end = _over(line, chosen)
    # Heights over the face's plane. The deeper end comes first.
    height, slope = out.dot(line.middle) - _selected(chosen, size), out.dot(line.direction)
    first, second = jnp.where(slope < 0, end, begin), jnp.where(slope < 0, begin, end)
    dists = height + slope * first, height + slope * second
    return InnerContact(depth, out, (first, second), dists)


def _through_edge(line: Segment, size: Vec3, far: jax.Array) -> InnerContact:
    """Return the contact with the edge that takes the least translation.

    The translation is perpendicular to the edge and to the segment, so that all of the segment is
    equally deep. There is one point, where the two are nearest. The second one is `far` away.
    """
    m, d, h = line.middle, line.direction, size
    depths, factors = [], []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        sine2 = d[j] * d[j] + d[k] * d[k]
        crossed = sine2 > _MIN_EDGE_SINE_SQUARED
        # Along the product of the edge's direction and the segment's.
        across = m[k] * d[j] - m[j] * d[k]
        inverse = jax.lax.rsqrt(jnp.where(crossed, sine2, 1.0))
        depth = (h[j] * jnp.abs(d[k]) + h[k] * jnp.abs(d[j]) - jnp.abs(across)) * inverse
        depths.append(jnp.where(crossed, depth, jnp.inf))
        factors.append(jnp.where(across < 0, -inverse, inverse))
    depth, chosen = _least(depths)
    edge = Vec3(*(jnp.where(c, f, 0.0) for c, f in zip(chosen, factors, strict=True)))
    out = edge.cross(d)
    # In the plane across the edge, the edge is a corner of the box, and the nearest point of the
    # segment's line is the projection of that corner.
    t = total(
        jnp.where(c, 0.0, (jnp.where(o < 0, -h, h) - m) * d)
        for c, o, h, m, d in zip(chosen, out, h, m, d, strict=True)
    ) * edge.dot(edge)
    t = jnp.clip(t, -line.half, line.half)
    return InnerContact(depth, out, (t, t), (-depth, far))


def _least(depths: list[jax.Array]) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Return the least of three depths, and a one-hot vector of it; of equal ones the first."""
    least = jnp.minimum(jnp.minimum(depths[0], depths[1]), depths[2])
    on_x, on_y = depths[0] <= least, depths[1] <= least
    return least, (on_x, on_y & ~on_x, ~(on_x | on_y))


def _selected(chosen: tuple[jax.Array, ...], of: Vec3) -> jax.Array:
    """Return the component that a one-hot vector selects."""
    return jnp.where(chosen[0], of.x, jnp.where(chosen[1], of.y, of.z))


def _inner_contact(line: Segment, size: Vec3, radius: jax.Array) -> InnerContact:
    """Return the contacts of a capsule whose segment crosses the box.

    The box and the segment overlap where the sum of the box and the reversed segment contains the
    box's centre. The faces of this sum are those of the box, and parallelograms of an edge and the
    segment. So the least translation is along the normal of one of them (Ericson 2005, Real-Time
    Collision Detection, section 4.4.1).
    """
    far = 2.0 * radius + line.half
    face, edge = _through_face(line, size), _through_edge(line, size, far)
    on_edge = edge.depth + radius < (1.0 - _PREFER_FACES) * (face.depth + radius)
    return jax.tree.map(lambda x, y: jnp.where(on_edge, x, y), edge, face)


class CapsuleBox(Collider):
    """Collider with two points: the nearest one, and the end of the stretch over the same face.

    Where the axis crosses the box, the normal is the direction of the least translation that parts
    the two.
    """

    types = ("capsule", "box")
    n_contacts = 2

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Collide balls at two points of the capsule's segment with the box."""
        axes, along, radius = b.rot.matrix(), a.axis_z, a.size.x
        line = _segment(a, b, axes)
        # More than one point of the segment: a slab that it misses leaves only an end of it.
        crosses = _latest(line.enter) < _earliest(line.leave)
        inner = _inner_contact(line, b.size, radius)
        normal = -axes.rotate(inner.out)
        touches = []
        for outer, place, dist in zip(
            _outer_parameters(line, b.size), inner.places, inner.dists, strict=True
        ):
            centre = a.pos + along * jnp.where(crosses, place, outer)
            apart = ball_and_box(centre, radius, b, axes)
            depth = dist - radius
            inside = Touch(depth, centre + normal * (radius + 0.5 * depth), normal)
            touches.append(jax.tree.map(lambda x, y: jnp.where(crosses, x, y), inside, apart))
        return touches


CAPSULE_BOX = CapsuleBox()
