"""The torus: a ring around the frame's z axis."""

import jax
import numpy as np

from brax.colliders import GeometryType, Shape
from brax.components import Vec3, sqrt


class Torus(GeometryType):
    """A tube of radius `size[1]` bent into a ring of radius `size[0]` [m]."""

    name = "torus"
    size_names = ("ring radius", "tube radius")

    def signed_distance(self, shape: Shape, point: Vec3) -> jax.Array:
        """Return the distance of points to the tube's surface [m], negative inside."""
        aside = sqrt(point.x * point.x + point.y * point.y) - shape.size.x
        return sqrt(aside * aside + point.z * point.z) - shape.size.y

    def mesh(
        self, size: np.ndarray, points: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a grid of 32 by 16 points over the two angles."""
        n, m = 32, 16
        i, j = (a.ravel() for a in np.meshgrid(np.arange(n), np.arange(m), indexing="ij"))
        ring, tube = 2 * np.pi * i / n, 2 * np.pi * j / m
        reach = size[0] + size[1] * np.cos(tube)
        vertices = [reach * np.cos(ring), reach * np.sin(ring), size[1] * np.sin(tube)]
        right, up = (i + 1) % n, (j + 1) % m
        a, b, c, d = i * m + j, right * m + j, right * m + up, i * m + up
        triangles = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
        return np.stack(vertices, axis=1), triangles


TORUS = Torus()
