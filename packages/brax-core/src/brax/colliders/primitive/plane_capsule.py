"""The collider of a plane and a capsule."""

from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.primitive.plane_sphere import plane_and_ball


class PlaneCapsule(Collider):
    """Collider with two points, one below each end of the capsule."""

    types = ("plane", "capsule")
    n_contacts = 2

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Collide the balls at the capsule's ends with the plane."""
        # The first tangent follows the axis, as in MuJoCo, so that a capsule that lies on its side
        # has one edge of the friction pyramid along it.
        axis = b.axis_z
        ends = (b.pos + axis * b.size.y, b.pos - axis * b.size.y)
        return [plane_and_ball(a, end, b.size.x)._replace(along=axis) for end in ends]


PLANE_CAPSULE = PlaneCapsule()
