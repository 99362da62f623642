"""From controls and motion to forces along the degrees of freedom: actuators and tendons."""

import functools
import operator

import jax
import jax.numpy as jnp

from brax.actuators.law import Command, Stretch, activation_rates, forces, next_activations
from brax.actuators.strands import actuator_strands, tendon_strands
from brax.base import System
from brax.components import rows


def joint_forces(sys: System, command: Command, q: jax.Array, qd: jax.Array) -> jax.Array:
    """Forces of all actuators along the degrees of freedom, MuJoCo's `qfrc_actuator`.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        command: what the actuators are told.
        q: coordinates (nq, batch).
        qd: rates (nv, batch).

    Returns:
        Forces [N or N m], (nv, batch).
    """
    force = forces(sys, range(sys.act_size()), command, stretch(sys, q, qd))
    return actuator_strands(sys).pull(force, sys.qd_size())


def stretch(sys: System, q: jax.Array, qd: jax.Array) -> Stretch:
    """How the actuators stand and move."""
    strands = actuator_strands(sys)
    return Stretch(strands.along(q, strands.q), strands.along(qd, strands.qd))


def drive_forces(sys: System, command: Command, q: jax.Array, qd: jax.Array) -> jax.Array | None:
    """Forces of actuators and tendons, as `joint_forces`; None if the model has neither."""
    parts = []
    if sys.actuator_names:
        parts.append(joint_forces(sys, command, q, qd))
    if sys.tendon_names:
        parts.append(tendon_forces(sys, q, qd))
    return functools.reduce(operator.add, parts) if parts else None


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


def charging(sys: System, command: Command, q: jax.Array, qd: jax.Array) -> jax.Array | None:
    """Rates of the activations (na, batch); None if the model has none."""
    if command.activation is None:
        return None
    stateful = sys.stateful_actuators()
    return activation_rates(sys, stateful, command, rows(stretch(sys, q, qd), stateful))


def charged(
    sys: System, command: Command, rates: jax.Array | None, dt: jax.Array
) -> jax.Array | None:
    """Activations `dt` later, at given rates; None if the model has none."""
    if rates is None:
        return None
    return next_activations(sys, sys.stateful_actuators(), command, rates, dt)
