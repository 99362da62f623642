"""A capsule on a plane."""

from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.plane_sphere import plane_and_ball


class PlaneCapsule(Collider):
    """Two points, one below each end."""

    types = ("plane", "capsule")
    n_contacts = 2

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """The balls at the capsule's ends against the plane."""
        half = b.axis_z * b.size.y
        return [plane_and_ball(a, end, b.size.x) for end in (b.pos + half, b.pos - half)]


PLANE_CAPSULE = PlaneCapsule()
