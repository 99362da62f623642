"""A torus on a plane."""

from brax.colliders import Collider, Shape, Touch
from brax.components import normalize


class PlaneTorus(Collider):
    """Four points, below the lowest point of the ring and each quarter turn from it."""

    types = ("plane", "torus")
    n_contacts = 4

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Points of the ring, as centres of balls of the tube's radius."""
        normal = a.axis_z
        x, _, z = b.rot.matrix()
        downhill, _ = normalize(z * normal.dot(z) - normal, fallback=x)
        touches = []
        for out in (downhill, z.cross(downhill), -downhill, downhill.cross(z)):
            centre = b.pos + out * b.size.x
            dist = (centre - a.pos).dot(normal) - b.size.y
            touches.append(Touch(dist, centre - normal * (b.size.y + 0.5 * dist), normal))
        return touches


PLANE_TORUS = PlaneTorus()
