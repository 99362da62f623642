"""The angle of a point about the z axis."""

import jax
import jax.numpy as jnp

from brax.components import Vec3


def azimuth(point: Vec3) -> jax.Array:
    """Return the angle about the z axis; on the axis it is zero, with a derivative of zero."""
    # The derivative of the arctangent is NaN on the axis, also where `where` discards it.
    off = point.x * point.x + point.y * point.y > 0.0
    return jnp.arctan2(jnp.where(off, point.y, 0.0), jnp.where(off, point.x, 1.0))
