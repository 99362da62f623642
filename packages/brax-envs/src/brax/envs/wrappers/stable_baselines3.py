"""Adapter to stable-baselines3, which must be installed."""

import operator
from typing import Any

import jax
import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from brax.env import Env
from brax.envs.wrappers.gym import VectorGymWrapper


class StableBaselinesWrapper(VecEnv):
    """A batch of environments, as stable-baselines3's `VecEnv`.

    `infos` of episodes that have ended contain `terminal_observation` and `TimeLimit.truncated`.
    """

    def __init__(self, env: Env, seed: int = 0, backend: str | None = None) -> None:
        """Wrap a batch of environments.

        Args:
            env: a batch, as `brax.envs.create(name, batch_size=16)` returns it.
            seed: random seed of the resets until `seed` is called.
            backend: JAX platform to run on; by default JAX's own choice.

        Raises:
            ConfigError: if `env` is a single environment, or its episodes do not restart.
        """
        self._env = VectorGymWrapper(env, seed, backend)
        self.render_mode = None
        spaces = self._env.single_observation_space, self._env.single_action_space
        super().__init__(self._env.num_envs, *spaces)

    def reset(self) -> Any:
        """Start all episodes, and restart the sequence of resets after `seed`."""
        obs, _ = self._env.reset(seed=self._seeds[0])
        # In stable-baselines3 a seed is for the next reset only.
        self._reset_seeds()
        return obs

    def step_async(self, actions: np.ndarray) -> None:
        """Store the actions (num_envs, action_size) for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Advance all environments by one step.

        Returns:
            Observations, rewards (num_envs,), ends of episodes (num_envs,) and an `info` of each.
        """
        obs, reward, terminated, truncated, found = self._env.step(self._actions)
        done = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(done):
            infos[i] = {
                "terminal_observation": jax.tree.map(operator.itemgetter(i), found["final_obs"]),
                "TimeLimit.truncated": bool(truncated[i]),
            }
        return obs, reward, done, infos

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def get_attr(self, attr_name: str, indices: object = None) -> list[Any]:
        """Return an attribute of this object, once for each environment.

        The environments are one program and have no attributes of their own.
        """
        return [getattr(self, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: object, indices: object = None) -> None:
        """Raise an error: the environments are one program.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(f"cannot set '{attr_name}': the environments are one program")

    def env_method(
        self, method_name: str, *args: object, indices: object = None, **kwargs: object
    ) -> list[Any]:
        """Raise an error: the environments are one program.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(f"cannot call '{method_name}': the environments are one program")

    def env_is_wrapped(self, wrapper_class: object, indices: object = None) -> list[bool]:
        """Return False for each environment: none has a wrapper of Gymnasium."""
        return [False] * len(list(self._get_indices(indices)))
