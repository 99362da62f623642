"""A cylinder on a plane."""

import jax.numpy as jnp

from brax.colliders.convex.contact_derivatives import downhill_of
from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.primitive.plane_sphere import plane_and_point


class PlaneCylinder(Collider):
    """Four points: the lowest of each rim, and two more of the lower rim, a third of a turn off.

    So it stands on three points, and lies on two.
    """

    types = ("plane", "cylinder")
    n_contacts = 4

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """The rims' points against the plane."""
        normal = a.axis_z
        z, cosine = b.axis_z, b.axis_z.dot(normal)
        downhill = downhill_of(b, normal)
        radius = b.size.x
        end = z * (b.size.y * jnp.where(cosine > 0, -1.0, 1.0))
        out, side = downhill * radius, z.cross(downhill) * (radius * 0.75**0.5)
        rim = [end + out, out - end, end - out * 0.5 + side, end - out * 0.5 - side]
        return [plane_and_point(a, b.pos + point) for point in rim]


PLANE_CYLINDER = PlaneCylinder()
