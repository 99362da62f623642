"""Classical Runge-Kutta method of fourth order."""

from typing import Any

import jax
import jax.numpy as jnp

from brax.integrators.interface import Flow, Integrator

WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
"""Weight of the rates of each stage (Butcher's b)."""

AHEAD = (0.5, 0.5, 1.0, 0.0)
"""Share of the step at which the next stage is evaluated (Butcher's c); no stage follows the
last."""


class RK4(Integrator[Flow[Any]]):
    """Classical Runge-Kutta: fourth order, four evaluations of forces a step, all explicit.

    Rates are measured in coordinates about the start of the step, so that the order holds for
    quaternions.

    Source: Munthe-Kaas (1998), Runge-Kutta methods on Lie groups, BIT 38.
    """

    name = "rk4"
    order = 4
    needs_flow = True

    def step(self, moves: Flow[Any], state: Any, dt: jax.Array) -> Any:
        """Return the state after a step at the mean rate of the four stages.

        The stages are a loop, so that the forces are compiled once.
        """

        def stage(carry: Any, numbers: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
            inner, mean = carry
            weight, ahead = numbers
            rates = moves.rates(inner, state)
            mean = jax.tree.map(lambda m, r: m + weight * r, mean, rates)
            # Stage i + 1 starts from the beginning of the step with the rates of stage i: the
            # tableau has one entry a row.
            return (moves.look_ahead(state, rates, ahead * dt), mean), None

        # The loop needs zeros of the shape of the rates, which only the pipeline knows.
        like = jax.eval_shape(moves.rates, state, state)
        zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like)
        table = jnp.asarray(WEIGHTS, dt.dtype), jnp.asarray(AHEAD, dt.dtype)
        (_, mean), _ = jax.lax.scan(stage, (state, zero), table)
        return moves.advance(state, mean, dt)


RUNGE_KUTTA = RK4()
