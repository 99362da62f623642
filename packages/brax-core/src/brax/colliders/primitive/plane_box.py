"""The collider of a plane and a box."""

import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.primitive.plane_sphere import plane_and_ball


class PlaneBox(Collider):
    """Collider with four points: the lower one of each two opposite vertices of the box."""

    types = ("plane", "box")
    n_contacts = 4

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Return the lower vertices, as balls without radius."""
        # The deepest vertex is always one of them. The four lowest ones would need a sort, and a
        # box that stands on a face has the same four in both rules.
        normal = a.axis_z
        x, y, z = (axis * half for axis, half in zip(b.rot.matrix(), b.size, strict=True))
        corners = [x + y + z, x + y - z, x - y + z, y + z - x]
        lower = [corner * jnp.where(corner.dot(normal) > 0, -1.0, 1.0) for corner in corners]
        return [plane_and_ball(a, b.pos + corner, jnp.zeros_like(b.size.x)) for corner in lower]


PLANE_BOX = PlaneBox()
