"""Where straight lines from a point meet simple surfaces, for shapes that rays can find."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from brax.components import Vec3, sqrt

Hit = tuple[jax.Array, jax.Array]
"""How far along a line a surface is met, and whether it is."""


def first(hits: Sequence[Hit]) -> jax.Array:
    """The nearest of those ahead; infinite if there is none."""
    found = [jnp.where(met & (t >= 0), t, jnp.inf) for t, met in hits]
    return jnp.min(jnp.stack(jnp.broadcast_arrays(*found)), axis=0)


def roots(a: jax.Array, b: jax.Array, c: jax.Array) -> list[Hit]:
    """Both solutions of a t^2 + 2 b t + c = 0, a >= 0."""
    inside = b * b - a * c
    met = (inside >= 0) & (a > 0)
    root, below = sqrt(jnp.where(met, inside, 0.0)), jnp.where(a > 0, a, 1.0)
    return [((-b - root) / below, met), ((-b + root) / below, met)]


def ball(origin: Vec3, direction: Vec3, radius: jax.Array) -> list[Hit]:
    """A ball about the origin of the frame."""
    gap = origin.dot(origin) - radius * radius
    return roots(direction.dot(direction), origin.dot(direction), gap)


def tube(origin: Vec3, direction: Vec3, radius: jax.Array, half: jax.Array) -> list[Hit]:
    """The side of a cylinder along the z axis."""
    a = direction.x**2 + direction.y**2
    b = origin.x * direction.x + origin.y * direction.y
    c = origin.x**2 + origin.y**2 - radius * radius
    return [(t, met & (jnp.abs(origin.z + t * direction.z) <= half)) for t, met in roots(a, b, c)]


def level(origin: jax.Array, direction: jax.Array, height: jax.Array) -> Hit:
    """Where one coordinate of a line reaches a value."""
    met = direction != 0
    return (height - origin) / jnp.where(met, direction, 1.0), met


def along(origin: Vec3, direction: Vec3, t: jax.Array) -> Vec3:
    """The point of a line."""
    return origin + direction * t
