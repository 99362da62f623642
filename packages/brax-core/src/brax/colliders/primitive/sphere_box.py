"""A sphere and a box."""

import jax
import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.components import Mat3, Vec3, normalize


def ball_and_box(centre: Vec3, radius: jax.Array, box: Shape, axes: Mat3) -> Touch:
    """The point between a ball and a box; a centre inside leaves by the nearest face.

    Args:
        centre: of the ball.
        radius: of the ball [m].
        box: the box.
        axes: its axes.
    """
    c = axes.inv_rotate(centre - box.pos)
    over = [jnp.abs(x) - h for x, h in zip(c, box.size, strict=True)]
    side = Vec3(*(jnp.where(x < 0, -1.0, 1.0) for x in c))
    least = jnp.maximum(jnp.maximum(over[0], over[1]), over[2])
    on_x, on_y = over[0] >= least, over[1] >= least
    one = jnp.ones_like(least)
    face = Vec3(one * on_x, one * (on_y & ~on_x), one * ~(on_x | on_y))
    face = Vec3(*(f * s for f, s in zip(face, side, strict=True)))
    out, length = normalize(
        Vec3(*(jnp.maximum(o, 0.0) * s for o, s in zip(over, side, strict=True))), face
    )
    inside = least <= 0
    out = Vec3(*(jnp.where(inside, f, o) for f, o in zip(face, out, strict=True)))
    dist = jnp.where(inside, least, length) - radius
    normal = -axes.rotate(out)
    return Touch(dist, centre + normal * (radius + 0.5 * dist), normal)


class SphereBox(Collider):
    """One point, between the sphere and the nearest point of the box."""

    types = ("sphere", "box")
    n_contacts = 1

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """The sphere as a ball."""
        return [ball_and_box(a.pos, a.size.x, b, b.rot.matrix())]


SPHERE_BOX = SphereBox()
