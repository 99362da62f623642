"""`check_integrator`: verifies that an integrator follows the interface of `brax.integrators`."""

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.integrators import Flow, Integrator
from brax.testing.faults import in_turn, interface, outputs, raise_problems


def check_integrator(integrator: Integrator[Any]) -> None:
    """Check one integrator.

    It must have a lower-case name and converge with the order that it declares. The test is a
    pendulum in a coordinate in which its inertia is not constant.

    Args:
        integrator: the integrator.

    Raises:
        PluginError: naming everything that is wrong.
    """
    problems = in_turn(integrator, interface("integrator"), outputs("integrator"), _convergence)
    raise_problems(integrator, "integrators", problems)


def _convergence(integrator: Integrator[Any]) -> Iterator[str]:
    """Yield a problem unless the error falls with the declared order as the time step is halved."""

    def reached(steps: int) -> np.ndarray:
        dt = jnp.asarray(2.0 / steps)
        start = Pendulum(jnp.asarray(0.3), jnp.asarray(0.5))
        move = lambda _, s: integrator.step(_ExactMoves(), s, dt)  # noqa: E731
        return np.array(jax.lax.fori_loop(0, steps, move, start))

    with jax.enable_x64(True):
        # Differences of successive refinements (Richardson) need no exact solution, which a
        # pendulum has only in elliptic functions. Double precision keeps rounding below them.
        fine = [reached(n) for n in (16, 32, 64)]
    errors = [float(np.linalg.norm(a - b)) for a, b in itertools.pairwise(fine)]
    order = math.log2(errors[0] / errors[1]) if min(errors) > 1e-14 else math.inf
    # Negated, so that NaN fails.
    if not abs(order - integrator.order) < 0.3:
        yield f"it declares order {integrator.order}, but converges with order {order:.2f}"


class Pendulum(NamedTuple):
    """A pendulum of angle exp(q): its inertia is exp(2 q), so its bias force is not zero."""

    q: jax.Array
    v: jax.Array


class _ExactMoves(Flow[Pendulum]):
    """All stages in closed form."""

    def kick(self, state: Pendulum, dt: jax.Array) -> Pendulum:
        """Return the state after forces have acted at a fixed position, with the bias force."""
        return state._replace(v=state.v + dt * self._acceleration(*state))

    def push(self, state: Pendulum, dt: jax.Array) -> Pendulum:
        """Return the state after forces have acted at a fixed position, without the bias force."""
        return state._replace(v=state.v + dt * self._pull(state.q))

    def drift(self, state: Pendulum, dt: jax.Array) -> Pendulum:
        """Return the state after its position has moved at a fixed velocity."""
        return state._replace(q=state.q + dt * state.v)

    def glide(self, state: Pendulum, dt: jax.Array) -> Pendulum:
        """Return the state after free motion, in which the angle grows linearly."""
        momentum = jnp.exp(state.q) * state.v
        angle = jnp.exp(state.q) + dt * momentum
        return Pendulum(jnp.log(angle), momentum / angle)

    def rates(self, state: Pendulum, start: Pendulum) -> Pendulum:
        """Return the derivatives of position and velocity."""
        return Pendulum(state.v, self._acceleration(*state))

    def advance(self, start: Pendulum, rates: Pendulum, dt: jax.Array) -> Pendulum:
        """Return the state moved along some rates."""
        return Pendulum(start.q + dt * rates.q, start.v + dt * rates.v)

    def implicit_kick(self, state: Pendulum, dt: jax.Array, inertia: bool) -> Pendulum:
        # The derivative of the bias force v² by v is 2 v.
        """Return the state after one linearly implicit Euler step of the velocity."""
        resisted = 1.0 + 2.0 * dt * state.v if inertia else 1.0
        return state._replace(v=state.v + dt * self._acceleration(*state) / resisted)

    def _pull(self, q: jax.Array) -> jax.Array:
        """Return gravity's generalized force over the inertia."""
        return -jnp.sin(jnp.exp(q)) * jnp.exp(-q)

    def _acceleration(self, q: jax.Array, v: jax.Array) -> jax.Array:
        # With the angle a = exp(q): a'' = -sin(a) gives q'' = -sin(exp(q)) exp(-q) - q'².
        """Return the acceleration of the coordinate."""
        return self._pull(q) - v * v
