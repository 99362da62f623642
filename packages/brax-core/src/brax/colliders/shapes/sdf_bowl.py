"""The geometry type `sdf_bowl`: MuJoCo's bowl, a part of a sphere's surface with a thickness."""

import jax
import jax.numpy as jnp
import numpy as np

from brax.colliders.interface import GeometryType, Shape
from brax.colliders.shapes.revolution import revolved
from brax.components import Vec3, sqrt


class SignedDistanceBowl(GeometryType):
    """The points up to `size[1]` from a spherical cap, which is open at the top.

    The cap is the part of the sphere of radius `size[0]` around the origin below the height
    `size[2]`.
    """

    name = "sdf_bowl"
    size_names = ("radius", "thickness")

    def signed_distance(self, shape: Shape, point: Vec3) -> jax.Array:
        """Return the distance from the cap, or from its rim above that, less the thickness.

        Source: the bowl in the documentation of MuJoCo Warp, section SDF plugins.
        """
        radius, thickness, height = shape.size
        rim = sqrt(radius * radius - height * height)
        aside = sqrt(point.x * point.x + point.y * point.y)
        # The cone through the rim separates the points that are nearest to the rim.
        above = height * aside < rim * point.z
        x, z = aside - rim, point.z - height
        off = jnp.abs(sqrt(aside * aside + point.z * point.z) - radius)
        return jnp.where(above, sqrt(x * x + z * z), off) - thickness

    def mesh(
        self, size: np.ndarray, points: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the profile of the cap, revolved: outside, round the rim, and inside back."""
        radius, thickness, height = size
        polar = np.arcsin(np.clip(height / radius, -1, 1))
        cap, half = np.linspace(-np.pi / 2, polar, 24), np.linspace(polar, polar + np.pi, 9)
        rim = [radius * np.cos(polar), radius * np.sin(polar)]
        outer, inner = (
            np.stack([r * np.cos(cap), r * np.sin(cap)])
            for r in (radius + thickness, radius - thickness)
        )
        round_ = np.stack([rim[0] + thickness * np.cos(half), rim[1] + thickness * np.sin(half)])
        return revolved(*np.concatenate([outer, round_[:, 1:-1], inner[:, ::-1]], axis=1))


SDF_BOWL = SignedDistanceBowl()
