"""The collider of two capsules."""

import jax
import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.primitive.sphere_sphere import ball_and_ball

_MIN_AXIS_SINE_SQUARED = 1e-6
"""Squared sine of the angle below which two axes count as parallel."""

_MIN_POINT_DISTANCE = 1e-4
"""Distance, in half-lengths, up to which two points of a segment count as one."""

_CROSSING = 16.0
"""Gap of the second point, in sums of the radii, over the squared sine of the angle between the
axes. From 14.5 degrees on the gap is the sum of the radii or more, so that the point touches
nothing, however deep the capsules overlap."""


def nearest_parameters(a: Shape, b: Shape) -> tuple[jax.Array, jax.Array]:
    """Return the parameters of the nearest points of two segments [m from the middle].

    Parallel segments may have a whole stretch of nearest points; then the parameters are those of
    the middle of the overlap. Gradients are finite everywhere, even for parallel and collinear
    segments.

    Args:
        a: the first capsules.
        b: the second capsules.

    Source: Ericson (2005), Real-Time Collision Detection, section 5.1.9.
    """
    u, v, r = a.axis_z, b.axis_z, b.pos - a.pos
    cosine, ru, rv = u.dot(v), u.dot(r), v.dot(r)
    sine2 = 1.0 - cosine * cosine
    parallel = sine2 < _MIN_AXIS_SINE_SQUARED
    # Where the infinite lines are nearest, s = (ru - cosine rv) / sine^2 for unit directions.
    crossing = (ru - cosine * rv) / jnp.where(parallel, 1.0, sine2)
    reach = jnp.abs(cosine) * b.size.y
    # The second segment projects onto the first axis as [ru - reach, ru + reach].
    overlap = 0.5 * (
        jnp.clip(ru - reach, -a.size.y, a.size.y) + jnp.clip(ru + reach, -a.size.y, a.size.y)
    )
    s = jnp.clip(jnp.where(parallel, overlap, crossing), -a.size.y, a.size.y)
    # Clamp one parameter, find the nearest point of the other segment, clamp that and go back once:
    # after this the pair is exact for segments, not only for lines.
    t = jnp.clip(cosine * s - rv, -b.size.y, b.size.y)
    return jnp.clip(cosine * t + ru, -a.size.y, a.size.y), t


def _contact_parameters(a: Shape, b: Shape) -> tuple[jax.Array, jax.Array]:
    """Return two parameters on the first segment where the capsules may touch [m from the middle].

    Parallel capsules touch at both ends of the stretch over which they lie side by side. Others
    touch where they are nearest. The second point is then at the far end of that stretch, where the
    gap closes with the angle between the capsules. If there is no such stretch, the second point is
    the far end of the first capsule.
    """
    nearest, _ = nearest_parameters(a, b)
    half, u = a.size.y, a.axis_z
    cosine, middle = u.dot(b.axis_z), u.dot(b.pos - a.pos)
    reach = jnp.abs(cosine) * b.size.y
    begin, end = (jnp.clip(middle + side * reach, -half, half) for side in (-1, 1))
    # Parallel capsules have no unique nearest points. Only the middle of the stretch would let
    # them tip, so both of its ends are taken.
    parallel = 1.0 - cosine * cosine < _MIN_AXIS_SINE_SQUARED
    first = jnp.where(parallel, begin, nearest)
    second = jnp.where(parallel | (jnp.abs(end - first) > jnp.abs(begin - first)), end, begin)
    apart = jnp.abs(second - first) > _MIN_POINT_DISTANCE * half
    return first, jnp.where(apart, second, jnp.where(first > 0, -half, half))


class CapsuleCapsule(Collider):
    """Collider with two points: at the nearest points, and at an end of the stretch side by side.

    With one point only, a capsule could not rest on another one. Capsules that cross touch at one
    point, as in MuJoCo: the gap of the second point grows with the angle between them.
    """

    types = ("capsule", "capsule")
    n_contacts = 2

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Collide balls at two points of the first segment with those nearest on the second."""
        u, v = a.axis_z, b.axis_z
        touches = []
        for s in _contact_parameters(a, b):
            first = a.pos + u * s
            # The point of the second segment nearest to the ball's centre (Ericson, section 5.1.2).
            t = jnp.clip(v.dot(first - b.pos), -b.size.y, b.size.y)
            touches.append(ball_and_ball(first, a.size.x, b.pos + v * t, b.size.x))
        nearest, second = touches
        cosine = u.dot(v)
        crossing = _CROSSING * (1.0 - cosine * cosine) * (a.size.x + b.size.x)
        return [nearest, second._replace(dist=second.dist + crossing)]


CAPSULE_CAPSULE = CapsuleCapsule()
