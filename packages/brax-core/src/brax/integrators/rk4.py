"""The classical Runge-Kutta method of fourth order."""

from typing import Any

import jax
import jax.numpy as jnp

from brax.integrators.interface import Flow, Integrator

WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
"""Of the rates of each stage."""

AHEAD = (0.5, 0.5, 1.0, 0.0)
"""Share of the step at which the next stage is; after the last there is none."""


class RK4(Integrator[Flow[Any]]):
    """Fourth order, four evaluations of forces a step, none of them implicit.

    Rates are measured in coordinates about the step's start, so the order holds for quaternions.

    Source: Munthe-Kaas (1998), Runge-Kutta methods on Lie groups, BIT 38.
    """

    name = "rk4"
    order = 4
    needs_flow = True

    def step(self, moves: Flow[Any], state: Any, dt: jax.Array) -> Any:
        """Averages the rates at the start, twice halfway, and at the end.

        In a loop, so that the forces are compiled once.
        """

        def stage(carry: Any, numbers: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
            here, mean = carry
            weight, ahead = numbers
            rates = moves.rates(here, state)
            mean = jax.tree.map(lambda m, r: m + weight * r, mean, rates)
            return (moves.look_ahead(state, rates, ahead * dt), mean), None

        like = jax.eval_shape(moves.rates, state, state)
        zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)
        table = jnp.asarray(WEIGHTS, dt.dtype), jnp.asarray(AHEAD, dt.dtype)
        (_, mean), _ = jax.lax.scan(stage, (state, zero), table)
        return moves.advance(state, mean, dt)


RUNGE_KUTTA = RK4()
