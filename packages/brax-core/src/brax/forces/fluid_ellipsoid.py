"""Fluid forces, ellipsoid model: each geom is an ellipsoid of about its size.

The force on an ellipsoid that moves in a fluid is the sum of added mass, drag, viscous resistance,
Kutta lift and Magnus lift.

Source: MuJoCo's documentation, chapter Fluid forces, section Ellipsoid model; added mass: Lamb
(1932), Hydrodynamics, sections 114 and 115.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.components import Vec3, rows, sqrt, total, vec3
from brax.forces.attached_frames import AttachedFrames, attach_frames
from brax.spatial import Spatial

_SMALL_PRODUCT, _PRODUCT_SCALE = 2.0**-8, 2.0**16
"""Product of two semi-axes [m²], those of a ball of 6 cm, below which such products are scaled; and
the factor. Their squares' squares would be zero in single precision for a ball of 20 micrometres,
and those times the squared velocity for larger ones that are slow."""

_SLOW_SQUARED, _SPEED_SCALE = 2.0**-20, 2.0**30
"""Squared speed [m²/s²], of a millimetre in a second, below which velocities are scaled where only
their direction counts; and the factor. Both factors are powers of two, so that products are
exact."""

_MIN_SQUARED_SPEED = 1e-24
"""Squared speed [m²/s²] up to which the projected area counts as zero."""


class FluidEllipsoids(NamedTuple):
    """Coefficients of the fluid on geoms, constant, components (geoms, 1)."""

    at: AttachedFrames
    """Centres and axes of the geoms."""
    added: tuple[Vec3, Vec3]
    """Added inertia and added mass along the axes, times the density."""
    sides: Vec3
    """Products of the other two semi-axes, for each axis, scaled where they are small."""
    drag: tuple[jax.Array, jax.Array]
    """Coefficients of the squared velocity: of the part by projected area, divided by the scale of
    `sides`, and of the constant part."""
    turning: Vec3
    """Coefficients of the squared angular velocity."""
    viscous: tuple[jax.Array, jax.Array]
    """Viscous resistance to rotation and to translation."""
    lift: tuple[jax.Array, jax.Array]
    """Coefficients of Kutta lift, times the density and divided by the scale of `sides`, and of
    Magnus lift, times the displaced mass."""


def fluid_ellipsoids(sys: System, order: tuple[int, ...]) -> FluidEllipsoids | None:
    """Return the geoms with the ellipsoid model; None if there are none."""
    geoms = [
        g
        for g, (on, link) in enumerate(zip(sys.geom_streamed, sys.geom_link, strict=True))
        if on and link >= 0
    ]
    if not geoms:
        return None
    frame, numbers = rows((sys.geom.transform, sys.geom.fluid), geoms)
    owners = [sys.geom_link[g] for g in geoms]
    coefficient = [numbers[:, k] for k in range(11)]
    r = _semi_axes(sys, geoms)
    rho, mu = sys.opt.density, sys.opt.viscosity
    low, middle, high = jnp.sort(jnp.stack(r), axis=0)
    # MuJoCo's `fluidcoef` in its order; the numbers after them are the added mass and inertia.
    blunt, slender, angular, kutta, magnus = coefficient[:5]
    # The equivalent diameter is twice the mean semi-axis; 8/15 pi is the documentation's factor of
    # angular drag.
    width, eighths = (2.0 / 3.0) * (r.x + r.y + r.z), (8.0 / 15.0) * np.pi
    most = eighths * middle * high**4
    each = (
        eighths * a * jnp.maximum(b, c) ** 4 for a, b, c in (r, (r.y, r.z, r.x), (r.z, r.x, r.y))
    )
    # Drag and Kutta lift are proportional to the projected area, so their coefficients take back
    # the scale.
    scale = jnp.where(middle * high < _SMALL_PRODUCT, _PRODUCT_SCALE, 1.0)
    return FluidEllipsoids(
        attach_frames(sys, order, frame, owners),
        (Vec3(*coefficient[8:]) * rho, Vec3(*coefficient[5:8]) * rho),
        Vec3(r.y * r.z, r.z * r.x, r.x * r.y) * scale,
        (rho * (blunt - slender) / scale, rho * slender * np.pi * middle * high),
        Vec3(*((angular * own + slender * (most - own)) * rho for own in each)),
        (np.pi * mu * width**3, 3.0 * np.pi * mu * width),
        (kutta * rho / scale, magnus * rho * (4.0 / 3.0) * np.pi * low * middle * high),
    )


def _semi_axes(sys: System, geoms: list[int]) -> Vec3:
    """Return the semi-axes of the geoms' ellipsoids."""
    sizes = vec3(rows(sys.geom.size, geoms))
    each = [sys.geom_types[g].semi_axes(rows(sizes, [k])) for k, g in enumerate(geoms)]
    return Vec3(*(jnp.concatenate(x) for x in zip(*each, strict=True)))


