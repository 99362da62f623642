"""The collider of a plane and an ellipsoid."""

from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.primitive.plane_sphere import plane_and_point
from brax.colliders.shapes.ellipsoid import ELLIPSOID


class PlaneEllipsoid(Collider):
    """Collider with one point, at the lowest point of the ellipsoid."""

    types = ("plane", "ellipsoid")
    n_contacts = 1

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Collide the support point against the plane's normal with the plane."""
        axes = b.rot.matrix()
        down = axes.inv_rotate(-a.axis_z)
        return [plane_and_point(a, b.pos + axes.rotate(ELLIPSOID.support(b, down)))]


PLANE_ELLIPSOID = PlaneEllipsoid()
