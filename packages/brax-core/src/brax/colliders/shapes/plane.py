"""An infinite plane."""

import jax
import jax.numpy as jnp

from brax.colliders import rays
from brax.colliders.interface import GeometryType, Shape
from brax.components import Vec3


class PlaneGeometry(GeometryType):
    """An infinite plane; its normal is the frame's z axis. Its sizes only matter for drawing."""

    name = "plane"
    size_names = ()
    stops_rays = True
    only_static = True

    def nearest(self, shape: Shape, point: Vec3) -> Vec3:
        """Straight below, of the half-space."""
        return point._replace(z=jnp.where(point.z > 0, 0.0, point.z))

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """From above alone, and within what is drawn of it; a side of zero has no end."""
        t, met = rays.level(origin.z, direction.z, jnp.zeros_like(origin.z))
        at = rays.along(origin, direction, t)
        for x, half in ((at.x, size.x), (at.y, size.y)):
            met = met & ((half <= 0) | (jnp.abs(x) <= half))
        return rays.first([(t, met & (origin.z > 0))])


PLANE = PlaneGeometry()
