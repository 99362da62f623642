"""The collider of a plane and a sphere."""

import jax
import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.components import Vec3


def plane_and_ball(plane: Shape, centre: Vec3, radius: jax.Array) -> Touch:
    """Return the contact of a plane and a ball.

    Args:
        plane: the planes.
        centre: centre of each ball, world axes [m].
        radius: radius of each ball [m].
    """
    normal = plane.axis_z
    height = (centre - plane.pos).dot(normal)
    dist = height - radius
    # The ball's lowest point is a radius below its centre, and the midpoint half the distance
    # lower.
    return Touch(dist, centre - normal * (radius + 0.5 * dist), normal)


def plane_and_point(plane: Shape, point: Vec3) -> Touch:
    """Return the contact of a plane and one point of another surface."""
    return plane_and_ball(plane, point, jnp.zeros_like(point.x))


class PlaneSphere(Collider):
    """Collider with one point, below the centre of the sphere."""

    types = ("plane", "sphere")
    n_contacts = 1

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Collide the sphere's lowest point with the plane."""
        return [plane_and_ball(a, b.pos, b.size.x)]


PLANE_SPHERE = PlaneSphere()
