"""The DC motor: a terminal voltage drives a current against the motor's back-EMF."""

import jax
import jax.numpy as jnp

from brax.actuators.interface import ActuatorParams, ActuatorType


class DcMotor(ActuatorType):
    """A motor with the torque `K current`, at the current `(voltage - K velocity) / R`.

    The voltage is `gain0 ctrl + gain1 length + gain2 velocity`, which describes a voltage source as
    well as a position or velocity controller, within plus and minus `gain3` [V]. `gain4` is the
    resistance R [Ohm], `gain5` the motor constant K [N m/A], and `gain6` the largest torque [N m].
    Zero is no bound. A cogging torque `bias0 sin(bias1 length + bias2)` is added.

    Source: MuJoCo's documentation, XML reference, actuator/dcmotor.
    """

    name = "dcmotor"

    def force(
        self, params: ActuatorParams, signal: jax.Array, length: jax.Array, velocity: jax.Array
    ) -> jax.Array:
        """Return the torque at the current without inductance."""
        return _torque(params, _current(params, signal, length, velocity), length)


class DcMotorInductance(DcMotor):
    """A DC motor with inductance, whose activation is the current [A].

    `dyn0` is the electrical time constant L/R [s]. `dyn1` bounds the rate of the current [A/s];
    zero is no bound.

    Source: MuJoCo's documentation, XML reference, actuator/dcmotor, inductance and saturation.
    """

    name = "dcmotor_inductance"
    stateful = True

    def force(
        self, params: ActuatorParams, signal: jax.Array, length: jax.Array, velocity: jax.Array
    ) -> jax.Array:
        """Return the torque at the current `signal`."""
        return _torque(params, signal, length)

    def rate(
        self,
        params: ActuatorParams,
        ctrl: jax.Array,
        activation: jax.Array,
        length: jax.Array,
        velocity: jax.Array,
    ) -> jax.Array:
        """Return the rate of the current."""
        rate = (_current(params, ctrl, length, velocity) - activation) / params.dynprm[0]
        return _bounded(rate, params.dynprm[1])

    def integrate(
        self, params: ActuatorParams, activation: jax.Array, rate: jax.Array, dt: jax.Array
    ) -> jax.Array:
        """Return the current after an exponential decay to that without inductance."""
        constant = params.dynprm[0]
        return activation - rate * constant * jnp.expm1(-dt / constant)


def _current(
    params: ActuatorParams, ctrl: jax.Array, length: jax.Array, velocity: jax.Array
) -> jax.Array:
    """Return the current that flows without inductance [A]."""
    by_ctrl, by_length, by_velocity, most, resistance, constant, *_ = params.gainprm
    voltage = _bounded(by_ctrl * ctrl + by_length * length + by_velocity * velocity, most)
    return (voltage - constant * velocity) / resistance


def _torque(params: ActuatorParams, current: jax.Array, length: jax.Array) -> jax.Array:
    """Return the torque at a current, and the cogging torque, which no bound applies to [N m]."""
    amplitude, poles, phase, *_ = params.biasprm
    torque = _bounded(params.gainprm[5] * current, params.gainprm[6])
    return torque + amplitude * jnp.sin(poles * length + phase)


def _bounded(value: jax.Array, most: jax.Array) -> jax.Array:
    """Return a value within plus and minus a bound, where that is above zero."""
    bound = jnp.where(most > 0, most, jnp.inf)
    return jnp.clip(value, -bound, bound)


DC_MOTOR = DcMotor()
DC_MOTOR_INDUCTANCE = DcMotorInductance()
