"""The geometry type `sdf_bolt`: MuJoCo's bolt with a hexagonal head."""

import jax
import jax.numpy as jnp

from brax.colliders.interface import Shape
from brax.colliders.shapes.hull import WithHull
from brax.colliders.shapes.threads import SQRT_HALF, cone, head, thread
from brax.components import Vec3

_LENGTH = 1.0
"""Length of the bolt with its head, and depth of the cone that points its end [m]."""


class SignedDistanceBolt(WithHull):
    """A bolt along the z axis, from its head, which ends at the plane z = 0, down to z = -1 m."""

    name = "sdf_bolt"
    size_names = ("thread radius", "half-width of the head", "height of the head")

    def signed_distance(self, shape: Shape, point: Vec3) -> jax.Array:
        """Return the smaller of the distances from the shaft and from the head.

        Source: MuJoCo's plugin `mujoco.sdf.bolt`, for the function and its constants.
        """
        radius = shape.size.x
        ends = jnp.abs(point.z + 0.5 * _LENGTH) - 0.5 * _LENGTH
        point_end = -cone(point, radius) - _LENGTH * SQRT_HALF
        shaft = jnp.maximum(jnp.maximum(thread(point, radius), ends), point_end)
        return jnp.minimum(shaft, head(point, *shape.size))


SDF_BOLT = SignedDistanceBolt()
