"""The DC motor: the control is a voltage, and its activation the current that follows."""

import jax
import jax.numpy as jnp

from brax.actuators import ActuatorParams, ActuatorType


class DCMotor(ActuatorType):
    """Torque `k i`, with `L di/dt = ctrl - R i - k velocity`.

    `gain0` is the torque constant k [N m/A], `dyn0` the resistance R [ohm] and `dyn1` the
    inductance L [H]; all three are larger than zero.
    """

    name = "dc_motor"
    stateful = True

    def force(
        self, params: ActuatorParams, signal: jax.Array, length: jax.Array, velocity: jax.Array
    ) -> jax.Array:
        """Return a torque proportional to the current."""
        return params.gainprm[0] * signal

    def rate(
        self,
        params: ActuatorParams,
        ctrl: jax.Array,
        activation: jax.Array,
        length: jax.Array,
        velocity: jax.Array,
    ) -> jax.Array:
        """Return the rate of the current [A/s]: the voltage over the inductance, divided by it."""
        resistance, inductance = params.dynprm[:2]
        back = params.gainprm[0] * velocity
        return (ctrl - resistance * activation - back) / inductance

    def integrate(
        self, params: ActuatorParams, activation: jax.Array, rate: jax.Array, dt: jax.Array
    ) -> jax.Array:
        """Integrate exactly at constant speed, so that a time constant below `dt` is stable."""
        constant = params.dynprm[1] / params.dynprm[0]
        return activation - rate * constant * jnp.expm1(-dt / constant)


DC_MOTOR = DCMotor()
