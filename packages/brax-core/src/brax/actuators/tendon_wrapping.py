"""Wrapping of a tendon around a sphere or a cylinder: the shortest path, and where it touches.

Around a sphere the path lies in the plane of both ends and the centre. Around a cylinder it is
straight when the cylinder is unrolled. Both reduce to a path around a circle. A side site chooses
among the paths: a site inside the geom keeps the path inside; a site opposite to both ends leads it
around the far side; otherwise it takes the near side, and only if the straight line meets the
circle. This behaviour is MuJoCo's, established by experiments.

Segments that do not wrap give finite numbers with finite derivatives.

Source: MuJoCo's documentation, XML reference, spatial tendons, attribute `sidesite`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.components import Vec3, normalize, sqrt, tangents

_HALVINGS = 40
"""Bisections that find the touching point inside a circle to single precision. One Newton step
follows."""


class PlanePoint(NamedTuple):
    """A point of the circle's plane, from the circle's centre."""

    x: jax.Array
    y: jax.Array

    def cross(self, o: "PlanePoint") -> jax.Array:
        """Return the cross product, positive if the other point is less than half a turn ahead."""
        return self.x * o.y - self.y * o.x

    def dot(self, o: "PlanePoint") -> jax.Array:
        """Return the scalar product."""
        return self.x * o.x + self.y * o.y


class WrappedPath(NamedTuple):
    """Paths around geoms, (paths, batch), in the geoms' frames."""

    wraps: jax.Array
    """True where a path touches its geom."""
    first: Vec3
    """Point where the contact begins."""
    last: Vec3
    """Point where the contact ends."""
    length: jax.Array
    """Length between the two points."""


def around_point(a: Vec3, b: Vec3, radius: jax.Array, side: Vec3 | None) -> WrappedPath:
    """Return the path from `a` to `b` around a sphere.

    Args:
        a: the first end, in the sphere's frame.
        b: the second end.
        radius: radius of the sphere.
        side: the side site; None if there is none.
    """
    one, zero = jnp.ones_like(a.x), jnp.zeros_like(a.x)
    x, _ = normalize(a, Vec3(one, zero, zero))
    # Ends on a line through the centre have no plane; any plane through the line will do.
    y = normalize(a.cross(b), tangents(x)[0])[0].cross(x)
    ends = PlanePoint(a.dot(x), a.dot(y)), PlanePoint(b.dot(x), b.dot(y))
    beside = None if side is None else PlanePoint(side.dot(x), side.dot(y))
    wraps, first, last, length = _around_circle(*ends, beside, radius, _inside(side, radius))
    first3, last3 = (x * w.x + y * w.y for w in (first, last))
    return WrappedPath(wraps, first3, last3, length)


def around_axis(a: Vec3, b: Vec3, radius: jax.Array, side: Vec3 | None) -> WrappedPath:
    """Return the path from `a` to `b` around the z axis; see `around_point`."""
    start, end = PlanePoint(a.x, a.y), PlanePoint(b.x, b.y)
    beside = None if side is None else PlanePoint(side.x, side.y)
    wraps, first, last, arc = _around_circle(start, end, beside, radius, _inside(side, radius))
    before, after = _distance(start, first), _distance(last, end)
    # On the unrolled cylinder the path is a straight line, so z grows in proportion to the length
    # in the plane.
    slope = (b.z - a.z) / jnp.where(wraps, before + arc + after, 1.0)
    climb = slope * arc
    return WrappedPath(
        wraps,
        Vec3(*first, a.z + slope * before),
        Vec3(*last, a.z + slope * before + climb),
        sqrt(arc * arc + climb * climb),
    )


def _distance(a: PlanePoint, b: PlanePoint) -> jax.Array:
    """Return the distance of two points."""
    return sqrt((a.x - b.x) ** 2 + (a.y - b.y) ** 2)


def _inside(side: Vec3 | None, radius: jax.Array) -> jax.Array | None:
    """Return whether the side site is inside the geom."""
    return None if side is None else side.dot(side) < radius * radius


def _around_circle(
    a: PlanePoint,
    b: PlanePoint,
    side: PlanePoint | None,
    radius: jax.Array,
    inside: jax.Array | None,
) -> tuple[jax.Array, PlanePoint, PlanePoint, jax.Array]:
    """Return whether a path touches a circle, both touching points, and the arc's length."""
    square = radius * radius
    outside = (a.dot(a) > square) & (b.dot(b) > square)
    meets = _nearest(a, b) < square
    # The near side is the one with less than half a turn from `a` to `b`.
    turn = jnp.where(a.cross(b) < 0, -1.0, 1.0).astype(radius.dtype)
    if side is None or inside is None:
        return _outer(a, b, radius, turn, jnp.zeros_like(meets), outside & meets)
    opposite = (a.cross(side) * turn < 0) & (side.cross(b) * turn < 0)
    turn = jnp.where(opposite, -turn, turn)
    outer = _outer(a, b, radius, turn, opposite, outside & ~inside & (meets | opposite))
    inner = _inner(a, b, radius, outside & inside & ~meets)
    return jax.tree.map(lambda x, y: jnp.where(inside, x, y), inner, outer)


