"""Shared by the adapters: stores the state, draws the keys, and compiles the functions."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.env import Env, State
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

        Raises:
            ConfigError: if there is no such platform, or the seed is not a whole number.
        """
        self.device = _device(backend) if backend else None
        """Device to run on; None means JAX's own choice."""
        self._reset = jax.jit(env.reset)
        self._step = jax.jit(lambda state, action: _outcome(env.step(state, action)))
        self._state: State | None = None
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Restart the sequence of resets.

        Raises:
            ConfigError: if the seed is not a whole number of 64 bits.
        """
        if not isinstance(seed, int | np.integer) or not -(2**63) <= seed < 2**63:
            raise ConfigError(f"seed must be a whole number below 2**63, got {seed!r:.60}")
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


def check_single(wrapper: str, env: Env, other: str = "") -> None:
    """Raise if an environment is a batch.

    Args:
        wrapper: the adapter that needs a single one.
        env: the environment.
        other: the adapter for a batch, if there is one.

    Raises:
        ConfigError: saying what to pass instead.
    """
    if getattr(env, "batch_size", None) is not None:
        advice = f", or use {other} for a batch" * bool(other)
        raise ConfigError(
            f"{wrapper} needs a single environment: pass brax.envs.create(name){advice}"
        )


def _device(backend: str) -> jax.Device:
    try:
        return jax.devices(backend)[0]
    except RuntimeError as error:
        raise ConfigError(f"backend={backend!r}: {error}") from error


def _outcome(state: State) -> tuple[State, Outcome]:
    info, done = state.info, state.done.astype(bool)
    truncated = info["truncation"].astype(bool) if "truncation" in info else jnp.zeros_like(done)
    final = info.get("terminal_obs", state.obs)
    ends = done & ~truncated, truncated
    return state, Outcome(state.obs, state.reward, *ends, final, state.metrics)


def state_structure(env: Env) -> State:
    """Return a state of an environment with shapes and types in place of its arrays."""
    return jax.eval_shape(env.reset, jax.random.key(0))


def observation_structure(state: State) -> Any:
    """Return shape and type of an observation, or those of its entries by name.

    The axes of a batch are left out.
    """
    batch = state.done.ndim
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[batch:], x.dtype), state.obs)


def action_bounds(env: Env) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and highest action of an environment, each (action_size,).

    These are the actuators' ranges if actions are their controls. They are -1 and 1 if the
    environment scales actions, has no model, or has another number of actions than actuators.
    """
    sys = getattr(getattr(env, "unwrapped", env), "sys", None)
    if getattr(env, "scaled", False) or sys is None or sys.act_size() != env.action_size:
        ones = np.ones(env.action_size, np.float32)
        return -ones, ones
    low, high = np.asarray(sys.actuator.ctrl_range, np.float32).T
    return low, high


def to_numpy(tree: object) -> Any:
    """Return the arrays of a tree as writable NumPy arrays."""
    return jax.tree.map(np.array, tree)
