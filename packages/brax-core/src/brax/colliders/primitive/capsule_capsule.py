"""Two capsules."""

import jax
import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.primitive.sphere_sphere import ball_and_ball

_MIN_AXIS_SINE_SQUARED = 1e-6
"""Squared sine of the angle below which two axes count as parallel."""

_MIN_POINT_DISTANCE = 1e-4
"""Distance, in half-lengths, up to which two places on an axis are one."""


def nearest_parameters(a: Shape, b: Shape) -> tuple[jax.Array, jax.Array]:
    """Where, along each capsule's axis, the two segments are nearest [m from the middle].

    For parallel axes, where a whole stretch is nearest, the middle of the overlap. Gradients are
    finite everywhere, the parallel and the collinear case included.

    Source: Ericson (2005), Real-Time Collision Detection, section 5.1.9.
    """
    u, v, r = a.axis_z, b.axis_z, b.pos - a.pos
    cosine, ru, rv = u.dot(v), u.dot(r), v.dot(r)
    sine2 = 1.0 - cosine * cosine
    parallel = sine2 < _MIN_AXIS_SINE_SQUARED
    crossing = (ru - cosine * rv) / jnp.where(parallel, 1.0, sine2)
    reach = jnp.abs(cosine) * b.size.y
    overlap = 0.5 * (
        jnp.clip(ru - reach, -a.size.y, a.size.y) + jnp.clip(ru + reach, -a.size.y, a.size.y)
    )
    s = jnp.clip(jnp.where(parallel, overlap, crossing), -a.size.y, a.size.y)
    t = jnp.clip(cosine * s - rv, -b.size.y, b.size.y)
    return jnp.clip(cosine * t + ru, -a.size.y, a.size.y), t


def _two_places(a: Shape, b: Shape) -> tuple[jax.Array, jax.Array]:
    """Where on the first capsule's axis the two may touch [m from the middle].

    Parallel capsules touch at both ends of the stretch that they have in common. Others touch where
    they are nearest, and at the far end of that stretch they have a gap that closes with the angle
    between them. If there is no such stretch, the second place is the far end of the capsule.
    """
    nearest, _ = nearest_parameters(a, b)
    half, u = a.size.y, a.axis_z
    cosine, middle = u.dot(b.axis_z), u.dot(b.pos - a.pos)
    reach = jnp.abs(cosine) * b.size.y
    begin, end = (jnp.clip(middle + side * reach, -half, half) for side in (-1, 1))
    parallel = 1.0 - cosine * cosine < _MIN_AXIS_SINE_SQUARED
    first = jnp.where(parallel, begin, nearest)
    second = jnp.where(parallel | (jnp.abs(end - first) > jnp.abs(begin - first)), end, begin)
    apart = jnp.abs(second - first) > _MIN_POINT_DISTANCE * half
    return first, jnp.where(apart, second, jnp.where(first > 0, -half, half))


class CapsuleCapsule(Collider):
    """Two points: at the nearest points of the segments, and at the end of what lies alongside."""

    types = ("capsule", "capsule")
    n_contacts = 2

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """The balls at two places of the first axis, and those nearest to them on the second."""
        u, v = a.axis_z, b.axis_z
        touches = []
        for s in _two_places(a, b):
            first = a.pos + u * s
            t = jnp.clip(v.dot(first - b.pos), -b.size.y, b.size.y)
            touches.append(ball_and_ball(first, a.size.x, b.pos + v * t, b.size.x))
        return touches


CAPSULE_CAPSULE = CapsuleCapsule()
