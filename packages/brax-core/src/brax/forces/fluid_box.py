"""Fluid forces, inertia-box model: each body is a box with the inertia of the body.

`Medium` also gathers the geoms that have the ellipsoid model of `fluid_ellipsoid`.

Source: MuJoCo's documentation, chapter Fluid forces, section Inertia model.
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
"""Smallest square of a side, for moments of inertia that no box has."""


class FluidBoxes(NamedTuple):
    """Coefficients of the fluid on boxes, components (boxes, 1)."""

    viscous: tuple[jax.Array, jax.Array]
    """Viscous resistance to rotation and to translation, of the sphere whose diameter is the mean
    side."""
    drag: tuple[Vec3, Vec3]
    """Drag of the box by the squares of angular and linear velocity, along its axes."""


class Medium(NamedTuple):
    """The fluid around the links."""

    wind: Vec3
    """Velocity of the fluid, world axes (1, batch)."""
    links: FluidBoxes
    """The boxes that have the inertia of the links; zero for links with other models."""
    parts: tuple[AttachedFrames, FluidBoxes] | None
    """Bodies that are boxes of their own, parts of fused links; None if there are none."""
    streams: FluidEllipsoids | None
    """The geoms with the ellipsoid model; None if there are none."""


def medium(sys: System, order: tuple[int, ...]) -> Medium:
    """Return the fluid of a model with a trailing batch axis, links in a given order."""
    mass, moments = rows((sys.link.inertia.mass, vec3(sys.link.inertia.moments)), order)
    links, around, parts = _boxes(sys.opt, mass, moments), fluid_ellipsoids(sys, order), None
    others = () if around is None else around.at.link
    if sys.box_link:
        parts = attach_frames(sys, order, sys.box.transform, sys.box_link), _parts(sys)
        others += parts[0].link
    if others:
        # A link with ellipsoid geoms, or whose parts are boxes of their own, has no inertia box
        # (MuJoCo: `fluidshape`).
        whole = jnp.array([[float(k not in others)] for k in range(len(order))], mass.dtype)
        links = jax.tree.map(lambda x: x * whole, links)
    wind = Vec3(*(sys.opt.wind[k : k + 1] for k in range(3)))
    return Medium(wind, links, parts, around)


def _parts(sys: System) -> FluidBoxes:
    """Return the boxes of bodies that are parts of links, from their shares of inertia."""
    mass, moments = rows((sys.link.inertia.mass, vec3(sys.link.inertia.moments)), sys.box_link)
    together = moments.x + moments.y + moments.z
    return _boxes(sys.opt, sys.box.mass * mass, vec3(sys.box.i) * together)


def _boxes(option: Option, mass: jax.Array, i: Vec3) -> FluidBoxes:
    """Return the boxes that have given masses and principal moments of inertia."""
    # A box with sides a, b, c has I_x = m (b² + c²) / 12, so that a² = 6 (I_y + I_z - I_x) / m.
    squares = [x * (6.0 / mass) for x in (i.y + i.z - i.x, i.z + i.x - i.y, i.x + i.y - i.z)]
    a, b, c = (jnp.sqrt(jnp.maximum(s, MIN_SQUARED_SIDE)) for s in squares)
    width, dense = (a + b + c) / 3.0, option.density
    # Stokes' law for a sphere of diameter D: force 3 pi beta D v and torque pi beta D³ w.
    sticky = np.pi * option.viscosity * width
    fourth = Vec3(a**4, b**4, c**4)
    # The documentation's quadratic drag: torque rho a (b⁴ + c⁴) |w| w / 64 and force rho b c |v| v
    # / 2.
    turning = Vec3(a * (fourth.y + fourth.z), b * (fourth.z + fourth.x), c * (fourth.x + fourth.y))
    drag = (turning * (dense / 64.0), Vec3(b * c, c * a, a * b) * (0.5 * dense))
    return FluidBoxes((sticky * width * width, 3.0 * sticky), drag)


def resist(medium: Medium, axes: Mat3, velocity: Spatial) -> Spatial:
    """Return the fluid's torque and force on each link.

    Args:
        medium: the fluid.
        axes: principal axes of the links, components (links, batch).
        velocity: angular velocity, and velocity of the centre of mass, world axes.

    Returns:
        About the centre of mass, world axes.
    """
    # Only the velocity relative to the fluid matters.
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
    """Return torque and force on boxes, along their axes, like their velocities."""
    return Spatial(
        *(
            _against(v, sticky, drag)
            for v, sticky, drag in zip(velocity, boxes.viscous, boxes.drag, strict=True)
        )
    )


def _against(v: Vec3, sticky: jax.Array, drag: Vec3) -> Vec3:
    """Return the linear and quadratic resistance to a velocity, along each axis."""
    return Vec3(*(-(sticky + d * jnp.abs(x)) * x for x, d in zip(v, drag, strict=True)))
