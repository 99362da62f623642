"""Filtered actuators: the force follows the control with a delay, as in a pneumatic cylinder."""

import jax
import jax.numpy as jnp

from brax.actuators.general import General
from brax.actuators.interface import ActuatorParams

MIN_TIME_CONSTANT = 1e-15
"""Lower bound of the time constant [s], MuJoCo's `mjMINVAL`."""


class Filter(General):
    """The law `general`, whose signal is the control behind a first-order filter.

    `dyn0` is the time constant [s].

    Source: MuJoCo's documentation, chapter Computation, section Actuation model, Activation
    dynamics.
    """

    name = "filter"
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
        """Return (ctrl - activation) over the time constant."""
        return (ctrl - activation) / _time_constant(params)


class FilterExact(Filter):
    """As `filter`, but exact for a control that is constant over the step."""

    name = "filterexact"

    def integrate(
        self, params: ActuatorParams, activation: jax.Array, rate: jax.Array, dt: jax.Array
    ) -> jax.Array:
        """Return the activation after an exponential decay towards the control."""
        constant = _time_constant(params)
        # The solution of a' = (ctrl - a) / T: a + (ctrl - a) (1 - exp(-dt / T)), where rate T =
        # ctrl - a.
        return activation - rate * constant * jnp.expm1(-dt / constant)


def _time_constant(params: ActuatorParams) -> jax.Array:
    """Return the time constant, bounded away from zero."""
    return jnp.maximum(params.dynprm[0], MIN_TIME_CONSTANT)


FILTER = Filter()
FILTER_EXACT = FilterExact()
