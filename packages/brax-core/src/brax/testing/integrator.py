"""`check_integrator`: whether an integrator keeps the contract of `brax.integrators`."""

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.integrators import Flow, Integrator
from brax.testing.faults import in_turn, interface, outputs, refuse


def check_integrator(integrator: Integrator[Any]) -> None:
    """Checks one integrator.

    It must have a lower-case name, and reach on a pendulum, whose coordinate is chosen such that
    its inertia changes with it, the order of convergence that it declares.

    Args:
        integrator: the integrator.

    Raises:
        PluginError: naming everything that is wrong.
    """
    problems = in_turn(integrator, interface("integrator"), outputs("integrator"), _convergence)
    refuse(integrator, "integrators", problems)


def _convergence(integrator: Integrator[Any]) -> Iterator[str]:
    """Halves the time step until rounding shows, and measures how the error falls."""

    def reached(steps: int) -> np.ndarray:
        dt = jnp.asarray(2.0 / steps)
        start = Pendulum(jnp.asarray(0.3), jnp.asarray(0.5))
        move = lambda _, s: integrator.step(_ExactMoves(), s, dt)  # noqa: E731
        return np.array(jax.lax.fori_loop(0, steps, move, start))

    with jax.enable_x64(True):
        fine = [reached(n) for n in (16, 32, 64)]
    errors = [float(np.linalg.norm(a - b)) for a, b in itertools.pairwise(fine)]
    order = math.log2(errors[0] / errors[1]) if min(errors) > 1e-14 else math.inf
    if not abs(order - integrator.order) < 0.3:
        yield f"it declares order {integrator.order}, but converges with order {order:.2f}"


class Pendulum(NamedTuple):
    """A pendulum of angle exp(q): its inertia is exp(2 q), so its bias force is not zero."""

    q: jax.Array
    v: jax.Array


class _ExactMoves(Flow[Pendulum]):
    """All moves, in closed form."""

    def kick(self, state: Pendulum, dt: jax.Array) -> Pendulum:
        return state._replace(v=state.v + dt * self._acceleration(*state))

    def push(self, state: Pendulum, dt: jax.Array) -> Pendulum:
        return state._replace(v=state.v + dt * self._pull(state.q))

    def drift(self, state: Pendulum, dt: jax.Array) -> Pendulum:
        return state._replace(q=state.q + dt * state.v)

    def glide(self, state: Pendulum, dt: jax.Array) -> Pendulum:
        momentum = jnp.exp(state.q) * state.v
        angle = jnp.exp(state.q) + dt * momentum
        return Pendulum(jnp.log(angle), momentum / angle)

    def rates(self, state: Pendulum, start: Pendulum) -> Pendulum:
        return Pendulum(state.v, self._acceleration(*state))

    def advance(self, start: Pendulum, rates: Pendulum, dt: jax.Array) -> Pendulum:
        return Pendulum(start.q + dt * rates.q, start.v + dt * rates.v)

    def implicit_kick(self, state: Pendulum, dt: jax.Array, inertia: bool) -> Pendulum:
        resisted = 1.0 + 2.0 * dt * state.v if inertia else 1.0
        return state._replace(v=state.v + dt * self._acceleration(*state) / resisted)

    def _pull(self, q: jax.Array) -> jax.Array:
        return -jnp.sin(jnp.exp(q)) * jnp.exp(-q)

    def _acceleration(self, q: jax.Array, v: jax.Array) -> jax.Array:
        return self._pull(q) - v * v
