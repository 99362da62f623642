"""The geometry type `box`."""

import jax
import jax.numpy as jnp

from brax.colliders import rays
from brax.colliders.interface import GeometryType, Shape
from brax.colliders.shapes.clamping import clip_size, sign
from brax.components import Vec3


class BoxGeometry(GeometryType):
    """A box whose edges are along the frame's axes."""

    name = "box"
    size_names = ("half-size x", "half-size y", "half-size z")
    stops_rays = True
    streamed = True
    corners = 4

    def nearest(self, shape: Shape, point: Vec3) -> Vec3:
        """Clamp each coordinate to the box (Ericson 2005, section 5.1.3)."""
        return Vec3(*(clip_size(c, h) for c, h in zip(point, shape.size, strict=True)))

    def semi_axes(self, size: Vec3) -> Vec3:
        """Return the half-sizes."""
        return size

    def support(self, shape: Shape, direction: Vec3) -> Vec3:
        """Return the vertex in the octant of the direction."""
        return Vec3(*(sign(d) * h for d, h in zip(direction, shape.size, strict=True)))

    def face(self, shape: Shape, direction: Vec3) -> list[Vec3]:
        """Return the face whose normal is nearest to the direction."""
        # The largest component of the direction is along that normal.
        x, y, z = (jnp.abs(d) for d in direction)
        on_x = (x >= y) & (x >= z)
        on_y = ~on_x & (y >= z)
        out, size = self.support(shape, direction), shape.size

        def corner(first: float, second: float) -> Vec3:
            """Return a vertex of the face by its signs along the two other axes."""
            return Vec3(
                jnp.where(on_x, out.x, first * size.x),
                jnp.where(on_y, out.y, jnp.where(on_x, first, second) * size.y),
                jnp.where(on_x | on_y, second * size.z, out.z),
            )

        # Around the face, so that consecutive vertices share an edge.
        return [corner(1, 1), corner(-1, 1), corner(-1, -1), corner(1, -1)]

    def ray(self, size: Vec3, origin: Vec3, direction: Vec3) -> jax.Array:
        """Intersect the ray with the six faces, from outside or inside."""
        # A hit counts if the point in the plane of a face is within the two other half-sizes.
        hits = []
        for k in range(3):
            for end in (-1.0, 1.0):
                t, met = rays.level(origin[k], direction[k], end * size[k])
                at = rays.along(origin, direction, t)
                for j in {0, 1, 2} - {k}:
                    met = met & (jnp.abs(at[j]) <= size[j])
                hits.append((t, met))
        return rays.first(hits)


BOX = BoxGeometry()
