"""A capsule on a plane."""

from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.primitive.plane_sphere import plane_and_ball


class PlaneCapsule(Collider):
    """Two points, one below each end."""

    types = ("plane", "capsule")
    n_contacts = 2

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """The balls at the capsule's ends against the plane."""
        axis = b.axis_z
        ends = (b.pos + axis * b.size.y, b.pos - axis * b.size.y)
        return [plane_and_ball(a, end, b.size.x)._replace(along=axis) for end in ends]


PLANE_CAPSULE = PlaneCapsule()
