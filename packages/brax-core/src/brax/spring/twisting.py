"""Friction against twisting and rolling: torques at contacts, bounded by what presses there."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.colliders.narrow_phase import AnisotropicFriction, ContactSurface
from brax.components import Vec3
from brax.spatial import Sym6

LEAST = 1e-30
"""Keeps the root of a squared torque from zero."""


class Twisting(NamedTuple):
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
) -> Twisting | None:
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
    return Twisting(spin, (along, across), twist, roll if condim > 4 else None)


def update(
    twisting: Twisting,
    normal: Vec3,
    uneven: AnisotropicFriction | None,
    couple: Vec3,
    change: Vec3,
    pressing: jax.Array,
    gain: jax.Array,
) -> Vec3:
    """Moves the torque impulses towards what stops the turning, within their bounds.

    Args:
        twisting: of the contacts.
        normal: of the contacts.
        uneven: how friction differs along the tangents, if it does.
        couple: torque impulses on the second link so far, world axes [N m s].
        change: of the relative angular velocity.
        pressing: impulses along the normal.
        gain: share of the way to go.
    """
    spin = twisting.spin + change
    along = normal.dot(spin)
    held = normal.dot(couple)
    step, turn = (s * gain for s in twisting.step)
    bound = twisting.twist * pressing
    twisted = jnp.clip(held - step * along, -bound, bound)
    if twisting.roll is None:
        return normal * twisted
    rolled = (couple - normal * held) - (spin - normal * along) * turn
    if uneven is None:
        length = jnp.sqrt(rolled.dot(rolled) + LEAST)
    else:
        length = uneven.length(rolled, uneven.roll)
    return normal * twisted + rolled * jnp.minimum(twisting.roll * pressing / length, 1.0)
