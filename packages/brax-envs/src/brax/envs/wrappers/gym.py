"""Adapters to Gymnasium, for one environment or a batch. `gymnasium` must be installed."""

from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from brax.env import Env, State
from brax.envs.wrappers.host import (
    Host,
    action_bounds,
    check_single,
    observation_structure,
    state_structure,
    to_numpy,
)
from brax.errors import ConfigError


class GymWrapper(gymnasium.Env[Any, Any]):
    """One environment, as `gymnasium.Env`.

    Episodes are truncated by the `EpisodeWrapper` that `brax.envs.create` adds, and never without
    it. `info` contains the metrics of the step.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # Gymnasium's interface

    def __init__(self, env: Env, seed: int = 0, backend: str | None = None) -> None:
        """Wrap an environment.

        Args:
            env: a single environment, as `brax.envs.create(name)` returns it.
            seed: random seed of resets without a seed of their own.
            backend: JAX platform to run on; by default JAX's own choice.

        Raises:
            ConfigError: if `env` is a batch.
        """
        check_single("GymWrapper", env, "VectorGymWrapper")
        self._host = Host(env, seed, backend)
        self.observation_space = _observation_space(state_structure(env))
        self.action_space = spaces.Box(*action_bounds(env))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; a `seed` makes this one and all later ones reproducible."""
        super().reset(seed=seed)
        return _restart(self._host, seed), {}

    def step(self, action: object) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advance by one step, and return the true observation, also at the end of an episode."""
        out = to_numpy(self._host.step(action))
        ends = bool(out.terminated), bool(out.truncated)
        return out.final_obs, float(out.reward), *ends, out.metrics


class VectorGymWrapper(VectorEnv[Any, Any, Any]):
    """A batch of environments, as `gymnasium.vector.VectorEnv` that resets in the same step.

    At the end of an episode, `obs` is the first observation of the next one. In a step with any
    end, `info["final_obs"]` has the true observations and `info["final_info"]` the metrics, in all
    rows. `info["_final_obs"]` and `info["_final_info"]` are True in the rows with an end.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(self, env: Env, seed: int = 0, backend: str | None = None) -> None:
        """Wrap a batch of environments.

        Args:
            env: a batch, as `brax.envs.create(name, batch_size=16)` returns it.
            seed: random seed of resets without a seed of their own.
            backend: JAX platform to run on; by default JAX's own choice.

        Raises:
            ConfigError: if `env` is a single environment, or its episodes do not restart.
        """
        batch_size = getattr(env, "batch_size", None)
        if batch_size is None:
            raise ConfigError(
                "VectorGymWrapper needs a batch of environments: pass "
                "brax.envs.create(name, batch_size=...), or use GymWrapper for a single one"
            )
        state = state_structure(env)
        if "terminal_obs" not in state.info:
            raise ConfigError(
                "VectorGymWrapper needs environments that restart: pass "
                "brax.envs.create(name, batch_size=...) without auto_reset=False, or put yours in "
                "a brax.env.AutoResetWrapper"
            )
        self._host = Host(env, seed, backend)
        self.num_envs = batch_size
        self.single_observation_space = _observation_space(state)
        self.single_action_space = spaces.Box(*action_bounds(env))
        self.observation_space = batch_space(self.single_observation_space, batch_size)
        self.action_space = batch_space(self.single_action_space, batch_size)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start all episodes; a `seed` makes these and all later ones reproducible."""
        super().reset(seed=seed)
        return _restart(self._host, seed), {}

    def step(self, actions: object) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advance all environments by one step."""
        out = to_numpy(self._host.step(actions))
        info = dict(out.metrics)
        done = out.terminated | out.truncated
        if done.any():
            # Gymnasium's SAME_STEP mode: `obs` is the next episode's, so the last one goes to
            # `info`.
            info |= {"final_obs": out.final_obs, "final_info": out.metrics}
            info |= {"_final_obs": done, "_final_info": done}
        return out.obs, out.reward, out.terminated, out.truncated, info


def _restart(host: Host, seed: int | None) -> Any:
    """Return the first observation; a seed restarts the sequence of resets."""
    if seed is not None:
        host.seed(seed)
    return to_numpy(host.reset())


def _observation_space(state: State) -> spaces.Space[Any]:
    found = observation_structure(state)
    if isinstance(found, jax.ShapeDtypeStruct):
        return _unbounded(found)
    return spaces.Dict({name: _unbounded(entry) for name, entry in found.items()})


def _unbounded(entry: jax.ShapeDtypeStruct) -> spaces.Box:
    """Return the space of all arrays of a shape and type."""
    low, high = -np.inf, np.inf
    if entry.dtype == bool:
        low, high = 0, 1
    elif np.issubdtype(entry.dtype, np.integer):
        low, high = np.iinfo(entry.dtype).min, np.iinfo(entry.dtype).max
    return spaces.Box(low, high, entry.shape, entry.dtype)
