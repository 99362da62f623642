"""A splitting that keeps momentum: half a glide, a push, half a glide."""

from typing import Any

import jax

from brax.integrators.interface import Integrator, Moves


class Variational(Integrator[Moves[Any]]):
    """Symmetric, second order, one evaluation of forces a step.

    What nothing acts on from outside keeps its linear and angular momentum to round-off, whatever
    its joints and motors do.

    Source: Marsden, West (2001), Discrete mechanics and variational integrators, Acta Numerica 10.
    """

    name = "variational"
    order = 2

    def step(self, moves: Moves[Any], state: Any, dt: jax.Array) -> Any:
        """Half a glide, a push, half a glide."""
        return moves.glide(moves.push(moves.glide(state, dt / 2), dt), dt / 2)


VARIATIONAL = Variational()
