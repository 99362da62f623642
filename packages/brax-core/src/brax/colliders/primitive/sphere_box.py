"""The collider of a sphere and a box."""

import jax
import jax.numpy as jnp

from brax.colliders.interface import Collider, Shape, Touch
from brax.components import Mat3, Vec3, normalize


def ball_and_box(centre: Vec3, radius: jax.Array, box: Shape, axes: Mat3) -> Touch:
    """Return the contact of a ball and a box.

    If the centre is outside of the box, the contact is at the box's nearest point (Ericson 2005,
    Real-Time Collision Detection, section 5.1.3). If it is inside, the ball leaves by the nearest
    face.

    Args:
        centre: centre of the ball, world axes [m].
        radius: radius of the ball [m].
        box: the box.
        axes: the box's axes.
    """
    c = axes.inv_rotate(centre - box.pos)
    # Distance of the centre from each pair of faces, negative between them.
    over = [jnp.abs(x) - h for x, h in zip(c, box.size, strict=True)]
    side = Vec3(*(jnp.where(x < 0, -1.0, 1.0) for x in c))
    least = jnp.maximum(jnp.maximum(over[0], over[1]), over[2])
    # The nearest face as a one-hot vector; of equal distances the first axis wins.
    on_x, on_y = over[0] >= least, over[1] >= least
    one = jnp.ones_like(least)
    face = Vec3(one * on_x, one * (on_y & ~on_x), one * ~(on_x | on_y))
    face = Vec3(*(f * s for f, s in zip(face, side, strict=True)))
    # The vector from the nearest point of the box to the centre. A centre on or in the box has
    # none, and the normal of the nearest face takes its place.
    out, length = normalize(
        Vec3(*(jnp.maximum(o, 0.0) * s for o, s in zip(over, side, strict=True))), face
    )
    inside = least <= 0
    out = Vec3(*(jnp.where(inside, f, o) for f, o in zip(face, out, strict=True)))
    dist = jnp.where(inside, least, length) - radius
    normal = -axes.rotate(out)
    return Touch(dist, centre + normal * (radius + 0.5 * dist), normal)


class SphereBox(Collider):
    """Collider with one point, at the nearest point of the box."""

    types = ("sphere", "box")
    n_contacts = 1

    def collide(self, a: Shape, b: Shape) -> list[Touch]:
        """Return the contact of the sphere and the box."""
        return [ball_and_box(a.pos, a.size.x, b, b.rot.matrix())]


SPHERE_BOX = SphereBox()
