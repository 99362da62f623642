"""An actuator whose activation is the integral of its control: a servo told velocities."""

import jax

from brax.actuators.general import General
from brax.actuators.interface import ActuatorParams


class Integral(General):
    """The law `general`, its signal the integral of the control."""

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
        """The control."""
        return ctrl


INTEGRAL = Integral()
