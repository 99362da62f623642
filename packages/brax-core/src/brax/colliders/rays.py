"""Intersections of rays with simple surfaces, for geometry types that rays can hit.

A ray is `origin + t direction` with t >= 0. Source: Ericson (2005), Real-Time Collision Detection,
section 5.3.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from brax.components import Vec3, sqrt

Hit = tuple[jax.Array, jax.Array]
"""The parameter t at which a line meets a surface, and whether it does."""


def first(hits: Sequence[Hit]) -> jax.Array:
    """Return the least non-negative parameter of some intersections; infinite if there is none."""
    found = [jnp.where(met & (t >= 0), t, jnp.inf) for t, met in hits]
    return jnp.min(jnp.stack(jnp.broadcast_arrays(*found)), axis=0)


def roots(a: jax.Array, b: jax.Array, c: jax.Array) -> list[Hit]:
    """Return both solutions of a t^2 + 2 b t + c = 0, where a >= 0."""
    inside = b * b - a * c
    # A line along a cylinder's axis has a = 0. Both branches of a `where` are computed, so the
    # root and the divisor are replaced where there is no solution, which keeps them free of NaN.
    met = (inside >= 0) & (a > 0)
    root, below = sqrt(jnp.where(met, inside, 0.0)), jnp.where(a > 0, a, 1.0)
    return [((-b - root) / below, met), ((-b + root) / below, met)]


def ball(origin: Vec3, direction: Vec3, radius: jax.Array) -> list[Hit]:
    """Intersect a line with a sphere around the frame's origin (Ericson, section 5.3.2)."""
    gap = origin.dot(origin) - radius * radius
    return roots(direction.dot(direction), origin.dot(direction), gap)


def tube(origin: Vec3, direction: Vec3, radius: jax.Array, half: jax.Array) -> list[Hit]:
    """Intersect a line with the side of a cylinder along the z axis (Ericson, section 5.3.7)."""
    # The quadratic is that of the infinite cylinder; the caps cut off what is beyond `half`.
    a = direction.x**2 + direction.y**2
    b = origin.x * direction.x + origin.y * direction.y
    c = origin.x**2 + origin.y**2 - radius * radius
    return [(t, met & (jnp.abs(origin.z + t * direction.z) <= half)) for t, met in roots(a, b, c)]


def level(origin: jax.Array, direction: jax.Array, height: jax.Array) -> Hit:
    """Intersect a line with a plane across one coordinate axis, from that axis's coordinates."""
    met = direction != 0
    return (height - origin) / jnp.where(met, direction, 1.0), met


def along(origin: Vec3, direction: Vec3, t: jax.Array) -> Vec3:
    """Return the point of a line at a parameter."""
    return origin + direction * t
