"""From controls and motion to forces: actuators and tendons."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.actuators.law import Command, Stretch, activation_rates, forces, next_activations
from brax.actuators.sites import Reach, on_sites, reach
from brax.actuators.strands import actuator_strands, tendon_strands
from brax.base import System
from brax.components import rows
from brax.kinematics import Frames
from brax.spatial import Spatial


class Drive(NamedTuple):
    """The actuators at a state."""

    seen: Stretch
    """How they stand and move."""
    force: jax.Array
    """Force of each on what it drives, before its gear, (nu, batch)."""
    reach: Reach | None
    """What those on sites do; None if there are none."""


def drive(
    sys: System, command: Command, q: jax.Array, qd: jax.Array, links: Frames | None
) -> Drive:
    """The actuators of a model that has some.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        command: what the actuators are told.
        q: coordinates (nq, batch).
        qd: rates (nv, batch).
        links: frames of the links, in the model's order, and their velocities; read if there is
            an actuator on a site.
    """
    seen, reached = stretch(sys, q, qd, links)
    return Drive(seen, forces(sys, range(sys.act_size()), command, seen), reached)


def stretch(
    sys: System, q: jax.Array, qd: jax.Array, links: Frames | None
) -> tuple[Stretch, Reach | None]:
    """How all actuators stand and move; and what those on sites do, if there are any."""
    strands = actuator_strands(sys)
    seen = Stretch(strands.along(q, strands.q), strands.along(qd, strands.qd))
    if not on_sites(sys):
        return seen, None
    assert links is not None
    reached = reach(sys, links)
    return Stretch(seen.length + reached.length, seen.velocity + reached.velocity), reached


def joint_forces(sys: System, driven: Drive) -> jax.Array:
    """Forces of the actuators on joints and tendons along the degrees of freedom, (nv, batch)."""
    return actuator_strands(sys).pull(driven.force, sys.qd_size())


def link_forces(sys: System, driven: Drive) -> Spatial | None:
    """Torque and force of the actuators on sites on each link about its frame, world axes."""
    return driven.reach and driven.reach.on_links(driven.force, sys.num_links())


def within_joint_limits(sys: System, force: jax.Array) -> jax.Array:
    """The actuators' forces along the degrees of freedom, within what their joints can bear."""
    if not any(sys.joint_actuator_limited):
        return force
    bounds = rows(sys.joint.actuator_range, sys.dof_joint())
    return jnp.clip(force, bounds[:, 0], bounds[:, 1])


def tendon_forces(sys: System, q: jax.Array, qd: jax.Array) -> jax.Array:
    """Forces of the tendons' springs and dampers along the degrees of freedom.

    A spring is at rest between the two lengths of `lengthspring`.

    Args:
        sys: the model, with at least one tendon, its leaves with a trailing batch axis.
        q: coordinates (nq, batch).
        qd: rates (nv, batch).

    Returns:
        Forces [N or N m], (nv, batch).
    """
    tendon, strands = sys.tendon, tendon_strands(sys)
    length, velocity = strands.along(q, strands.q), strands.along(qd, strands.qd)
    rest = jnp.clip(length, tendon.lengthspring[:, 0], tendon.lengthspring[:, 1])
    pull = tendon.stiffness * (rest - length) - tendon.damping * velocity
    return strands.pull(pull, sys.qd_size())


def charging(
    sys: System, command: Command, q: jax.Array, qd: jax.Array, links: Frames | None
) -> jax.Array | None:
    """Rates of the activations (na, batch); None if the model has none."""
    if command.activation is None:
        return None
    stateful = sys.stateful_actuators()
    seen, _ = stretch(sys, q, qd, links)
    return activation_rates(sys, stateful, command, rows(seen, stateful))


def charged(
    sys: System, command: Command, rates: jax.Array | None, dt: jax.Array
) -> jax.Array | None:
    """Activations `dt` later, at given rates; None if the model has none."""
    if rates is None:
        return None
    return next_activations(sys, sys.stateful_actuators(), command, rates, dt)
