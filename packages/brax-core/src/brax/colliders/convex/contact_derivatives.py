"""How the place and the normal of a contact move with the two shapes that touch.

Let u and u' be the velocities of the contact on the surfaces of the first and the second shape,
relative to the shapes' material there, in the plane of contact. The place is one, and so is the
normal:

    u' = u + v - v',    (A + B) u = (w' - w) x n - B (v - v'),

where v and w are the velocities of the first shape's material and its rotation, v' and w' those of
the second's, and A and B are the curvatures of the two surfaces. Only this derivative is found: the
values are given. Along a direction in which neither surface is curved any place will do, and the
contact moves with the first shape.

Source: Montana (1988), The Kinematics of Contact and Grasp, International Journal of Robotics
Research 7(3).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.colliders.convex.support_search import where
from brax.colliders.interface import GeometryType, Shape
from brax.components import Vec3, normalize

_MIN_CURVATURE = 1e-3
"""Curvature, of a unit of one over the size, below which a surface is taken for flat."""

_SHARP_RADIUS = 1e-6
"""Radius, in sizes, of what is sharp."""

_MAX_FACE_TILT = 0.05
"""Sine of the angle between a slope and the normal of a flat side up to which a place within the
side counts as where the slope stands on it, which a search only approaches."""

_MAX_FACE_OVERHANG = 1e-5
"""Distance, in sizes, by which a shape may reach beyond its flat side."""

_MAX_CORNER_SINE = 1e-3
"""Sine of the angle to the plane of contact up to which a corner lies in it."""

_MIN_CORNER_DISTANCE = 0.01
"""Distance, in sizes, from which on a corner is another than the place."""

_MIN_FACE_WIDTH_RATIO_SQUARED = 1e-4
"""Squared ratio of the widths from which on corners span a face rather than an edge."""

_MAX_UPRIGHT_SINE_SQUARED = 1e-4
"""Squared sine of the angle between an axis and a normal up to which the axis is upright."""

Tangent = tuple[jax.Array, jax.Array]
"""Components of a vector in the plane of contact."""


class Sym2(NamedTuple):
    """A symmetric matrix in the plane of contact, components (pairs, batch)."""

    xx: jax.Array
    xy: jax.Array
    yy: jax.Array

    def mul(self, v: Tangent) -> Tangent:
        """Return the product with a vector."""
        x, y = v
        return self.xx * x + self.xy * y, self.xy * x + self.yy * y

    def __add__(self, other: "Sym2") -> "Sym2":  # type: ignore[override]
        """Return the sum."""
        return Sym2(*(a + b for a, b in zip(self, other, strict=True)))

    def inverse(self, least: jax.Array) -> "Sym2":
        """Return the pseudoinverse, in which eigenvalues below the least count as zero."""
        middle, half = 0.5 * (self.xx + self.yy), 0.5 * (self.xx - self.yy)
        square = half * half + self.xy * self.xy
        split = square > 0.0
        apart = jnp.sqrt(jnp.where(split, square, 1.0))
        radius = jnp.where(split, apart, 0.0)
        high, low = (
            jnp.where(e > least, 1.0 / jnp.where(e > least, e, 1.0), 0.0)
            for e in (middle + radius, middle - radius)
        )
        slope = jnp.where(split, 0.5 * (high - low) / apart, 0.0)
        mean = 0.5 * (high + low)
        return Sym2(mean + slope * half, slope * self.xy, mean - slope * half)


class ContactCurvature(NamedTuple):
    """The curvatures of the two surfaces in the plane of contact, and what follows from them."""

    second: Sym2
    """Curvature of the second shape [1/m]."""
    softness: Sym2
    """Pseudoinverse of the sum of both [m]."""

    @classmethod
    def of(cls, first: Sym2, second: Sym2, size: jax.Array) -> "ContactCurvature":
        """Take two curvatures, of shapes of a size [m]."""
        both = Sym2(*(jax.lax.stop_gradient(_finite(c)) for c in first + second))
        second = Sym2(*(jax.lax.stop_gradient(_finite(c)) for c in second))
        return cls(second, both.inverse(_MIN_CURVATURE / jax.lax.stop_gradient(size)))


@jax.custom_jvp
def with_rolling(
    bent: ContactCurvature,
    axes: tuple[Vec3, Vec3],
    places: tuple[Vec3, Vec3],
    normals: tuple[Vec3, Vec3],
) -> tuple[Vec3, Vec3]:
    """Return the place and the normal of a contact, those of the second shape, with derivatives.

    Args:
        bent: the curvatures.
        axes: unit tangents that do not move.
        places: the contact as a point of each shape.
        normals: the normal as a direction of each shape.
    """
    return places[1], normals[1]


@with_rolling.defjvp
def _moved_jvp(primals: Any, rates: Any) -> tuple[tuple[Vec3, Vec3], tuple[Vec3, Vec3]]:
    bent, axes, places, normals = primals
    _, _, speeds, turns = rates

    def across(v: Vec3) -> Tangent:
        return axes[0].dot(v), axes[1].dot(v)

    def space(v: Tangent) -> Vec3:
        return axes[0] * v[0] + axes[1] * v[1]

    slip = across(speeds[0] - speeds[1])
    pull = bent.second.mul(slip)
    turn = [w - p for w, p in zip(across(turns[1] - turns[0]), pull, strict=True)]
    run = bent.softness.mul((turn[0], turn[1]))
    ahead = slip[0] + run[0], slip[1] + run[1]
    turned = across(turns[1] - space(bent.second.mul(ahead)))
    return (places[1], normals[1]), (speeds[1] + space(ahead), space(turned))


def distance_and_slope(kind: GeometryType, shape: Shape, point: Vec3) -> tuple[jax.Array, Vec3]:
    """Signed distance at points in the shape's frame, and its unit slope."""
    dist, back = jax.vjp(lambda p: kind.signed_distance(shape, p), point)
    zero, one = jnp.zeros_like(dist), jnp.ones_like(dist)
    (out,) = back(one)
    return dist, normalize(out, Vec3(zero, zero, one))[0]


