"""The geometry type `sphere`."""

import jax

from brax.colliders import rays
from brax.colliders.interface import GeometryType, Shape
from brax.colliders.shapes.clamping import shorten
from brax.components import Vec3


class SphereGeometry(GeometryType):
    """A sphere around the frame's origin."""

    name = "sphere"
    size_names = ("radius",)
    stops_rays = True
    wrapped = "point"
    streamed = True
    corners = 1

    def nearest(self, shape: Shape, point: Vec3) -> Vec3:
        """Shorten the vector from the centre to the radius."""
        return shorten(point, shape.size.x)

    def semi_axes(self, size: Vec3) -> Vec3:
        """Return the radius three times."""
        return Vec3(size.x, size.x, size.x)

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """Return the point of the surface whose normal is the direction."""
        return direction * shape.size.x

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """Return the distance to the nearer side, or from within to the farther one."""
        return rays.first(rays.ball(origin, direction, size.x))


SPHERE = SphereGeometry()
