"""Frames of links at their centres of mass, along the axes of the links."""

import jax
import jax.numpy as jnp

from brax import math
from brax.base import Motion, System, Transform


def from_world(sys: System, x: Transform, xd: Motion) -> tuple[Transform, Motion]:
    """Return the frames of links at their centres of mass, and the velocities there.

    Args:
        sys: the model.
        x: link frames in the world, shape (n_links, ...).
        xd: velocities of their origins [rad/s, m/s], world axes, shape (n_links, ...).

    Returns:
        Frames at the centres of mass, with the axes of the links, and the velocities there, world
        axes; both shape (n_links, ...).
    """
    x_i = x.do(Transform.create(pos=sys.link.inertia.transform.pos))
    return x_i, Transform.create(pos=x_i.pos - x.pos).do(xd)


def to_world(sys: System, x_i: Transform, xd_i: Motion) -> tuple[Transform, Motion]:
    """Return link frames and their velocities: the inverse of `from_world`.

    Args:
        sys: the model.
        x_i: frames at the centres of mass in the world, shape (n_links, ...).
        xd_i: velocities of the centres of mass [rad/s, m/s], world axes, shape (n_links, ...).

    Returns:
        Link frames in the world, and the velocities of their origins, world axes; both shape
        (n_links, ...).
    """
    x = x_i.do(Transform.create(pos=-sys.link.inertia.transform.pos))
    return x, Transform.create(pos=x.pos - x_i.pos).do(xd_i)


def inv_inertia(sys: System, x: Transform) -> jax.Array:
    """Return the inverse of each link's rotational inertia, world axes, shape (n_links, 3, 3)."""
    axes = math.quat_to_3x3(x.do(sys.link.inertia.transform).rot)
    scaled = axes / sys.link.inertia.moments[:, None, :]
    return jnp.matmul(scaled, jnp.swapaxes(axes, -1, -2), precision="highest")