def curvature(kind: GeometryType, shape: Shape, point: Vec3, axes: Sequence[Vec3]) -> Sym2:
    """Curvature, along unit tangents, of the surface of equal signed distance at a point."""
    return derivative(lambda p: distance_and_slope(kind, shape, p)[1], point, axes)


def derivative(function: Callable[[Vec3], Vec3], at: Vec3, axes: Sequence[Vec3]) -> Sym2:
    """Return the symmetric part of a function's derivative, along unit tangents."""
    s, t = axes
    first, second = (jax.jvp(function, (at,), (v,))[1] for v in axes)
    return Sym2(s.dot(first), 0.5 * (s.dot(second) + t.dot(first)), t.dot(second))


def face_normal(
    corners: Sequence[Vec3],
    point: Vec3,
    slope: Vec3,
    support: Callable[[Vec3], Vec3],
    size: jax.Array,
) -> tuple[Vec3, jax.Array]:
    """Return the inward normal of a convex shape's flat side at a point, and whether it has one.

    Args:
        corners: three support points around the point.
        point: of the shape's surface.
        slope: about the direction of the normal, which is returned if there is no flat side.
        support: of the shape.
        size: of the shape [m].
    """
    first, second, third = corners
    across, area = normalize((second - first).cross(third - first), slope)
    normal = across * jnp.where(across.dot(slope) < 0.0, -1.0, 1.0)
    aside = slope - normal * normal.dot(slope)
    beyond = normal.dot(point - support(-normal))
    flat = (
        (area > (_MIN_CORNER_DISTANCE * size) ** 2)
        & (aside.dot(aside) < _MAX_FACE_TILT**2)
        & (beyond < _MAX_FACE_OVERHANG * size)
    )
    return where(flat, normal, slope), flat


def edge_curvature(radii: Sym2, corners: Sequence[Vec3], size: jax.Array) -> Sym2:
    """Return the curvature of a convex shape at a place.

    Args:
        radii: derivative of its support point by the normal, which is zero on flat sides too.
        corners: support points around the place: their tangents and normal components from it.
        size: of the shape [m].
    """
    xx = xy = yy = jnp.zeros_like(size)
    for corner in corners:
        square = corner.dot(corner)
        level = jnp.abs(corner.z) < _MAX_CORNER_SINE * jnp.sqrt(square)
        counts = jnp.where(
            level & (square > (_MIN_CORNER_DISTANCE * size) ** 2), 1.0 / (size * size), 0.0
        )
        xx, xy = xx + counts * corner.x * corner.x, xy + counts * corner.x * corner.y
        yy = yy + counts * corner.y * corner.y
    span = Sym2(xx, xy, yy)
    width = xx + yy
    narrow = xx * yy - xy * xy < _MIN_FACE_WIDTH_RATIO_SQUARED * width * width
    sharp = Sym2(radii.xx + _SHARP_RADIUS * size, radii.xy, radii.yy + _SHARP_RADIUS * size)
    # Across an edge: the unit vector along it is (c, s).
    scale = 1.0 / jnp.where(width > 0.0, width, 1.0)
    cc, cs, ss = (x * scale for x in span)
    radius = ss * sharp.xx - 2.0 * cs * sharp.xy + cc * sharp.yy
    bend = jnp.where(narrow, 1.0 / jnp.where(radius > 0.0, radius, 1.0), 0.0)
    edge = Sym2(ss * bend, -cs * bend, cc * bend)
    round_ = sharp.inverse(jnp.zeros_like(size))
    alone = width <= 0.0
    return Sym2(*(jnp.where(alone, r, e) for r, e in zip(round_, edge, strict=True)))


def _finite(x: jax.Array) -> jax.Array:
    """The number, or zero where a curvature is none, as at an edge."""
    return jnp.where(jnp.abs(x) < jnp.finfo(x.dtype).max, x, 0.0)


def downhill_of(shape: Shape, normal: Vec3) -> Vec3:
    """Return the unit vector across a shape's z axis that points down a normal the most.

    Where the axis is nearly upright it is any, and turns with the shape in its derivative: what it
    turns by for a small tilt has no bounds.
    """
    x, y, z = shape.rot.matrix()
    steep = z * z.dot(normal) - normal
    upright = steep.dot(steep) < _MAX_UPRIGHT_SINE_SQUARED
    still, _ = normalize(jax.tree.map(jax.lax.stop_gradient, steep), fallback=x)
    own = [jax.lax.stop_gradient(still.dot(v)) for v in (x, y)]
    held = x * own[0] + y * own[1]
    # Not the tilt itself there: a derivative out of range times zero is none.
    moving, _ = normalize(
        Vec3(*(jnp.where(upright, h, s) for h, s in zip(held, steep, strict=True)))
    )
    return Vec3(*(jnp.where(upright, h, m) for h, m in zip(held, moving, strict=True)))
