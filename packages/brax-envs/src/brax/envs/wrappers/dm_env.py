"""Brax's environments for `dm_env`, which this needs."""

from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from brax.env import Env
from brax.envs.wrappers.host import Host, action_bounds, to_numpy


class DmEnvWrapper(dm_env.Environment):  # type: ignore[misc]  # it has no types
    """One environment, as `dm_env.Environment`.

    The discount is 0 where an episode ended by itself and 1 elsewhere, also where its time was up.
    """

    def __init__(self, env: Env, seed: int = 0, backend: str | None = None) -> None:
        """Wraps an environment.

        Args:
            env: a single one, such as `brax.envs.create(name)` makes.
            seed: of the resets.
            backend: JAX platform to run on; by default JAX's own choice.
        """
        self._host = Host(env, seed, backend)
        self._sizes = env.observation_size
        self._bounds = action_bounds(env)
        self._over = True

    def seed(self, seed: int = 0) -> None:
        """Restarts the sequence of resets."""
        self._host.seed(seed)

    def reset(self) -> dm_env.TimeStep:
        """Starts an episode."""
        self._over = False
        return dm_env.restart(to_numpy(self._host.reset()))

    def step(self, action: Any) -> dm_env.TimeStep:
        """Advances by one step; after the last of an episode, starts the next instead."""
        if self._over:
            return self.reset()
        out = to_numpy(self._host.step(action))
        self._over = bool(out.terminated | out.truncated)
        if out.terminated:
            return dm_env.termination(float(out.reward), out.final_obs)
        if out.truncated:
            return dm_env.truncation(float(out.reward), out.final_obs)
        return dm_env.transition(float(out.reward), out.final_obs)

    def observation_spec(self) -> Any:
        """An array, or arrays by name."""
        if isinstance(self._sizes, int):
            return specs.Array((self._sizes,), np.float32, "observation")
        return {name: specs.Array(shape, np.float32, name) for name, shape in self._sizes.items()}

    def action_spec(self) -> specs.BoundedArray:
        """An array within what the environment tells apart."""
        low, high = self._bounds
        return specs.BoundedArray(low.shape, np.float32, low, high, "action")
