"""A capsule."""

import jax

from brax.colliders import rays
from brax.colliders.interface import GeometryType, Shape
from brax.colliders.shapes.clamping import clip_size, shorten, sign
from brax.components import Vec3


class CapsuleGeometry(GeometryType):
    """A capsule along the frame's z axis."""

    name = "capsule"
    size_names = ("radius", "half-length")
    stops_rays = True
    streamed = True
    corners = 2

    def nearest(self, shape: Shape, point: Vec3) -> Vec3:
        """Towards the nearest point of its middle line."""
        z = clip_size(point.z, shape.size.y)
        away = shorten(point._replace(z=point.z - z), shape.size.x)
        return away._replace(z=away.z + z)

    def semi_axes(self, size: Vec3) -> Vec3:
        """As long as the capsule is."""
        return Vec3(size.x, size.x, size.x + size.y)

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """On the ball at the farther end."""
        point = direction * shape.size.x
        return point._replace(z=point.z + sign(direction.z) * shape.size.y)

    def face(self, shape: Shape, direction: Vec3) -> list[Vec3]:
        """The line along its side."""
        point = direction * shape.size.x
        return [point._replace(z=point.z + side * shape.size.y) for side in (-1.0, 1.0)]

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """Its side, or the ball at either end."""
        hits = rays.tube(origin, direction, size.x, size.y)
        for end in (-1.0, 1.0):
            start = origin._replace(z=origin.z - end * size.y)
            for t, met in rays.ball(start, direction, size.x):
                hits.append((t, met & (end * (start.z + t * direction.z) >= 0)))
        return rays.first(hits)


CAPSULE = CapsuleGeometry()
