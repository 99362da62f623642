"""The collider of two spheres."""

import jax
import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.components import Vec3, normalize


def ball_and_ball(
    centre1: Vec3,
    radius1: jax.Array,
    centre2: Vec3,
    radius2: jax.Array,
    fallback: Vec3 | None = None,
) -> Touch:
    """Return the contact of two balls.

    Args:
        centre1: centre of the first ball, world axes [m].
        radius1: radius of the first ball [m].
        centre2: centre of the second ball, world axes [m].
        radius2: radius of the second ball [m].
        fallback: the normal of concentric balls, which have no direction between them; by default
            along z.
    """
    if fallback is None:
        zero = jnp.zeros_like(centre1.x)
        fallback = Vec3(zero, zero, zero + 1.0)
    normal, length = normalize(centre2 - centre1, fallback)
    dist = length - radius1 - radius2
    return Touch(dist, centre1 + normal * (radius1 + 0.5 * dist), normal)


class SphereSphere(Collider):
    """Collider with one point, on the line through the centres."""

    types = ("sphere", "sphere")
    n_contacts = 1

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Return the contact of the two spheres."""
        return [ball_and_ball(a.pos, a.size.x, b.pos, b.size.x)]


SPHERE_SPHERE = SphereSphere()
