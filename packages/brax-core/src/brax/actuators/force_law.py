"""Evaluation of the actuators' laws: from controls, lengths and velocities to forces."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.actuators.interface import ActuatorParams
from brax.base import System
from brax.components import rows, sqrt, total


class Command(NamedTuple):
    """Controls and activations."""

    act: jax.Array
    """Controls (nu, batch)."""
    activation: jax.Array | None
    """Activations of the stateful actuators, (na, batch); None if there are none."""


class ActuatorLength(NamedTuple):
    """Lengths and velocities of actuators, (actuators, batch)."""

    length: jax.Array
    velocity: jax.Array


def forces(sys: System, asked: Sequence[int], command: Command, seen: ActuatorLength) -> jax.Array:
    """Return the force of each of some actuators on the driven element, before its gear.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        asked: the actuators.
        command: controls and activations of all actuators.
        seen: lengths and velocities of the actuators in `asked`.

    Returns:
        Shape (len(asked), batch).
    """
    return _by_kind(sys, asked, seen, functools.partial(_force, sys, command))


def activation_rates_of(
    sys: System, asked: Sequence[int], command: Command, seen: ActuatorLength
) -> jax.Array:
    """Return the rates of the activations of some stateful actuators, (len(asked), batch)."""
    return _by_kind(sys, asked, seen, functools.partial(_rate, sys, command))


def next_activations_of(
    sys: System, asked: Sequence[int], command: Command, rates: jax.Array, dt: jax.Array
) -> jax.Array:
    """Return activations of some stateful actuators `dt` later, clipped to their ranges."""
    return _by_kind(sys, asked, rates, functools.partial(_moved, sys, command, dt))


def _by_kind(
    sys: System, asked: Sequence[int], values: object, function: Callable[[Any, Any], jax.Array]
) -> jax.Array:
    """Return a function's results for all actuators, from one call for each type.

    Actuators of one type with different `early` get separate calls. The function takes the indices
    of the actuators and their rows of `values`.
    """
    keys = [(sys.actuator_types[i], sys.actuator_early[i]) for i in asked]
    found, order = [], []
    for key in dict.fromkeys(keys):
        places = [k for k, mine in enumerate(keys) if mine == key]
        found.append(function([asked[k] for k in places], rows(values, places)))
        order += places
    # The results are concatenated by type, and sorted back into the order of `asked`.
    return rows(jnp.concatenate(found, axis=0), np.argsort(order).tolist())


def _params(sys: System, index: Sequence[int]) -> ActuatorParams:
    """Return the parameters of some actuators, one array for each."""
    a = sys.actuator
    tables = rows((a.gainprm, a.biasprm, a.dynprm, a.length_range), index)
    gain, bias, dynamics, span = (tuple(t[:, k] for k in range(t.shape[1])) for t in tables)
    return ActuatorParams(gain, bias, dynamics, span)


def _control(sys: System, index: Sequence[int], command: Command) -> jax.Array:
    """Return controls, clipped to their ranges."""
    given, bounds = rows((command.act, sys.actuator.ctrl_range), index)
    return jnp.clip(given, bounds[:, 0], bounds[:, 1])


def _activation(sys: System, index: Sequence[int], command: Command) -> jax.Array:
    """Return the activations of some stateful actuators."""
    assert command.activation is not None
    row = {actuator: k for k, actuator in enumerate(sys.stateful_actuators())}
    return rows(command.activation, [row[i] for i in index])


def _force(sys: System, command: Command, index: Sequence[int], seen: ActuatorLength) -> jax.Array:
    """Return the forces of actuators of one type, clipped to their ranges."""
    kind: Any = sys.actuator_types[index[0]]
    control = signal = _control(sys, index, command)
    if sys.actuator_early[index[0]]:
        # MuJoCo's `actearly`: the force is that of the activation at the end of the step.
        rate = _rate(sys, command, index, seen)
        signal = _moved(sys, command, sys.opt.timestep[None], index, rate)
    elif kind.stateful:
        signal = _activation(sys, index, command)
    if kind.setpoint and any(_rotates(sys, i) for i in index):
        signal = _on_circle(sys, index, signal, seen.length)
    limits = rows(sys.actuator.force_range, index)
    params = _params(sys, index)._replace(control=control)
    return jnp.clip(kind.force(params, signal, *seen), limits[:, 0], limits[:, 1])


def _on_circle(
    sys: System, index: Sequence[int], signal: jax.Array, length: jax.Array
) -> jax.Array:
    """Return the setpoints of servos between two sites or on ball joints, at the nearest turn.

    Only servos whose wrench is a pure torque are affected: their length is a rotation angle, which
    jumps by a whole turn at half a turn.

    Source: MuJoCo's documentation, changelog 3.11: position and intvelocity servos.
    """
    a = sys.actuator
    gear, wrench, gain, bias = rows((a.gear, a.wrench, a.gainprm, a.biasprm), index)
    turn = 2.0 * np.pi * jnp.abs(gear) * sqrt(total(wrench[:, k] ** 2 for k in (3, 4, 5)))
    # A position servo has the force kp (ctrl - length): its gain and its second bias are opposite.
    servo = (gain[:, 0] == -bias[:, 1]) & (gain[:, 1:3] == 0).all(axis=1)
    turns = servo & (wrench[:, :3] == 0).all(axis=1) & (turn > 0)
    relative = np.array([[_rotates(sys, i)] for i in index])
    whole = jnp.round((signal - length) / jnp.where(turn > 0, turn, 1.0))
    return jnp.where(turns & relative, signal - turn * whole, signal)


def _rotates(sys: System, actuator: int) -> bool:
    """Return whether an actuator's length may be an angle of rotation in space."""
    joint = sys.actuator_joint[actuator]
    ball = joint >= 0 and sys.joint_types[joint].is_ball
    return sys.actuator_refsite[actuator] >= 0 or ball


def _rate(sys: System, command: Command, index: Sequence[int], seen: ActuatorLength) -> jax.Array:
    """Return the rates of the activations of actuators of one type."""
    kind: Any = sys.actuator_types[index[0]]
    control, now = _control(sys, index, command), _activation(sys, index, command)
    rate: jax.Array = kind.rate(_params(sys, index), control, now, *seen)
    return rate


def _moved(
    sys: System, command: Command, dt: jax.Array, index: Sequence[int], rate: jax.Array
) -> jax.Array:
    """Return the activations of actuators of one type `dt` later, clipped to their ranges."""
    kind: Any = sys.actuator_types[index[0]]
    bounds = rows(sys.actuator.activation_range, index)
    moved = kind.integrate(_params(sys, index), _activation(sys, index, command), rate, dt)
    return jnp.clip(moved, bounds[:, 0], bounds[:, 1])
