"""Semi-implicit Euler: kick, then drift with the new velocity."""

from collections.abc import Callable

import jax

from brax.integrators.interface import Integrator, S


class Euler(Integrator):
    """Symplectic, first order, one evaluation of forces a step; MuJoCo's default too."""

    name = "euler"
    order = 1

    def step(
        self,
        kick: Callable[[S, jax.Array], S],
        drift: Callable[[S, jax.Array], S],
        state: S,
        dt: jax.Array,
    ) -> S:
        """Kicks, then drifts."""
        return drift(kick(state, dt), dt)


EULER = Euler()
