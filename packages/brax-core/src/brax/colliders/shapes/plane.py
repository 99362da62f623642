"""The geometry type `plane`."""

import jax
import jax.numpy as jnp

from brax.colliders import rays
from brax.colliders.interface import GeometryType, Shape
from brax.components import Vec3


class PlaneGeometry(GeometryType):
    """An infinite plane whose normal is the frame's z axis.

    Its size parameters matter only for drawing and for rays.
    """

    name = "plane"
    size_names = ()
    stops_rays = True
    only_static = True

    def nearest(self, shape: Shape, point: Vec3) -> Vec3:
        """Return the nearest point of the half-space below the plane."""
        return point._replace(z=jnp.where(point.z > 0, 0.0, point.z))

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """Intersect the ray from above with the drawn rectangle; a size of zero is infinite."""
        # MuJoCo's rangefinders see a plane only from above, and within its rendered size.
        t, met = rays.level(origin.z, direction.z, jnp.zeros_like(origin.z))
        at = rays.along(origin, direction, t)
        for x, half in ((at.x, size.x), (at.y, size.y)):
            met = met & ((half <= 0) | (jnp.abs(x) <= half))
        return rays.first([(t, met & (origin.z > 0))])


PLANE = PlaneGeometry()
