"""The propeller: thrust grows with the square of its speed."""

import jax
import jax.numpy as jnp

from brax.actuators import ActuatorParams, ActuatorType


class Propeller(ActuatorType):
    """A propeller of thrust `gain0 ctrl |ctrl|`."""

    name = "propeller"

    def force(
        self, params: ActuatorParams, signal: jax.Array, length: jax.Array, velocity: jax.Array
    ) -> jax.Array:
        """Return the thrust, in the direction of the control."""
        return params.gainprm[0] * signal * jnp.abs(signal)


PROPELLER = Propeller()