def ellipsoid_forces(mine: FluidEllipsoids, velocity: Spatial, n_links: int) -> Spatial:
    """Return torque and force on each link about its centre of mass, along its principal axes.

    Args:
        mine: the geoms.
        velocity: velocity of the links in the fluid: angular, and of the centre of mass, along the
            principal axes.
        n_links: number of links.
    """
    return mine.at.on_links(_on_ellipsoid(mine, *mine.at.velocity(velocity)), n_links)


def _on_ellipsoid(mine: FluidEllipsoids, ang: Vec3, lin: Vec3) -> Spatial:
    """Return torque and force on ellipsoids, along their axes."""
    inertia, mass = mine.added
    # Momentum of the fluid that moves along; its change in the body's axes are the cross products
    # below (Kirchhoff's equations).
    momentum, spin = _times(mass, lin), _times(inertia, ang)
    squares = _times(mine.sides, mine.sides)
    fourth = _times(squares, squares)
    # Sums of (side products)² v² and (side products)⁴ v²: the projected area is pi sqrt(beyond /
    # across). Only the direction of the velocity counts, so that it may be scaled.
    squared_speed = lin.dot(lin)
    scale = jnp.where(squared_speed < _SLOW_SQUARED, _SPEED_SCALE, 1.0)
    along = lin * scale
    across = total(a * v * v for a, v in zip(squares, along, strict=True))
    beyond = total(a * v * v for a, v in zip(fourth, along, strict=True))
    # At rest the area is undefined; the guarded quotient keeps values and derivatives finite.
    moves = squared_speed > _MIN_SQUARED_SPEED
    ratio = jnp.where(moves, beyond, 1.0) / jnp.where(moves, across, 1.0)
    area = jnp.where(moves, np.pi * jnp.sqrt(ratio), 0.0)
    speed = sqrt(squared_speed)
    kutta, magnus = mine.lift
    # Kutta lift: projected area times the cosine between velocity and surface normal, divided by
    # the length of `normal` below, which is not a unit vector.
    below = jnp.where(moves, speed * scale * sqrt(beyond), 1.0)
    bent = kutta * np.pi * sqrt(across) * scale / below
    normal = _times(squares, lin)
    force = momentum.cross(ang) + ang.cross(lin) * magnus + normal.cross(lin).cross(lin) * bent
    by_area, constant = mine.drag
    force = force - lin * (mine.viscous[1] + speed * (by_area * area + constant))
    turned = _times(mine.turning, ang)
    resisted = mine.viscous[0] + sqrt(turned.dot(turned))
    return Spatial(momentum.cross(lin) + spin.cross(ang) - ang * resisted, force)


def _times(a: Vec3, b: Vec3) -> Vec3:
    """Return the product component by component."""
    return Vec3(a.x * b.x, a.y * b.y, a.z * b.z)


def added_mass(semi_axes: np.ndarray) -> np.ndarray:
    """Return added mass and added inertia of an ellipsoid in a fluid of density one, (6,).

    Args:
        semi_axes: of the ellipsoid [m], (3,).
    """
    nodes, weights = np.polynomial.legendre.leggauss(200)
    # Gauss-Legendre nodes on (0, 1). Lengths are divided by the geometric mean of the semi-axes, so
    # that the integrand has one scale.
    t, scale = 0.5 * (nodes + 1.0), float(np.prod(semi_axes) ** (1 / 3))
    r = semi_axes / scale
    # x = t² / (1 - t)² maps (0, 1) to (0, infinity), and removes the singularity of the square root
    # at the start.
    x = (t / (1 - t)) ** 2
    change = 0.5 * weights * 2 * t / (1 - t) ** 3
    roots = np.sqrt(r[:, None] ** 2 + x)
    # Lamb's integrals: kappa_i = a b c times the integral of dx / ((r_i² + x) sqrt((a² + x)(b² +
    # x)(c² + x))).
    kappa = np.prod(r) * (change / (roots**2 * roots.prod(axis=0))).sum(axis=1)
    volume = 4.0 / 3.0 * np.pi * scale**3
    inertia = []
    for j, k in ((1, 2), (2, 0), (0, 1)):
        apart, both, differ = r[j] ** 2 - r[k] ** 2, r[j] ** 2 + r[k] ** 2, kappa[k] - kappa[j]
        below = 2 * apart - both * differ
        # For equal semi-axes the expression is 0 / 0, and a body of revolution moves no fluid about
        # its axis.
        inertia.append(apart**2 * differ / below / 5 * scale**2 if abs(apart) > 1e-12 else 0.0)
    return volume * np.array([*(kappa / (2.0 - kappa)), *inertia])
