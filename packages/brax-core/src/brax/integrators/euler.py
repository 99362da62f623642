"""Semi-implicit Euler: kick, then drift with the new velocity."""

from typing import Any

import jax

from brax.integrators.interface import Integrator, Moves


class Euler(Integrator[Moves[Any]]):
    """First order, one evaluation of forces a step; MuJoCo's default too."""

    name = "euler"
    order = 1
    drifts_last = True

    def step(self, moves: Moves[Any], state: Any, dt: jax.Array) -> Any:
        """Kicks, then drifts."""
        return moves.drift(moves.kick(state, dt), dt)


EULER = Euler()
