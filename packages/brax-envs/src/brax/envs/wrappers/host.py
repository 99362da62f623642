"""Shared by the adapters: stores the state, draws the keys, and compiles the functions."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.env import Env, State
from brax.env.structure import declared_shape
from brax.errors import ConfigError


class Outcome(NamedTuple):
    """The result of a step, for one environment or a batch.

    The shape of a batch is (batch,), and () for one environment.
    """

    obs: Any
    """Observation after the step; after an auto-reset, that of the next episode."""
    reward: jax.Array
    """Reward of the step, shape (*batch,)."""
    terminated: jax.Array
    """True at a termination, bool, shape (*batch,)."""
    truncated: jax.Array
    """True at a truncation, bool, shape (*batch,)."""
    final_obs: Any
    """The true observation after the step."""
    metrics: dict[str, jax.Array]
    """The environment's metrics, each of shape (*batch,)."""


class Host:
    """An environment that stores its state, for callers that do not."""

    def __init__(self, env: Env, seed: int, backend: str | None) -> None:
        """Store and compile an environment.

        Args:
            env: the environment, with or without training wrappers.
            seed: random seed of the resets.
            backend: JAX platform to run on, such as 'cpu'; by default JAX's own choice.
        """
        self.device = jax.devices(backend)[0] if backend else None
        """Device to run on; None means JAX's own choice."""
        self._reset = jax.jit(env.reset)
        self._step = jax.jit(lambda state, action: _outcome(env.step(state, action)))
        self._state: State | None = None
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Restart the sequence of resets."""
        # Compiled functions run on the device of their arguments, and the state comes from the key.
        self._key = jax.device_put(jax.random.key(seed), self.device)

    def reset(self) -> Any:
        """Start an episode and return its first observation."""
        self._key, key = jax.random.split(self._key)
        self._state = self._reset(key)
        return self._state.obs

    def step(self, action: object) -> Outcome:
        """Advance by one step.

        Raises:
            ConfigError: before the first reset.
        """
        if self._state is None:
            raise ConfigError("step before reset: call reset first, to start an episode")
        self._state, outcome = self._step(self._state, jnp.asarray(action, jnp.float32))
        return outcome


def _outcome(state: State) -> tuple[State, Outcome]:
    info, done = state.info, state.done.astype(bool)
    truncated = info["truncation"].astype(bool) if "truncation" in info else jnp.zeros_like(done)
    final = info.get("terminal_obs", state.obs)
    ends = done & ~truncated, truncated
    return state, Outcome(state.obs, state.reward, *ends, final, state.metrics)


def observation_shapes(env: Env) -> tuple[int, ...] | dict[str, tuple[int, ...]]:
    """Return the shape of an environment's observation, or those of its entries by name."""
    size = env.observation_size
    if not isinstance(size, Mapping):
        return declared_shape(size)
    return {name: declared_shape(x) for name, x in size.items()}


def action_bounds(env: Env) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and highest action of an environment, each (action_size,).

    These are -1 and 1 if it scales actions or has no model, else the actuators' ranges.
    """
    if getattr(env, "scaled", False) or not hasattr(env.unwrapped, "sys"):
        ones = np.ones(env.action_size, np.float32)
        return -ones, ones
    low, high = np.asarray(env.unwrapped.sys.actuator.ctrl_range, np.float32).T
    return low, high


def to_numpy(tree: object) -> Any:
    """Return the arrays of a tree as writable NumPy arrays."""
    return jax.tree.map(np.array, tree)
