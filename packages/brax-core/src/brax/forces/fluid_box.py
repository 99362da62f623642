"""The drag of a medium: each body as the box that has its inertia, or as ellipsoids of its geoms.

Source: MuJoCo's documentation, chapter Computation, section Passive forces, inertia model.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import Option, System
from brax.components import Mat3, Vec3, rows, vec3
from brax.forces.attached_frames import AttachedFrames, attach_frames
from brax.forces.fluid_ellipsoid import FluidEllipsoids, ellipsoid_forces, fluid_ellipsoids
from brax.spatial import Spatial

MIN_SQUARED_SIDE = 1e-15
"""Least square of a side, for moments that no box has."""


class FluidBoxes(NamedTuple):
    """What the medium does to boxes; torque and force along their axes, components (boxes, 1)."""

    viscous: tuple[jax.Array, jax.Array]
    """Resistance to turning and to moving, of the sphere as wide as the box on average."""
    drag: tuple[Vec3, Vec3]
    """The same by the squares of the velocities, of the box."""


class Medium(NamedTuple):
    """What the medium does to the links."""

    wind: Vec3
    """Velocity of the medium, world axes (1, batch)."""
    links: FluidBoxes
    """The boxes that have the inertia of the links; zero for links that are no such box."""
    parts: tuple[AttachedFrames, FluidBoxes] | None
    """The bodies that are boxes of their own, parts of links; None if there are none."""
    streams: FluidEllipsoids | None
    """The geoms that it streams around; None if there are none."""


def medium(sys: System, order: tuple[int, ...]) -> Medium:
    """The medium of a model whose leaves have a trailing batch axis, links in a given order."""
    mass, moments = rows((sys.link.inertia.mass, vec3(sys.link.inertia.i)), order)
    links, around, parts = _boxes(sys.opt, mass, moments), fluid_ellipsoids(sys, order), None
    others = () if around is None else around.at.link
    if sys.box_link:
        parts = attach_frames(sys, order, sys.box.transform, sys.box_link), _parts(sys)
        others += parts[0].link
    if others:
        whole = jnp.array([[float(k not in others)] for k in range(len(order))], mass.dtype)
        links = jax.tree.map(lambda x: x * whole, links)
    wind = Vec3(*(sys.opt.wind[k : k + 1] for k in range(3)))
    return Medium(wind, links, parts, around)


def _parts(sys: System) -> FluidBoxes:
    """The boxes of bodies that are parts of links, by their shares of the links' inertia."""
    mass, moments = rows((sys.link.inertia.mass, vec3(sys.link.inertia.i)), sys.box_link)
    together = moments.x + moments.y + moments.z
    return _boxes(sys.opt, sys.box.mass * mass, vec3(sys.box.i) * together)


def _boxes(option: Option, mass: jax.Array, i: Vec3) -> FluidBoxes:
    """The boxes that have masses and principal moments of inertia."""
    squares = [x * (6.0 / mass) for x in (i.y + i.z - i.x, i.z + i.x - i.y, i.x + i.y - i.z)]
    a, b, c = (jnp.sqrt(jnp.maximum(s, MIN_SQUARED_SIDE)) for s in squares)
    width, dense = (a + b + c) / 3.0, option.density
    sticky = np.pi * option.viscosity * width
    fourth = Vec3(a**4, b**4, c**4)
    turning = Vec3(a * (fourth.y + fourth.z), b * (fourth.z + fourth.x), c * (fourth.x + fourth.y))
    drag = (turning * (dense / 64.0), Vec3(b * c, c * a, a * b) * (0.5 * dense))
    return FluidBoxes((sticky * width * width, 3.0 * sticky), drag)


def resist(medium: Medium, axes: Mat3, velocity: Spatial) -> Spatial:
    """The medium's torque and force on each link.

    Args:
        medium: what it does to them.
        axes: their principal axes, components (links, batch).
        velocity: angular velocity, and velocity of the centre of mass, world axes.

    Returns:
        About the centre of mass, world axes.
    """
    ang, lin = axes.inv_rotate(velocity.ang), axes.inv_rotate(velocity.lin - medium.wind)
    relative, n_links = Spatial(ang, lin), len(ang.x)
    found = _resist(medium.links, relative)
    if medium.parts is not None:
        at, boxes = medium.parts
        found = found + at.on_links(_resist(boxes, at.velocity(relative)), n_links)
    if medium.streams is not None:
        found = found + ellipsoid_forces(medium.streams, relative, n_links)
    return Spatial(axes.rotate(found.ang), axes.rotate(found.lin))


def _resist(boxes: FluidBoxes, velocity: Spatial) -> Spatial:
    """Torque and force on boxes, along their axes, as their velocities are."""
    return Spatial(
        *(
            _against(v, sticky, drag)
            for v, sticky, drag in zip(velocity, boxes.viscous, boxes.drag, strict=True)
        )
    )


def _against(v: Vec3, sticky: jax.Array, drag: Vec3) -> Vec3:
    return Vec3(*(-(sticky + d * jnp.abs(x)) * x for x, d in zip(v, drag, strict=True)))
