"""Evaluation of the actuators and tendons of a model: from controls and motion to forces."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.actuators.crank_transmission import crank_transmission, on_cranks
from brax.actuators.force_law import (
    ActuatorLength,
    Command,
    activation_rates_of,
    forces,
    next_activations_of,
)
from brax.actuators.joint_transmission import actuator_transmission
from brax.actuators.rotation_transmission import on_rotations, rotation_transmission
from brax.actuators.site_transmission import LinkTransmission, on_sites, site_transmission
from brax.actuators.spatial_tendons import has_paths
from brax.actuators.tendons import TendonsAtState, passive_force, tendons_at_state
from brax.base import System
from brax.components import rows
from brax.kinematics import Frames
from brax.spatial import Spatial
from brax.tree import sum_rows


class ActuatorsAtState(NamedTuple):
    """The actuators at a state."""

    seen: ActuatorLength
    """Lengths and velocities of the actuators."""
    force: jax.Array
    """Force of each on the driven element, before its gear, (nu, batch)."""
    reach: LinkTransmission | None
    """Transmission of the actuators on sites, cranks, ball and free joints; None if there are
    none."""
    tendons: TendonsAtState | None
    """The tendons; None if the model has none."""
    share: jax.Array | None = None
    """The share of its force that the bounds of its tendon leave each actuator, (nu, batch); None
    if no tendon has bounds."""


def actuators_at_state(
    sys: System, command: Command, q: jax.Array, qd: jax.Array, links: Frames | None
) -> ActuatorsAtState:
    """Return the actuators of a model that has some.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        command: controls and activations.
        q: coordinates (nq, batch).
        qd: velocities (nv, batch).
        links: frames of the links, in the model's order, and their velocities; read if
            `sees_links`.
    """
    seen, reach, tendons = actuator_states(sys, q, qd, links)
    force = forces(sys, range(sys.act_size()), command, seen)
    if not any(sys.tendon_actuator_limited):
        return ActuatorsAtState(seen, force, reach, tendons)
    share = _tendon_shares(sys, force)
    return ActuatorsAtState(seen, force * share, reach, tendons, share)


def _tendon_shares(sys: System, force: jax.Array) -> jax.Array:
    """Return the share of its force that each actuator keeps, 1 for those on no tendon.

    MuJoCo's `tendon_actfrcrange` bounds the sum of the actuators' forces on a tendon, before their
    gears. They are all reduced by the same factor.
    """
    _, which, owners = _tendon_gears(sys)
    asked = sum_rows(rows(force, owners), which, len(sys.tendon_names))
    bounds = sys.tendon.actuator_range
    kept = jnp.clip(asked, bounds[:, 0], bounds[:, 1])
    share = jnp.where(asked == 0, 1.0, kept / jnp.where(asked == 0, 1.0, asked))
    # A last row of one serves the actuators that are not on a tendon.
    table = jnp.concatenate([share, jnp.ones_like(share[:1])])
    return rows(table, [t if t >= 0 else len(share) for t in sys.actuator_tendon])


def sees_links(sys: System) -> bool:
    """Return whether actuators or tendons act on links in space, not only along coordinates."""
    return acts_on_links(sys) or has_paths(sys)


def acts_on_links(sys: System) -> bool:
    """Return whether any actuator acts on a site, a crank, a ball joint or a free joint."""
    return bool(on_sites(sys) or on_cranks(sys) or on_rotations(sys))


def actuator_states(
    sys: System, q: jax.Array, qd: jax.Array, links: Frames | None
) -> tuple[ActuatorLength, LinkTransmission | None, TendonsAtState | None]:
    """Return lengths and velocities of all actuators, the transmission to links, and the tendons.

    The transmission to links and the tendons are None where the model has none.
    """
    joints = actuator_transmission(sys)
    length, velocity = joints.along(q, joints.q), joints.along(qd, joints.qd)
    reach = tendons = None
    if acts_on_links(sys):
        assert links is not None
        parts = [site_transmission(sys, links)] if on_sites(sys) else []
        parts += [crank_transmission(sys, links)] if on_cranks(sys) else []
        parts += [rotation_transmission(sys, q, links)] if on_rotations(sys) else []
        reach = functools.reduce(LinkTransmission.joined, parts)
        # An actuator drives one element, so at most one of the terms of its length is not zero.
        length, velocity = length + reach.length, velocity + reach.velocity
    if sys.tendon_names:
        tendons = tendons_at_state(sys, q, qd, links)
        gear, which, owners = _tendon_gears(sys)
        mine = (gear * rows(x, which) for x in (tendons.length, tendons.velocity))
        along = [sum_rows(x, owners, sys.act_size()) for x in mine]
        length, velocity = length + along[0], velocity + along[1]
    return ActuatorLength(length, velocity), reach, tendons


def _tendon_gears(sys: System) -> tuple[jax.Array, tuple[int, ...], tuple[int, ...]]:
    """Return the gears of the actuators that pull tendons, their tendons, and their indices."""
    owners = tuple(a for a, t in enumerate(sys.actuator_tendon) if t >= 0)
    return rows(sys.actuator.gear, owners), tuple(sys.actuator_tendon[a] for a in owners), owners


def joint_forces(sys: System, driven: ActuatorsAtState) -> jax.Array:
    """Return the forces on joints and fixed tendons along the degrees of freedom, (nv, batch)."""
    force = actuator_transmission(sys).pull(driven.force, sys.qd_size())
    if driven.tendons is None:
        return force
    return force + driven.tendons.joint_forces(sys, _on_tendons(sys, driven))


def link_forces(sys: System, driven: ActuatorsAtState) -> Spatial | None:
    """Return torque and force on each link of actuators in space and spatial tendons.

    They are about the link's frame, along the world's axes; None if there are none.
    """
    found = driven.reach and driven.reach.on_links(driven.force, sys.num_links())
    tendons = driven.tendons and driven.tendons.link_forces(sys, _on_tendons(sys, driven))
    return added(found, tendons)


def added(a: Spatial | None, b: Spatial | None) -> Spatial | None:
    """Return the sum of both, or the one that is not None."""
    return b if a is None else a if b is None else a + b


def forces_on_tendons(
    sys: System, tendons: TendonsAtState, driven: ActuatorsAtState | None
) -> jax.Array:
    """Return the force of springs, dampers and actuators on each tendon, (n_tendons, batch)."""
    force = passive_force(sys, tendons)
    return force if driven is None else force + _on_tendons(sys, driven)


def _on_tendons(sys: System, driven: ActuatorsAtState) -> jax.Array:
    """Return the force of the actuators on each tendon, (n_tendons, batch)."""
    gear, which, owners = _tendon_gears(sys)
    return sum_rows(gear * rows(driven.force, owners), which, len(sys.tendon_names))


def within_joint_limits(sys: System, force: jax.Array, borne: jax.Array | None) -> jax.Array:
    """Return the actuators' forces along the degrees of freedom, clipped to the joints' bounds.

    Args:
        sys: the model.
        force: the forces, (nv, batch).
        borne: the gravity compensation that counts among them (`actuatorgravcomp`), which the
            bounds apply to, too; it is not in the result. None for none.
    """
    if not any(sys.joint_actuator_limited):
        return force
    low, high = _joint_bounds(sys, borne)
    return jnp.clip(force, low, high)


def at_joint_limits(sys: System, force: jax.Array, borne: jax.Array | None) -> jax.Array:
    """Return whether the joints' bounds clip the actuators' forces, (nv, batch)."""
    low, high = _joint_bounds(sys, borne)
    return (force < low) | (force > high)


def _joint_bounds(sys: System, borne: jax.Array | None) -> tuple[jax.Array, jax.Array]:
    """Return the bounds of the actuators' forces along each degree of freedom."""
    # MuJoCo's `jnt_actfrcrange` bounds the sum of all actuator forces on a joint, so it is applied
    # after the sum over actuators and tendons.
    bounds = rows(sys.joint.actuator_range, sys.dof_joint())
    less = 0.0 if borne is None else borne
    return bounds[:, 0] - less, bounds[:, 1] - less


def activation_rates(
    sys: System, command: Command, q: jax.Array, qd: jax.Array, links: Frames | None
) -> jax.Array | None:
    """Return the rates of the activations (na, batch); None if the model has none."""
    if command.activation is None:
        return None
    stateful = sys.stateful_actuators()
    seen, _, _ = actuator_states(sys, q, qd, links)
    return activation_rates_of(sys, stateful, command, rows(seen, stateful))


def next_activations(
    sys: System, command: Command, rates: jax.Array | None, dt: jax.Array
) -> jax.Array | None:
    """Return the activations `dt` later, at given rates; None if the model has none."""
    if rates is None:
        return None
    return next_activations_of(sys, sys.stateful_actuators(), command, rates, dt)
