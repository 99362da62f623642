"""Adapter to gymnax's interface of pure functions."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.base import System
from brax.env import Env, EpisodeWrapper, State
from brax.env.wrappers.select import select
from brax.envs.wrappers.host import action_bounds, observation_structure, state_structure


class Box(NamedTuple):
    """A space of arrays between bounds."""

    low: jax.Array
    """Lower bounds, of the same shape as the arrays."""
    high: jax.Array
    """Upper bounds, of the same shape as the arrays."""
    shape: tuple[int, ...]
    """Shape of the arrays."""
    dtype: Any = jnp.float32
    """Type of the arrays."""

    def sample(self, rng: jax.Array) -> jax.Array:
        """Draw an array of the shape of the space, uniformly; the bounds must be finite."""
        return jax.random.uniform(rng, self.shape, self.dtype, self.low, self.high)

    def contains(self, x: jax.Array) -> jax.Array:
        """Return whether an array of the shape of the space is between the bounds, shape ()."""
        return jnp.all((self.low <= x) & (x <= self.high))


class GymnaxWrapper:
    """One environment as `reset(key, params)` and `step(key, state, action, params)`.

    `params` is the system, so `jax.vmap` over it randomizes the physics. `step` starts a new
    episode with `key` in the step that ends one. Then `info['terminal_obs']` is the true last
    observation, and `info['truncation']` is 1 if the episode was truncated.
    """

    def __init__(self, env: Env, episode_length: int = 1000) -> None:
        """Wrap an environment.

        Args:
            env: a single environment, as `brax.envs.get_environment(name)` returns it.
            episode_length: number of steps after which an episode is truncated.
        """
        self._env = EpisodeWrapper(env, episode_length)

    @property
    def default_params(self) -> System | None:
        """The environment's system, if it has one."""
        return getattr(self._env.unwrapped, "sys", None)

    def reset(self, key: jax.Array, params: System | None = None) -> tuple[Any, State]:
        """Start an episode."""
        state = self._with(params).reset(key)
        return state.obs, state

    def step(
        self, key: jax.Array, state: State, action: jax.Array, params: System | None = None
    ) -> tuple[Any, State, jax.Array, jax.Array, dict[str, Any]]:
        """Advance by one step, and start a new episode if one has ended.

        Args:
            key: random key of the next episode.
            state: from `reset` or `step`.
            action: shape (action_size,).
            params: the system; None means the environment's own.

        Returns:
            Observation, state, reward, shape (), end of the episode, bool, shape (), and `info`.
        """
        ended, first = self.step_env(state, action, params), self._with(params).reset(key)
        done = ended.done > 0
        info = ended.metrics | {
            "truncation": ended.info["truncation"],
            "terminal_obs": ended.obs,
        }
        state = select(done, first, ended)
        return state.obs, state, ended.reward, done, info

    def step_env(self, state: State, action: jax.Array, params: System | None = None) -> State:
        """Advance by one step under an action (action_size,), without starting a new episode."""
        return self._with(params).step(state, action)

    def action_space(self, params: System | None = None) -> Box:
        """Return the range of actions."""
        low, high = map(jnp.asarray, action_bounds(self._with(params)))
        return Box(low, high, low.shape)

    def observation_space(self, params: System | None = None) -> Any:
        """Return the space of an unbounded array, or of arrays by name."""
        found = observation_structure(state_structure(self._env))
        if isinstance(found, jax.ShapeDtypeStruct):
            return _unbounded(found)
        return {name: _unbounded(entry) for name, entry in found.items()}

    def _with(self, params: System | None) -> Env:
        return self._env if params is None else self._env.with_sys(params)


def _unbounded(entry: jax.ShapeDtypeStruct) -> Box:
    infinite = jnp.full(entry.shape, jnp.inf)
    return Box(-infinite, infinite, entry.shape, entry.dtype)
