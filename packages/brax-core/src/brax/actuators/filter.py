"""Actuators that follow their control with a delay: a cylinder, a motor behind a filter."""

import jax
import jax.numpy as jnp

from brax.actuators.general import General
from brax.actuators.interface import ActuatorParams

MIN_TIME_CONSTANT = 1e-15
"""Least time constant [s]."""


class Filter(General):
    """The law `general`, its signal the control behind a first-order filter.

    `dyn0` is the time constant [s].
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
        """In proportion to what is missing."""
        return (ctrl - activation) / _time_constant(params)


class FilterExact(Filter):
    """As `filter`, exact for a control that is constant over the step."""

    name = "filterexact"

    def integrate(
        self, params: ActuatorParams, activation: jax.Array, rate: jax.Array, dt: jax.Array
    ) -> jax.Array:
        """Decays towards the control."""
        constant = _time_constant(params)
        return activation - rate * constant * jnp.expm1(-dt / constant)


def _time_constant(params: ActuatorParams) -> jax.Array:
    return jnp.maximum(params.dynprm[0], MIN_TIME_CONSTANT)


FILTER = Filter()
FILTER_EXACT = FilterExact()
