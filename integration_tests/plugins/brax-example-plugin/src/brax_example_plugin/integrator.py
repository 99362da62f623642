"""Velocity Verlet: half a push, a glide, half a push."""

from typing import Any

import jax

from brax.integrators import Integrator, Moves


class PushGlidePush(Integrator[Moves[Any]]):
    """A symmetric method of second order, with two evaluations of forces a step."""

    name = "push_glide_push"
    order = 2

    def step(self, moves: Moves[Any], state: Any, dt: jax.Array) -> Any:
        """Return the state after half a push, a glide and half a push."""
        return moves.push(moves.glide(moves.push(state, dt / 2), dt), dt / 2)


PUSH_GLIDE_PUSH = PushGlidePush()
