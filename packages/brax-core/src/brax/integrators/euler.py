"""Semi-implicit Euler: a kick, then a drift with the new velocity."""

from typing import Any

import jax

from brax.integrators.interface import Integrator, Moves


class Euler(Integrator[Moves[Any]]):
    """Semi-implicit Euler: first order, one evaluation of forces a step.

    It is MuJoCo's default too.
    """

    name = "euler"
    order = 1
    drifts_last = True

    def step(self, moves: Moves[Any], state: Any, dt: jax.Array) -> Any:
        """Return the state after a kick and a drift."""
        # The drift uses the new velocity: the method is symplectic, where the explicit one gains
        # energy.
        return moves.drift(moves.kick(state, dt), dt)


EULER = Euler()
