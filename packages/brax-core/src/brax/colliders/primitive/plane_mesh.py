"""The collider of a plane and a shape with the vertices of its convex hull."""

import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.primitive.plane_sphere import plane_and_point
from brax.colliders.shapes.mesh import farthest_four


class PlaneMesh(Collider):
    """Collider with four points: vertices of the lowest face, of large area.

    Points that the face lacks are far apart. A plane touches a shape that is not convex only where
    its hull does.
    """

    types = ("plane", "mesh")
    n_contacts = 4

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Collide the vertices of the lowest face with the plane."""
        axes = b.rot.matrix()
        touches = []
        for corner in farthest_four(b, axes.inv_rotate(-a.axis_z)):
            touch = plane_and_point(a, b.pos + axes.rotate(corner.point))
            # Farther than the real point at this place, and above zero, so that it never touches.
            far = jnp.abs(touch.dist) + 1.0
            touches.append(touch._replace(dist=jnp.where(corner.z < jnp.inf, touch.dist, far)))
        return touches


class PlaneSdf(PlaneMesh):
    """Collider of a plane and a shape that is known by a grid of distances."""

    types = ("plane", "sdf")


class PlaneBolt(PlaneMesh):
    """Collider of a plane and a bolt."""

    types = ("plane", "sdf_bolt")


class PlaneGear(PlaneMesh):
    """Collider of a plane and a gear."""

    types = ("plane", "sdf_gear")


class PlaneNut(PlaneMesh):
    """Collider of a plane and a nut."""

    types = ("plane", "sdf_nut")


PLANE_MESH = PlaneMesh()
PLANE_SDF, PLANE_BOLT, PLANE_GEAR, PLANE_NUT = PlaneSdf(), PlaneBolt(), PlaneGear(), PlaneNut()
