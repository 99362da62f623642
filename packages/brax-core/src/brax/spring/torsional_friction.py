"""Torsional and rolling friction: torques at contacts, bounded by the normal impulse.

Source: the friction coefficients of MuJoCo's documentation, Computation, Contact: the torsional
coefficient and the rolling coefficient have units of length.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.colliders.narrow_phase import AnisotropicFriction
from brax.components import Vec3

MIN_SQUARED_TORQUE = 1e-30
"""Added under the root of a squared torque, so that its derivative is finite at zero."""


class TorsionalFriction(NamedTuple):
    """The rows of a collision group's torsional friction, components (pairs, batch)."""

    spin: Vec3
    """Angular velocity of the second link relative to the first, before any impulse [rad/s]."""
    mobility: tuple[jax.Array, jax.Array]
    """Angular velocity per unit of torque impulse, along the normal and across it [1/(kg m^2)]."""
    twist: jax.Array
    """Coefficient of torsional friction: largest torque along the normal over normal force [m]."""
    roll: jax.Array | None
    """Coefficient of rolling friction, across the normal [m]; None below `condim` 6."""
    step: tuple[jax.Array, ...] = ()
    """Torque impulse per unit of angular velocity, along the normal and across it [kg m^2]: the
    inverse of the mobility, see `ContactRows`."""


def asked(torsion: TorsionalFriction, normal: Vec3, change: Vec3) -> Vec3:
    """Return the torque impulses that stop the rotation, with reversed sign, world axes [N m s].

    Args:
        torsion: rows of the contacts.
        normal: normals of the contacts.
        change: change of the relative angular velocity [rad/s].
    """
    spin = torsion.spin + change
    along = normal.dot(spin)
    step, turn = torsion.step
    return normal * (step * along) + (spin - normal * along) * turn


def squared_norm(torsion: TorsionalFriction, normal: Vec3, change: Vec3) -> jax.Array:
    """Return the square of a change of torque impulses in the metric of their steps."""
    mobile, turning = torsion.mobility
    # Along the normal one step, across it another: |c|^2 turning counts the normal part wrongly.
    along = normal.dot(change)
    return change.dot(change) * turning + along * along * (mobile - turning)


def project(
    torsion: TorsionalFriction,
    normal: Vec3,
    anisotropic: AnisotropicFriction | None,
    couple: Vec3,
    pressing: jax.Array,
) -> Vec3:
    """Return torque impulses within their bounds: a segment along the normal, a disc across it.

    Args:
        torsion: rows of the contacts.
        normal: normals of the contacts.
        anisotropic: friction that differs between the tangents, if it does.
        couple: torque impulses on the second link, world axes [N m s].
        pressing: impulses along the normal [N s].
    """
    held = normal.dot(couple)
    bound = torsion.twist * pressing
    twisted = jnp.clip(held, -bound, bound)
    if torsion.roll is None:
        return normal * twisted
    # The part across the normal resists rolling.
    rolled = couple - normal * held
    if anisotropic is None:
        length = jnp.sqrt(rolled.dot(rolled) + MIN_SQUARED_TORQUE)
    else:
        length = anisotropic.length(rolled, anisotropic.roll)
    # The disc of rolling friction is round, or an ellipse of the two coefficients.
    return normal * twisted + rolled * jnp.minimum(torsion.roll * pressing / length, 1.0)
