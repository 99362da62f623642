"""The integrating actuator: its activation is the integral of its control (velocity servos)."""

import jax

from brax.actuators.general import General
from brax.actuators.interface import ActuatorParams


class Integral(General):
    """The law `general`, whose signal is the integral of the control.

    Source: MuJoCo's documentation, chapter Computation, section Actuation model, Activation
    dynamics.
    """

    name = "integral"
    stateful = True
    setpoint = True

    def rate(
        self,
        params: ActuatorParams,
        ctrl: jax.Array,
        activation: jax.Array,
        length: jax.Array,
        velocity: jax.Array,
    ) -> jax.Array:
        """Return the control."""
        return ctrl


INTEGRAL = Integral()
