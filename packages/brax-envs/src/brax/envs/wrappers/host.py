"""What the wrappers for the worlds outside share: a state kept, keys drawn, programs compiled."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.env import Env, State
from brax.errors import ConfigError


class Outcome(NamedTuple):
    """What a step led to, for one environment or a batch."""

    obs: Any
    """Observation after the step; where an episode has ended by auto-reset, of the next one."""
    reward: jax.Array
    terminated: jax.Array
    """True if the episode ended by itself, bool."""
    truncated: jax.Array
    """True if its time was up, bool."""
    final_obs: Any
    """The true observation after the step."""
    metrics: dict[str, jax.Array]


class Host:
    """An environment with a state of its own, for callers that keep none."""

    def __init__(self, env: Env, seed: int, backend: str | None) -> None:
        """Keeps an environment.

        Args:
            env: the environment, in whatever wrappers of training.
            seed: of the resets that name none.
            backend: JAX platform to run on, such as 'cpu'; by default JAX's own choice.
        """
        self._device = jax.devices(backend)[0] if backend else None
        self._reset = jax.jit(env.reset)
        self._step = jax.jit(lambda state, action: _outcome(env.step(state, action)))
        self._state: State | None = None
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Restarts the sequence of resets."""
        self._key = jax.device_put(jax.random.key(seed), self._device)

    def reset(self) -> Any:
        """Starts an episode and returns its first observation."""
        self._key, key = jax.random.split(self._key)
        self._state = self._reset(key)
        return self._state.obs

    def step(self, action: Any) -> Outcome:
        """Advances by one step.

        Raises:
            ConfigError: before the first reset.
        """
        if self._state is None:
            raise ConfigError("step before reset: call reset first, for an episode to go on with")
        self._state, outcome = self._step(self._state, jnp.asarray(action, jnp.float32))
        return outcome


def _outcome(state: State) -> tuple[State, Outcome]:
    info, done = state.info, state.done.astype(bool)
    truncated = info["truncation"].astype(bool) if "truncation" in info else jnp.zeros_like(done)
    final = info.get("terminal_obs", state.obs)
    ends = done & ~truncated, truncated
    return state, Outcome(state.obs, state.reward, *ends, final, state.metrics)


def action_bounds(env: Env) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest action that an environment tells apart, each (action_size,).

    These are -1 and 1 where it scales actions or has no actuators, else the actuators' ranges.
    """
    if getattr(env, "scaled", False) or not hasattr(env.unwrapped, "sys"):
        ones = np.ones(env.action_size, np.float32)
        return -ones, ones
    low, high = np.asarray(env.unwrapped.sys.actuator.ctrl_range, np.float32).T
    return low, high


def to_numpy(tree: Any) -> Any:
    """The arrays of a tree as arrays of NumPy that may be written to."""
    return jax.tree.map(np.array, tree)
