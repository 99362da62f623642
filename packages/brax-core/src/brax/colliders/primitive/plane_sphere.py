"""A sphere on a plane."""

import jax
import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.components import Vec3


def plane_and_ball(plane: Shape, centre: Vec3, radius: jax.Array) -> Touch:
    """The point between a plane and a ball."""
    normal = plane.axis_z
    height = (centre - plane.pos).dot(normal)
    dist = height - radius
    return Touch(dist, centre - normal * (radius + 0.5 * dist), normal)


def plane_and_point(plane: Shape, point: Vec3) -> Touch:
    """A plane against one point of a surface."""
    return plane_and_ball(plane, point, jnp.zeros_like(point.x))


class PlaneSphere(Collider):
    """One point, below the centre."""

    types = ("plane", "sphere")
    n_contacts = 1

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """The sphere's lowest point against the plane."""
        return [plane_and_ball(a, b.pos, b.size.x)]


PLANE_SPHERE = PlaneSphere()
