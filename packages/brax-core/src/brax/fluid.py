"""The drag of a medium: each link as the box that has its inertia, or as ellipsoids of its geoms.

Source: MuJoCo's documentation, chapter Computation, section Passive forces, inertia model.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.components import Mat3, Vec3, rows, vec3
from brax.spatial import Spatial
from brax.streams import Streams, stream_forces, streams

THINNEST = 1e-15
"""Least square of a side, for moments that no box has."""


class Medium(NamedTuple):
    """What the medium does to each link; torque and force along its principal axes."""

    wind: Vec3
    """Velocity of the medium, world axes (1, batch)."""
    viscous: tuple[jax.Array, jax.Array]
    """Resistance to turning and to moving, of the sphere as wide as the box on average."""
    drag: tuple[Vec3, Vec3]
    """The same by the squares of the velocities, of the box."""
    streams: Streams | None
    """The geoms that it streams around; a link that has any is no box."""


def medium(sys: System, order: tuple[int, ...]) -> Medium:
    """The medium of a model whose leaves have a trailing batch axis, links in a given order."""
    mass, i = rows((sys.link.inertia.mass, vec3(sys.link.inertia.i)), order)
    squares = [x * (6.0 / mass) for x in (i.y + i.z - i.x, i.z + i.x - i.y, i.x + i.y - i.z)]
    a, b, c = (jnp.sqrt(jnp.maximum(s, THINNEST)) for s in squares)
    width, option = (a + b + c) / 3.0, sys.opt
    sticky = np.pi * option.viscosity * width
    dense = option.density
    fourth = Vec3(a**4, b**4, c**4)
    turning = Vec3(a * (fourth.y + fourth.z), b * (fourth.z + fourth.x), c * (fourth.x + fourth.y))
    viscous = (sticky * width * width, 3.0 * sticky)
    drag = (turning * (dense / 64.0), Vec3(b * c, c * a, a * b) * (0.5 * dense))
    around = streams(sys, order)
    if around is not None:
        box = jnp.array([[float(k not in around.link)] for k in range(len(order))], mass.dtype)
        viscous, drag = jax.tree.map(lambda x: x * box, (viscous, drag))
    return Medium(Vec3(*(option.wind[k : k + 1] for k in range(3))), viscous, drag, around)


def resist(medium: Medium, axes: Mat3, velocity: Spatial) -> Spatial:
    """The medium's torque and force on each link.

    Args:
        medium: what it does to them.
        axes: their principal axes, components (links, batch).
        velocity: angular velocity, and velocity of the centre of mass, world axes.

    Returns:
        About the centre of mass, world axes.
    """
    relative = Spatial(velocity.ang, velocity.lin - medium.wind)
    found = Spatial(
        *(
            _against(axes.inv_rotate(v), sticky, drag)
            for v, sticky, drag in zip(relative, medium.viscous, medium.drag, strict=True)
        )
    )
    if medium.streams is not None:
        found = found + stream_forces(medium.streams, axes, relative, len(found.ang.x))
    return Spatial(axes.rotate(found.ang), axes.rotate(found.lin))


def _against(v: Vec3, sticky: jax.Array, drag: Vec3) -> Vec3:
    return Vec3(*(-(sticky + d * jnp.abs(x)) * x for x, d in zip(v, drag, strict=True)))
