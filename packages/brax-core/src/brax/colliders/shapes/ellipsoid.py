"""An ellipsoid."""

import jax
import jax.numpy as jnp

from brax.colliders import rays
from brax.colliders.interface import GeometryType, Shape
from brax.components import Vec3, normalize


class EllipsoidGeometry(GeometryType):
    """An ellipsoid along the frame's axes."""

    name = "ellipsoid"
    size_names = ("semi-axis x", "semi-axis y", "semi-axis z")
    stops_rays = True
    streamed = True
    corners = 1

    def semi_axes(self, size: Vec3) -> Vec3:
        """Its own."""
        return size

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """The point of the surface with that normal."""

        def stretch(v: Vec3) -> Vec3:
            return Vec3(*(c * h for c, h in zip(v, shape.size, strict=True)))

        unit, _ = normalize(stretch(direction))
        return stretch(unit)

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """A ball where lengths along its axes are counted by them."""
        start, way = (
            Vec3(*(c / h for c, h in zip(v, size, strict=True))) for v in (origin, direction)
        )
        return rays.first(rays.ball(start, way, jnp.ones_like(start.x)))


ELLIPSOID = EllipsoidGeometry()
