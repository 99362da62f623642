"""Two spheres."""

import jax
import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.components import Vec3, normalize


def ball_and_ball(centre1: Vec3, radius1: jax.Array, centre2: Vec3, radius2: jax.Array) -> Touch:
    """The point between two balls; concentric ones are pushed apart along z."""
    up = Vec3(jnp.zeros_like(centre1.x), jnp.zeros_like(centre1.x), jnp.ones_like(centre1.x))
    normal, length = normalize(centre2 - centre1, up)
    dist = length - radius1 - radius2
    return Touch(dist, centre1 + normal * (radius1 + 0.5 * dist), normal)


class SphereSphere(Collider):
    """One point, on the line through the centres."""

    types = ("sphere", "sphere")
    n_contacts = 1

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """The two spheres."""
        return [ball_and_ball(a.pos, a.size.x, b.pos, b.size.x)]


SPHERE_SPHERE = SphereSphere()
