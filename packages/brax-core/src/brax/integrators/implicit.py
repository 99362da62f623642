"""Semi-implicit Euler that is implicit in the velocity, with and without the forces of inertia.

Source: MuJoCo's documentation, chapter Computation, section Numerical integration.
"""

from typing import Any

import jax

from brax.integrators.interface import Flow, Integrator


class Implicit(Integrator[Flow[Any]]):
    """For what turns fast, and for strong dampers of any kind."""

    name = "implicit"
    order = 1
    needs_flow = True

    def step(self, moves: Flow[Any], state: Any, dt: jax.Array) -> Any:
        """Kicks implicitly in all forces, then drifts."""
        return moves.drift(moves.implicit_kick(state, dt, inertia=True), dt)


class ImplicitFast(Integrator[Flow[Any]]):
    """For strong dampers, velocity servos and drag."""

    name = "implicitfast"
    order = 1
    needs_flow = True

    def step(self, moves: Flow[Any], state: Any, dt: jax.Array) -> Any:
        """Kicks implicitly in dampers, motors and the medium, then drifts.

        In all forces for a free body that carries no joints.
        """
        return moves.drift(moves.implicit_kick(state, dt, inertia=False), dt)


IMPLICIT = Implicit()
IMPLICIT_FAST = ImplicitFast()
