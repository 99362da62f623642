"""Brax's environments as pure functions of the form that gymnax made known."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.base import System
from brax.env import Env, EpisodeWrapper, State
from brax.env.wrappers.select import select
from brax.envs.wrappers.host import action_bounds


class Box(NamedTuple):
    """A space of arrays between bounds."""

    low: jax.Array
    high: jax.Array
    shape: tuple[int, ...]
    dtype: Any = jnp.float32

    def sample(self, rng: jax.Array) -> jax.Array:
        """Draws evenly; the bounds must be finite."""
        return jax.random.uniform(rng, self.shape, self.dtype, self.low, self.high)

    def contains(self, x: jax.Array) -> jax.Array:
        """Return whether an array is between the bounds."""
        return jnp.all((self.low <= x) & (x <= self.high))


class GymnaxWrapper:
    """One environment as `reset(key, params)` and `step(key, state, action, params)`.

    `params` is the system, so that `jax.vmap` over it randomizes the physics. `step` starts a new
    episode, by the key, in the step that ends one; `info['terminal_obs']` is then the true last
    observation, and `info['truncation']` tells an end by time.
    """

    def __init__(self, env: Env, episode_length: int = 1000) -> None:
        """Wraps an environment.

        Args:
            env: a single one, as `brax.envs.get_environment(name)` makes.
            episode_length: steps after which an episode is truncated.
        """
        self._env = EpisodeWrapper(env, episode_length)

    @property
    def default_params(self) -> System | None:
        """The environment's system, where it has one."""
        return getattr(self._env.unwrapped, "sys", None)

    def reset(self, key: jax.Array, params: System | None = None) -> tuple[Any, State]:
        """Starts an episode."""
        state = self._with(params).reset(key)
        return state.obs, state

    def step(
        self, key: jax.Array, state: State, action: jax.Array, params: System | None = None
    ) -> tuple[Any, State, jax.Array, jax.Array, dict[str, Any]]:
        """Advances by one step, and starts anew what has ended."""
        ended, first = self.step_env(state, action, params), self._with(params).reset(key)
        over = ended.done > 0
        info = ended.metrics | {
            "truncation": ended.info["truncation"],
            "terminal_obs": ended.obs,
        }
        state = select(over, first, ended)
        return state.obs, state, ended.reward, over, info

    def step_env(self, state: State, action: jax.Array, params: System | None = None) -> State:
        """Advances by one step and starts nothing anew."""
        return self._with(params).step(state, action)

    def action_space(self, params: System | None = None) -> Box:
        """What `step` tells apart."""
        low, high = map(jnp.asarray, action_bounds(self._with(params)))
        return Box(low, high, low.shape)

    def observation_space(self, params: System | None = None) -> Any:
        """An unbounded array, or arrays by name."""
        size = self._env.observation_size
        if isinstance(size, int):
            return _unbounded((size,))
        return {name: _unbounded(shape) for name, shape in size.items()}

    def _with(self, params: System | None) -> Env:
        return self._env if params is None else self._env.with_sys(params)


def _unbounded(shape: tuple[int, ...]) -> Box:
    infinite = jnp.full(shape, jnp.inf)
    return Box(-infinite, infinite, shape)
