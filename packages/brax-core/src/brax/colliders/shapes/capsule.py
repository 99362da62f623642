"""The geometry type `capsule`."""

import jax

from brax.colliders import rays
from brax.colliders.interface import GeometryType, Shape
from brax.colliders.shapes.clamping import clip_size, shorten, sign
from brax.components import Vec3


class CapsuleGeometry(GeometryType):
    """A capsule along the frame's z axis: all points within a radius of a segment."""

    name = "capsule"
    size_names = ("radius", "half-length")
    stops_rays = True
    streamed = True
    corners = 2

    def nearest(self, shape: Shape, point: Vec3) -> Vec3:
        """Return the point towards the nearest point of the segment, at most a radius from it."""
        # The nearest point of the segment is the clamped height (Ericson 2005, section 5.1.2).
        z = clip_size(point.z, shape.size.y)
        away = shorten(point._replace(z=point.z - z), shape.size.x)
        return away._replace(z=away.z + z)

    def semi_axes(self, size: Vec3) -> Vec3:
        """Return the semi-axes of an ellipsoid as wide and as long as the capsule."""
        return Vec3(size.x, size.x, size.x + size.y)

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """Return the support point of the ball at the farther end."""
        # A capsule is the Minkowski sum of a ball and a segment, and support points add.
        point = direction * shape.size.x
        return point._replace(z=point.z + sign(direction.z) * shape.size.y)

    def face(self, shape: Shape, direction: Vec3) -> list[Vec3]:
        """Return the ends of the straight line along the side that faces the direction."""
        point = direction * shape.size.x
        return [point._replace(z=point.z + side * shape.size.y) for side in (-1.0, 1.0)]

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """Intersect the ray with the side and with the half-ball at either end."""
        hits = rays.tube(origin, direction, size.x, size.y)
        for end in (-1.0, 1.0):
            # Only the half of each ball beyond the segment's end is on the capsule's surface.
            start = origin._replace(z=origin.z - end * size.y)
            for t, met in rays.ball(start, direction, size.x):
                hits.append((t, met & (end * (start.z + t * direction.z) >= 0)))
        return rays.first(hits)


CAPSULE = CapsuleGeometry()
