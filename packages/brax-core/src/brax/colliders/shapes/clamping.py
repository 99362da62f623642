"""Functions that clamp numbers and vectors to a size, for the nearest points of shapes."""

import jax
import jax.numpy as jnp

from brax.components import Vec3


def clip_size(x: jax.Array, bound: jax.Array) -> jax.Array:
    """Clamp a number to [-bound, bound]."""
    return jnp.where(jnp.abs(x) > bound, sign(x) * bound, x)


def shorten(v: Vec3, length: jax.Array) -> Vec3:
    """Shorten a vector to a length, unless it is shorter."""
    # The root is taken of one where the vector is short, so that zero vectors have derivatives.
    square = v.dot(v)
    longer = square > length * length
    scale = length * jax.lax.rsqrt(jnp.where(longer, square, 1.0))
    return v * jnp.where(longer, scale, 1.0)


def sign(x: jax.Array) -> jax.Array:
    """Return -1 for negative numbers and 1 for others, zero included."""
    return jnp.where(x < 0, -1.0, 1.0).astype(x.dtype)
