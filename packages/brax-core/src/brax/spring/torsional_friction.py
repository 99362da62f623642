"""Friction against twisting and rolling: torques at contacts, bounded by what presses there."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.colliders.narrow_phase import AnisotropicFriction, ContactSurface
from brax.components import Vec3
from brax.spatial import Sym6

MIN_SQUARED_TORQUE = 1e-30
"""Keeps the root of a squared torque from zero."""


class TorsionalFriction(NamedTuple):
    """What the sweeps need of it for a group's contacts, components (pairs, batch)."""

    spin: Vec3
    """Angular velocity of the second link relative to the first, without impulses."""
    step: tuple[jax.Array, jax.Array]
    """Impulse per unit of that, along the normal and across it."""
    twist: jax.Array
    """Largest torque along the normal, as a share of the force that presses [m]."""
    roll: jax.Array | None
    """The same across it; None where nothing hinders rolling."""


def prepare(
    normal: Vec3, spin: Vec3, mobility: Sequence[Sym6], surface: ContactSurface, condim: int
) -> TorsionalFriction | None:
    """Sets it up; None where a group's contacts have none.

    Args:
        normal: of the contacts, (points, pairs, batch).
        spin: relative angular velocity of the links without impulses.
        mobility: inverse inertia of the links that move.
        surface: what the contacts are like.
        condim: how many directions they have.
    """
    if condim < 4:
        return None
    turns = [m.a for m in mobility]
    mobile = turns[0] if len(turns) == 1 else turns[0] + turns[1]
    along = normal.dot(mobile.mul(normal))
    across = 0.5 * (mobile.xx + mobile.yy + mobile.zz - along)
    twist, roll, _ = surface.turning
    return TorsionalFriction(spin, (along, across), twist, roll if condim > 4 else None)


def asked(torsion: TorsionalFriction, normal: Vec3, change: Vec3) -> Vec3:
    """Return the torque impulses that stop the turning, reversed, world axes [N m s].

    Args:
        torsion: of the contacts.
        normal: of the contacts.
        change: of the relative angular velocity.
    """
    spin = torsion.spin + change
    along = normal.dot(spin)
    step, turn = torsion.step
    return normal * (step * along) + (spin - normal * along) * turn


def square(torsion: TorsionalFriction, normal: Vec3, change: Vec3) -> jax.Array:
    """Return the square of a change of torque impulses in the metric of their steps."""
    step, turn = (1.0 / s for s in torsion.step)
    along = normal.dot(change)
    return change.dot(change) * turn + along * along * (step - turn)


def within(
    torsion: TorsionalFriction,
    normal: Vec3,
    uneven: AnisotropicFriction | None,
    couple: Vec3,
    pressing: jax.Array,
) -> Vec3:
    """Return torque impulses within their bounds.

    Args:
        torsion: of the contacts.
        normal: of the contacts.
        uneven: how friction differs along the tangents, if it does.
        couple: torque impulses on the second link, world axes [N m s].
        pressing: impulses along the normal.
    """
    held = normal.dot(couple)
    bound = torsion.twist * pressing
    twisted = jnp.clip(held, -bound, bound)
    if torsion.roll is None:
        return normal * twisted
    rolled = couple - normal * held
    if uneven is None:
        length = jnp.sqrt(rolled.dot(rolled) + MIN_SQUARED_TORQUE)
    else:
        length = uneven.length(rolled, uneven.roll)
    return normal * twisted + rolled * jnp.minimum(torsion.roll * pressing / length, 1.0)
