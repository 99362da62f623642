"""Brax's environments for Gymnasium, one or many at a time. Needs `gymnasium`."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from brax.env import Env
from brax.envs.wrappers.host import Host, action_bounds, to_numpy
from brax.errors import ConfigError


class GymWrapper(gymnasium.Env[Any, Any]):
    """One environment, as `gymnasium.Env`.

    What ends an episode in time is the `EpisodeWrapper` that `brax.envs.create` adds; without it
    episodes are never truncated. `info` holds the metrics of the step.
    """

    metadata = {"render_modes": []}  # noqa: RUF012  # Gymnasium's own form

    def __init__(self, env: Env, seed: int = 0, backend: str | None = None) -> None:
        """Wraps an environment.

        Args:
            env: a single one, such as `brax.envs.create(name)` makes.
            seed: of the resets that name none.
            backend: JAX platform to run on; by default JAX's own choice.

        Raises:
            ConfigError: if `env` is a batch of them.
        """
        if getattr(env, "batch_size", None) is not None:
            raise ConfigError(
                "GymWrapper needs a single environment: pass brax.envs.create(name), or use "
                "VectorGymWrapper for a batch"
            )
        self._host = Host(env, seed, backend)
        self.observation_space = _observation_space(env)
        self.action_space = spaces.Box(*action_bounds(env))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; a `seed` makes this and all later ones repeat."""
        super().reset(seed=seed)
        return _restart(self._host, seed), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advances by one step, to the true observation, also at the end of an episode."""
        out = to_numpy(self._host.step(action))
        ends = bool(out.terminated), bool(out.truncated)
        return out.final_obs, float(out.reward), *ends, out.metrics


class VectorGymWrapper(VectorEnv[Any, Any, Any]):
    """A batch of environments, as `gymnasium.vector.VectorEnv` that resets in the same step.

    Where an episode ends, `obs` is the first of the next one, and `info["final_obs"]` the true one
    and `info["final_info"]` the metrics, in all rows; `info["_final_obs"]` and
    `info["_final_info"]` tell the rows in which an episode has ended.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(self, env: Env, seed: int = 0, backend: str | None = None) -> None:
        """Wraps a batch of environments.

        Args:
            env: a batch, such as `brax.envs.create(name, batch_size=16)` makes.
            seed: of the resets that name none.
            backend: JAX platform to run on; by default JAX's own choice.

        Raises:
            ConfigError: if `env` is a single environment.
        """
        batch_size = getattr(env, "batch_size", None)
        if batch_size is None:
            raise ConfigError(
                "VectorGymWrapper needs a batch of environments: pass "
                "brax.envs.create(name, batch_size=...), or use GymWrapper for a single one"
            )
        self._host = Host(env, seed, backend)
        self.num_envs = batch_size
        self.single_observation_space = _observation_space(env)
        self.single_action_space = spaces.Box(*action_bounds(env))
        self.observation_space = batch_space(self.single_observation_space, batch_size)
        self.action_space = batch_space(self.single_action_space, batch_size)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode of each; a `seed` makes these and all later ones repeat."""
        super().reset(seed=seed)
        return _restart(self._host, seed), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advances all by one step."""
        out = to_numpy(self._host.step(actions))
        info = dict(out.metrics)
        done = out.terminated | out.truncated
        if done.any():
            info |= {"final_obs": out.final_obs, "final_info": out.metrics}
            info |= {"_final_obs": done, "_final_info": done}
        return out.obs, out.reward, out.terminated, out.truncated, info


def _restart(host: Host, seed: int | None) -> Any:
    """The first observation; a seed starts the sequence of resets anew."""
    if seed is not None:
        host.seed(seed)
    return to_numpy(host.reset())


def _observation_space(env: Env) -> spaces.Space[Any]:
    size = env.observation_size
    if isinstance(size, int):
        return _unbounded((size,))
    return spaces.Dict({name: _unbounded(shape) for name, shape in size.items()})


def _unbounded(shape: tuple[int, ...]) -> spaces.Box:
    return spaces.Box(-np.inf, np.inf, shape, np.float32)
