"""The geometry type `ellipsoid`."""

import jax
import jax.numpy as jnp

from brax.colliders import rays
from brax.colliders.interface import GeometryType, Shape
from brax.components import Vec3, normalize


class EllipsoidGeometry(GeometryType):
    """An ellipsoid whose semi-axes are along the frame's axes."""

    name = "ellipsoid"
    size_names = ("semi-axis x", "semi-axis y", "semi-axis z")
    stops_rays = True
    streamed = True
    corners = 1

    def semi_axes(self, size: Vec3) -> Vec3:
        """Return its own semi-axes."""
        return size

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """Return the point of the surface whose normal is the direction."""
        # An ellipsoid is the unit ball stretched by S, so that its support point along n is
        # S (S n) / |S n|.

        def stretch(v: Vec3) -> Vec3:
            """Scale a vector by the semi-axes."""
            return Vec3(*(c * h for c, h in zip(v, shape.size, strict=True)))

        unit, _ = normalize(stretch(direction))
        return stretch(unit)

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """Intersect the ray with the unit ball, in coordinates divided by the semi-axes."""
        # The division scales the direction too, so the ray's parameter keeps its meaning.
        start, way = (
            Vec3(*(c / h for c, h in zip(v, size, strict=True))) for v in (origin, direction)
        )
        return rays.first(rays.ball(start, way, jnp.ones_like(start.x)))


ELLIPSOID = EllipsoidGeometry()
