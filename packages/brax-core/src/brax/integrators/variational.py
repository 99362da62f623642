"""Splitting that conserves momentum: half a glide, a push, half a glide."""

from typing import Any

import jax

from brax.integrators.interface import Integrator, Moves


class Variational(Integrator[Moves[Any]]):
    """Strang splitting: symmetric, second order, one evaluation of forces a step.

    A system on which nothing acts from outside conserves its linear and angular momentum to
    round-off, whatever its joints and actuators do.

    Source: Marsden, West (2001), Discrete mechanics and variational integrators, Acta Numerica 10.
    """

    name = "variational"
    order = 2

    def step(self, moves: Moves[Any], state: Any, dt: jax.Array) -> Any:
        """Return the state after half a glide, a push, and half a glide."""
        # Symmetric in time, and so of even order.
        return moves.glide(moves.push(moves.glide(state, dt / 2), dt), dt / 2)


VARIATIONAL = Variational()
