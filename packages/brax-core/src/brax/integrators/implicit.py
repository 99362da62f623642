"""Integrators that are implicit in the velocity, with and without the forces of inertia.

Source: MuJoCo's documentation, chapter Computation, section Numerical integration.
"""

from typing import Any

import jax

from brax.integrators.interface import Flow, Integrator


class Implicit(Integrator[Flow[Any]]):
    """Integrator for fast rotations and for stiff damping of any kind."""

    name = "implicit"
    order = 1
    needs_flow = True

    def step(self, moves: Flow[Any], state: Any, dt: jax.Array) -> Any:
        """Return the state after a kick that is implicit in all forces, and a drift."""
        return moves.drift(moves.implicit_kick(state, dt, inertia=True), dt)


class ImplicitFast(Integrator[Flow[Any]]):
    """Integrator for stiff dampers, velocity servos and fluids."""

    name = "implicitfast"
    order = 1
    needs_flow = True

    def step(self, moves: Flow[Any], state: Any, dt: jax.Array) -> Any:
        """Return the state after a kick, implicit but for the forces of inertia, and a drift.

        A free body that carries no joints is implicit in the forces of inertia as well.
        """
        # Without the derivative of the Coriolis force the matrix is symmetric.
        return moves.drift(moves.implicit_kick(state, dt, inertia=False), dt)


IMPLICIT = Implicit()
IMPLICIT_FAST = ImplicitFast()
