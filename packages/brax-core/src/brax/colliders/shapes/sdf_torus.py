"""The geometry type `sdf_torus`: MuJoCo's torus, a tube bent into a ring."""

import jax
import numpy as np

from brax.colliders.interface import GeometryType, Shape
from brax.colliders.shapes.revolution import revolved
from brax.components import Vec3, sqrt


class SignedDistanceTorus(GeometryType):
    """A tube of radius `size[1]`, bent into a ring of radius `size[0]` around the z axis."""

    name = "sdf_torus"
    size_names = ("ring radius", "tube radius")

    def signed_distance(self, shape: Shape, point: Vec3) -> jax.Array:
        """Return the distance from the ring's circle, less the tube's radius."""
        aside = sqrt(point.x * point.x + point.y * point.y) - shape.size.x
        return sqrt(aside * aside + point.z * point.z) - shape.size.y

    def mesh(
        self, size: np.ndarray, points: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the circle of the tube, revolved."""
        angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
        return revolved(size[0] + size[1] * np.cos(angle), size[1] * np.sin(angle))


SDF_TORUS = SignedDistanceTorus()
