"""Derivatives of the position and the normal of a contact by the poses of the two shapes.

Two surfaces that roll and slide on each other share the point of contact and the normal there. Let
u and u' be the velocities of the contact point over the first and the second surface, relative to
the material, in the plane of contact. Since both surfaces have the same contact point and the same
normal,

    u' = u + v - v',    (A + B) u = (w' - w) x n - B (v - v'),

where v and w are the linear and angular velocity of the first shape's material, v' and w' those of
the second's, and A and B the curvatures of the two surfaces. This module finds only these
derivatives; the values are given. In a direction in which neither surface is curved the contact
point is not unique, and it moves with the first shape.

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
"""Curvature times the size below which a surface counts as flat."""

_SHARP_RADIUS = 1e-6
"""Radius, in sizes, that stands for the zero radius of edges and vertices."""

_MAX_FACE_TILT = 0.05
"""Sine of the angle between the distance's gradient and a face's normal up to which the face is the
one in contact. The search only approaches the point where the two are parallel."""

_MAX_FACE_OVERHANG = 1e-5
"""Distance, in sizes, by which a shape may reach beyond the plane of its face by rounding."""

_MAX_CORNER_SINE = 1e-3
"""Sine of the angle to the plane of contact up to which a vertex lies in that plane."""

_MIN_CORNER_DISTANCE = 0.01
"""Distance, in sizes, from which on a vertex is distinct from the contact point."""

_MIN_FACE_WIDTH_RATIO_SQUARED = 1e-4
"""Squared ratio of the widths from which on vertices span a face rather than an edge."""

_MAX_UPRIGHT_SINE_SQUARED = 1e-4
"""Squared sine of the angle between an axis and a normal up to which they count as parallel."""

Tangent = tuple[jax.Array, jax.Array]
"""The two components of a vector in the plane of contact."""


class Sym2(NamedTuple):
    """A symmetric two-by-two matrix in the plane of contact, components (pairs, batch)."""

    xx: jax.Array
    """First diagonal entry."""
    xy: jax.Array
    """Off-diagonal entry."""
    yy: jax.Array
    """Second diagonal entry."""

    def mul(self, v: Tangent) -> Tangent:
        """Return the product with a vector."""
        x, y = v
        return self.xx * x + self.xy * y, self.xy * x + self.yy * y

    def __add__(self, other: "Sym2") -> "Sym2":  # type: ignore[override]
        """Return the sum."""
        return Sym2(*(a + b for a, b in zip(self, other, strict=True)))

    def inverse(self, least: jax.Array) -> "Sym2":
        """Return the pseudoinverse, in which eigenvalues below the least count as zero."""
        # Eigenvalues are middle + radius and middle - radius. A function f of the matrix is
        # mean + slope (matrix - middle), where mean and slope are those of f at the eigenvalues.
        middle, half = 0.5 * (self.xx + self.yy), 0.5 * (self.xx - self.yy)
        square = half * half + self.xy * self.xy
        # At equal eigenvalues the root has no derivative, so it is not computed there.
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
    """The curvatures in the plane of contact that the derivatives depend on."""

    second: Sym2
    """Curvature B of the second surface [1/m]."""
    softness: Sym2
    """Pseudoinverse of the sum A + B of both curvatures [m]."""

    @classmethod
    def of(cls, first: Sym2, second: Sym2, size: jax.Array) -> "ContactCurvature":
        """Combine two curvatures, of shapes of a given size [m]."""
        # Curvatures are coefficients of the derivative and need none themselves: a derivative of
        # them would be a third one of the surface.
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
    """Return the position and the normal of a contact, with the derivatives of rolling surfaces.

    The values are those of the second shape.

    Args:
        bent: the curvatures.
        axes: two unit tangents without derivatives.
        places: the contact point as a material point of each shape, world axes.
        normals: the normal as a material direction of each shape, world axes.
    """
    return places[1], normals[1]


@with_rolling.defjvp
def _moved_jvp(primals: Any, rates: Any) -> tuple[tuple[Vec3, Vec3], tuple[Vec3, Vec3]]:
    """Solve the equations of contact (see the module) for the rates of the position and normal."""
    bent, axes, places, normals = primals
    _, _, speeds, turns = rates

    def across(v: Vec3) -> Tangent:
        """Return the tangential components of a vector."""
        return axes[0].dot(v), axes[1].dot(v)

    def space(v: Tangent) -> Vec3:
        """Return a tangential vector in world axes."""
        return axes[0] * v[0] + axes[1] * v[1]

    # slip is v - v', pull is B (v - v'), and turn the right-hand side of the equation for u. The
    # cross products with n are the rates of the two normals.
    slip = across(speeds[0] - speeds[1])
    pull = bent.second.mul(slip)
    turn = [w - p for w, p in zip(across(turns[1] - turns[0]), pull, strict=True)]
    run = bent.softness.mul((turn[0], turn[1]))
    # u' = u + v - v' over the second surface, from which its position and normal follow.
    ahead = slip[0] + run[0], slip[1] + run[1]
    turned = across(turns[1] - space(bent.second.mul(ahead)))
    return (places[1], normals[1]), (speeds[1] + space(ahead), space(turned))


def distance_and_slope(kind: GeometryType, shape: Shape, point: Vec3) -> tuple[jax.Array, Vec3]:
    """Return the signed distance at points in the shape's frame, and its unit gradient."""
    # Reverse mode: one pass gives all three components of the gradient.
    dist, back = jax.vjp(lambda p: kind.signed_distance(shape, p), point)
    zero, one = jnp.zeros_like(dist), jnp.ones_like(dist)
    (out,) = back(one)
    return dist, normalize(out, Vec3(zero, zero, one))[0]


