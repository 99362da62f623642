"""The frozen actuator: a disabled one, which keeps its activation and exerts no force."""

import jax
import jax.numpy as jnp

from brax.actuators.interface import ActuatorParams, ActuatorType


class Frozen(ActuatorType):
    """No force; the activation does not change.

    A disabled actuator keeps its control and its activation, so that the other actuators keep
    their indices.

    Source: MuJoCo's documentation, XML reference, option/actuatorgroupdisable and flag/actuation.
    """

    name = "frozen"
    stateful = True

    def force(
        self, params: ActuatorParams, signal: jax.Array, length: jax.Array, velocity: jax.Array
    ) -> jax.Array:
        """Return zero."""
        return jnp.zeros_like(length)

    def rate(
        self,
        params: ActuatorParams,
        ctrl: jax.Array,
        activation: jax.Array,
        length: jax.Array,
        velocity: jax.Array,
    ) -> jax.Array:
        """Return zero."""
        return jnp.zeros_like(activation)


FROZEN = Frozen()
