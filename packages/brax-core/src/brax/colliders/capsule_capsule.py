"""Two capsules."""

import jax
import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.sphere_sphere import ball_and_ball

_PARALLEL = 1e-6
"""Squared sine of the angle below which two axes count as parallel."""


def nearest_parameters(a: Shape, b: Shape) -> tuple[jax.Array, jax.Array]:
    """Where, along each capsule's axis, the two segments are nearest [m from the middle].

    For parallel axes, where a whole stretch is nearest, the middle of the overlap. Gradients are
    finite everywhere, the parallel and the collinear case included.

    Source: Ericson (2005), Real-Time Collision Detection, section 5.1.9.
    """
    u, v, r = a.axis_z, b.axis_z, b.pos - a.pos
    cosine, ru, rv = u.dot(v), u.dot(r), v.dot(r)
    sine2 = 1.0 - cosine * cosine
    parallel = sine2 < _PARALLEL
    crossing = (ru - cosine * rv) / jnp.where(parallel, 1.0, sine2)
    reach = jnp.abs(cosine) * b.size.y
    overlap = 0.5 * (
        jnp.clip(ru - reach, -a.size.y, a.size.y) + jnp.clip(ru + reach, -a.size.y, a.size.y)
    )
    s = jnp.clip(jnp.where(parallel, overlap, crossing), -a.size.y, a.size.y)
    t = jnp.clip(cosine * s - rv, -b.size.y, b.size.y)
    return jnp.clip(cosine * t + ru, -a.size.y, a.size.y), t


class CapsuleCapsule(Collider):
    """One point, between the nearest points of the two segments."""

    types = ("capsule", "capsule")
    n_contacts = 1

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """The balls at the nearest points of the two segments."""
        s, t = nearest_parameters(a, b)
        first = a.pos + a.axis_z * s
        second = b.pos + b.axis_z * t
        return [ball_and_ball(first, a.size.x, second, b.size.x)]


CAPSULE_CAPSULE = CapsuleCapsule()
