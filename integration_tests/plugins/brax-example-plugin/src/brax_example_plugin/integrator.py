"""Position Verlet: half a drift, a kick, half a drift."""

from collections.abc import Callable
from typing import TypeVar

import jax

from brax.integrators import Integrator

S = TypeVar("S")


class DriftKickDrift(Integrator):
    """Symmetric, second order, one evaluation of forces a step."""

    name = "drift_kick_drift"
    order = 2

    def step(
        self,
        kick: Callable[[S, jax.Array], S],
        drift: Callable[[S, jax.Array], S],
        state: S,
        dt: jax.Array,
    ) -> S:
        """Half a drift, a kick, half a drift."""
        return drift(kick(drift(state, dt / 2), dt), dt / 2)


DRIFT_KICK_DRIFT = DriftKickDrift()
