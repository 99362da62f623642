"""Distances from the parts of MuJoCo's nut and bolt: a thread, and a head with six sides."""

import jax
import jax.numpy as jnp
import numpy as np

from brax.colliders.shapes.azimuth import azimuth
from brax.components import Vec3, sqrt

_TURNS = 12.0
"""Turns of the thread to a metre [1/m]. The thread is as deep as half of its pitch."""

_CHAMFER = 0.22
"""Distance from the thread, on the plane of the head's end, at which its chamfer begins [m]."""

SQRT_HALF = 0.5**0.5
"""Sine and cosine of 45 degrees, the slope of flanks and chamfers."""


def beyond(point: Vec3, radius: jax.Array) -> jax.Array:
    """Return the distance from the axis, less a radius [m]."""
    return sqrt(point.x * point.x + point.y * point.y) - radius


def thread(point: Vec3, radius: jax.Array) -> jax.Array:
    """Return the signed distance from an endless screw around the z axis.

    Args:
        point: the points [m].
        radius: radius of the thread at its root [m].
    """
    turns = _TURNS * point.z - azimuth(point) / (2 * np.pi)
    wave = jnp.abs(turns - jnp.floor(jax.lax.stop_gradient(turns)) - 0.5) / _TURNS
    return (beyond(point, radius) - wave) * SQRT_HALF


def cone(point: Vec3, radius: jax.Array) -> jax.Array:
    """Return the distance above a cone that opens upwards and has a radius at the origin's height.

    Args:
        point: the points [m].
        radius: the radius [m].
    """
    return (point.z - beyond(point, radius)) * SQRT_HALF


def head(point: Vec3, radius: jax.Array, half_width: jax.Array, height: jax.Array) -> jax.Array:
    """Return the signed distance from a hexagonal prism below the plane z = 0, chamfered on top.

    Args:
        point: the points [m].
        radius: radius of the thread [m].
        half_width: half of the width across flats [m].
        height: height of the prism [m].
    """
    sector = np.pi / 3
    side = sector * jnp.floor(jax.lax.stop_gradient(azimuth(point)) / sector + 0.5)
    sides = point.x * jnp.cos(side) + point.y * jnp.sin(side) - half_width
    ends = jnp.abs(point.z + 0.5 * height) - 0.5 * height
    chamfer = (point.z + beyond(point, radius) - _CHAMFER) * SQRT_HALF
    return jnp.maximum(jnp.maximum(sides, ends), chamfer)
