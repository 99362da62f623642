"""Shapes that are known by a signed distance, with the vertices of their convex hulls."""

import numpy as np

from brax.colliders.interface import GeometryType
from brax.colliders.shapes.mesh import MESH


class WithHull(GeometryType):
    """A shape that is not convex, whose `Shape.points` are the vertices of its convex hull.

    Planes collide with the hull, and pictures show it.
    """

    least_points = 4

    def mesh(
        self, size: np.ndarray, points: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the convex hull."""
        return MESH.mesh(size, points)
