"""The collider of a sphere and a capsule."""

import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.colliders.primitive.sphere_sphere import ball_and_ball


class SphereCapsule(Collider):
    """Collider with one point, at the nearest point of the capsule's segment."""

    types = ("sphere", "capsule")
    n_contacts = 1

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Collide the sphere with the ball at the nearest point of the segment."""
        # The nearest point of a segment is the projection, clamped (Ericson 2005, section 5.1.2).
        axes = b.rot.matrix()
        axis = axes.z
        along = jnp.clip((a.pos - b.pos).dot(axis), -b.size.y, b.size.y)
        # A centre on the axis leaves across it, by the shortest way.
        return [ball_and_ball(a.pos, a.size.x, b.pos + axis * along, b.size.x, axes.x)]


SPHERE_CAPSULE = SphereCapsule()
