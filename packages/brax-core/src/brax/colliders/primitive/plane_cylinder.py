"""The collider of a plane and a cylinder."""

import jax.numpy as jnp

from brax.colliders.convex.contact_derivatives import downhill_of
from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.primitive.plane_sphere import plane_and_point


class PlaneCylinder(Collider):
    """Collider with four points: the lowest of each rim, and two more points of the lower rim.

    The two are a third of a turn from the lowest point. So a cylinder stands on three points, and
    lies on two.
    """

    types = ("plane", "cylinder")
    n_contacts = 4

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Collide the points of the rims with the plane."""
        normal = a.axis_z
        z, cosine = b.axis_z, b.axis_z.dot(normal)
        downhill = downhill_of(b, normal)
        radius = b.size.x
        end = z * (b.size.y * jnp.where(cosine > 0, -1.0, 1.0))
        # The points a third of a turn off have the coordinates -1/2 and +-sqrt(3/4) of the radius.
        out, side = downhill * radius, z.cross(downhill) * (radius * 0.75**0.5)
        rim = [end + out, out - end, end - out * 0.5 + side, end - out * 0.5 - side]
        return [plane_and_point(a, b.pos + point) for point in rim]


PLANE_CYLINDER = PlaneCylinder()
