"""The geometry type `sdf_nut`: MuJoCo's nut."""

import jax
import jax.numpy as jnp

from brax.colliders.interface import Shape
from brax.colliders.shapes.hull import WithHull
from brax.colliders.shapes.threads import SQRT_HALF, cone, head, thread
from brax.components import Vec3

_FUNNELS = 0.5, 0.05
"""Distances along the axis at which the hole's thread ends and the funnel above it begins [m]."""


class SignedDistanceNut(WithHull):
    """A hexagonal nut below the plane z = 0, with a thread around the z axis."""

    name = "sdf_nut"
    size_names = ("thread radius", "half-width", "height")

    def signed_distance(self, shape: Shape, point: Vec3) -> jax.Array:
        """Return the distance from the head without the hole, which is a screw and a funnel.

        Source: MuJoCo's plugin `mujoco.sdf.nut`, for the function and its constants.
        """
        end, funnel = (depth * SQRT_HALF for depth in _FUNNELS)
        radius = shape.size.x
        above = cone(point, radius)
        hole = jnp.maximum(thread(point, radius), -above - end)
        hole = jnp.minimum(hole, -above - funnel)
        return jnp.maximum(head(point, *shape.size), -hole)


SDF_NUT = SignedDistanceNut()