def _nearest(a: PlanePoint, b: PlanePoint) -> jax.Array:
    """Return the squared distance of the segment between two points from the centre."""
    along = PlanePoint(b.x - a.x, b.y - a.y)
    size = along.dot(along)
    share = jnp.clip(-a.dot(along) / jnp.where(size > 0, size, 1.0), 0.0, 1.0)
    near = PlanePoint(a.x + share * along.x, a.y + share * along.y)
    return near.dot(near)


def _apart(
    a: PlanePoint, b: PlanePoint, radius: jax.Array, wraps: jax.Array
) -> tuple[PlanePoint, PlanePoint]:
    """Return both points, or two others outside the circle where the path does not wrap."""
    zero, far = jnp.zeros_like(a.x), 2.0 * radius
    return (
        PlanePoint(jnp.where(wraps, a.x, far), jnp.where(wraps, a.y, zero)),
        PlanePoint(jnp.where(wraps, b.x, zero), jnp.where(wraps, b.y, far)),
    )


def _outer(
    a: PlanePoint,
    b: PlanePoint,
    radius: jax.Array,
    turn: jax.Array,
    far: jax.Array,
    wraps: jax.Array,
) -> tuple[jax.Array, PlanePoint, PlanePoint, jax.Array]:
    """Return the path along two tangents, in the sense of rotation `turn`."""
    a, b = _apart(a, b, radius, wraps)
    first, last = _tangent(a, radius, turn), _tangent(b, radius, -turn)
    angle = jnp.arctan2(turn * first.cross(last), first.dot(last))
    # Only the far path can be longer than half a turn. A near path may be so short that rounding
    # makes its angle negative.
    angle = jnp.where(far & (angle < 0), angle + 2.0 * jnp.pi, angle)
    return wraps, first, last, jnp.where(wraps, radius * angle, 0.0)


def _tangent(a: PlanePoint, radius: jax.Array, turn: jax.Array) -> PlanePoint:
    """Return the point where a tangent from an outer point touches."""
    size = a.dot(a)
    # The touching point T satisfies |T| = r and T · (a - T) = 0, hence T · a = r².
    along, across = radius * radius / size, turn * radius * sqrt(size - radius * radius) / size
    return PlanePoint(along * a.x - across * a.y, along * a.y + across * a.x)


def _inner(
    a: PlanePoint, b: PlanePoint, radius: jax.Array, wraps: jax.Array
) -> tuple[jax.Array, PlanePoint, PlanePoint, jax.Array]:
    """Return the shortest path over one point of the circle, for a side site inside."""
    a, b = _apart(a, b, radius, wraps)
    start, turn = jnp.arctan2(a.y, a.x), jnp.arctan2(a.cross(b), a.dot(b))

    def slope(
        share: jax.Array, a: PlanePoint, b: PlanePoint, start: jax.Array, turn: jax.Array
    ) -> jax.Array:
        angle = start + share * turn
        w = PlanePoint(radius * jnp.cos(angle), radius * jnp.sin(angle))
        return turn * (w.cross(a) / _distance(a, w) + w.cross(b) / _distance(b, w)) * -1.0

    known = jax.lax.stop_gradient((a, b, start, turn))

    def halve(_: int, bounds: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = bounds
        middle = 0.5 * (low + high)
        # Bisection by the sign of the slope: where the length rises, the minimum comes before.
        rises = slope(middle, *known) > 0
        return jnp.where(rises, low, middle), jnp.where(rises, middle, high)

    low, high = jax.lax.fori_loop(0, _HALVINGS, halve, (0.0 * start, 0.0 * start + 1.0))
    share = jax.lax.stop_gradient(0.5 * (low + high))
    # The derivative of one Newton step at the solution is that of the implicit function theorem, so
    # the bisections need no derivative.
    one = jnp.ones_like(share)
    _, bend = jax.jvp(lambda s: slope(s, *known), (share,), (one,))
    share = share - slope(share, a, b, start, turn) / jnp.where(bend > 0, bend, 1.0)
    angle = start + share * turn
    touch = PlanePoint(radius * jnp.cos(angle), radius * jnp.sin(angle))
    return wraps, touch, touch, jnp.zeros_like(angle)
