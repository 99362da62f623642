"""A torus on a plane."""

from brax.colliders import Collider, Shape, Touch
from brax.components import normalize


class PlaneTorus(Collider):
    """One point, below the lowest point of the ring."""

    types = ("plane", "torus")
    n_contacts = 1

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """The ring's lowest point, as the centre of a ball of the tube's radius."""
        normal = a.axis_z
        x, _, z = b.rot.matrix()
        downhill, _ = normalize(z * normal.dot(z) - normal, fallback=x)
        lowest = b.pos + downhill * b.size.x
        dist = (lowest - a.pos).dot(normal) - b.size.y
        return [Touch(dist, lowest - normal * (b.size.y + 0.5 * dist), normal)]


PLANE_TORUS = PlaneTorus()