def curvature(kind: GeometryType, shape: Shape, point: Vec3, axes: Sequence[Vec3]) -> Sym2:
    """Return the curvature, along unit tangents, of the level surface of a signed distance."""
    # The derivative of the unit normal over the surface is its shape operator.
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
    """Return the inward normal of a convex shape's face at a point, and whether there is a face.

    Args:
        corners: three support points around the point.
        point: a point of the shape's surface.
        slope: an approximate normal, which is returned if there is no face.
        support: the support function of the shape.
        size: size of the shape [m].
    """
    first, second, third = corners
    across, area = normalize((second - first).cross(third - first), slope)
    normal = across * jnp.where(across.dot(slope) < 0.0, -1.0, 1.0)
    aside = slope - normal * normal.dot(slope)
    beyond = normal.dot(point - support(-normal))
    # Three support points span a face if they are apart, nearly perpendicular to the slope, and if
    # the shape does not reach beyond their plane.
    flat = (
        (area > (_MIN_CORNER_DISTANCE * size) ** 2)
        & (aside.dot(aside) < _MAX_FACE_TILT**2)
        & (beyond < _MAX_FACE_OVERHANG * size)
    )
    return where(flat, normal, slope), flat


def edge_curvature(radii: Sym2, corners: Sequence[Vec3], size: jax.Array) -> Sym2:
    """Return the curvature of a convex shape at a contact point on a face, an edge or a vertex.

    Args:
        radii: derivative of its support point by the normal: the radii of curvature, which are zero
            on edges and vertices, and on faces too.
        corners: support points around the contact point, relative to it, as components along the
            tangents and the normal.
        size: size of the shape [m].
    """
    # The second moment of the vertices in the plane of contact distinguishes the cases: it has rank
    # two on a face, one on an edge and zero at a vertex or on a round surface.
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
    # A radius of zero has no inverse; a vertex gets a large curvature instead.
    sharp = Sym2(radii.xx + _SHARP_RADIUS * size, radii.xy, radii.yy + _SHARP_RADIUS * size)
    # The unit vector along an edge is (c, s). The surface is curved only across it.
    scale = 1.0 / jnp.where(width > 0.0, width, 1.0)
    cc, cs, ss = (x * scale for x in span)
    radius = ss * sharp.xx - 2.0 * cs * sharp.xy + cc * sharp.yy
    bend = jnp.where(narrow, 1.0 / jnp.where(radius > 0.0, radius, 1.0), 0.0)
    edge = Sym2(ss * bend, -cs * bend, cc * bend)
    round_ = sharp.inverse(jnp.zeros_like(size))
    no_span = width <= 0.0
    return Sym2(*(jnp.where(no_span, r, e) for r, e in zip(round_, edge, strict=True)))


def _finite(x: jax.Array) -> jax.Array:
    """Return a curvature, or zero where it is not finite, as at an edge."""
    return jnp.where(jnp.abs(x) < jnp.finfo(x.dtype).max, x, 0.0)


def downhill_of(shape: Shape, normal: Vec3) -> Vec3:
    """Return the unit vector perpendicular to a shape's z axis that points down a normal the most.

    Where the axis is nearly parallel to the normal the vector is not unique, and its derivative by
    the tilt has no bound. There its derivative is that of a vector fixed to the shape.
    """
    x, y, z = shape.rot.matrix()
    steep = z * z.dot(normal) - normal
    upright = steep.dot(steep) < _MAX_UPRIGHT_SINE_SQUARED
    still, _ = normalize(jax.tree.map(jax.lax.stop_gradient, steep), fallback=x)
    own = [jax.lax.stop_gradient(still.dot(v)) for v in (x, y)]
    held = x * own[0] + y * own[1]
    # The vector is selected before it is normalized: an infinite derivative times zero is NaN.
    moving, _ = normalize(
        Vec3(*(jnp.where(upright, h, s) for h, s in zip(held, steep, strict=True)))
    )
    return Vec3(*(jnp.where(upright, h, m) for h, m in zip(held, moving, strict=True)))
