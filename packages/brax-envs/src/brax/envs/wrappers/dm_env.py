"""Adapter to `dm_env`, which must be installed."""

from typing import Any

import dm_env
import jax
import numpy as np
from dm_env import specs

from brax.env import Env
from brax.envs.wrappers.host import (
    Host,
    action_bounds,
    check_single,
    observation_structure,
    state_structure,
    to_numpy,
)


class DmEnvWrapper(dm_env.Environment):  # type: ignore[misc]  # it has no types
    """One environment, as `dm_env.Environment`.

    The discount is 0 at a termination and 1 otherwise, also at a truncation.
    """

    def __init__(self, env: Env, seed: int = 0, backend: str | None = None) -> None:
        """Wrap an environment.

        Args:
            env: a single environment, as `brax.envs.create(name)` returns it.
            seed: random seed of the resets.
            backend: JAX platform to run on; by default JAX's own choice.

        Raises:
            ConfigError: if `env` is a batch.
        """
        check_single("DmEnvWrapper", env)
        self._host = Host(env, seed, backend)
        self._structure = observation_structure(state_structure(env))
        self._bounds = action_bounds(env)
        self._over = True

    def seed(self, seed: int = 0) -> None:
        """Restart the sequence of resets."""
        self._host.seed(seed)

    def reset(self) -> dm_env.TimeStep:
        """Start an episode."""
        self._over = False
        return dm_env.restart(to_numpy(self._host.reset()))

    def step(self, action: object) -> dm_env.TimeStep:
        """Advance by one step; after the last step of an episode, start the next one."""
        # dm_env: the first step, and the step after the last one of an episode, reset.
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
        """Return the spec of an array, or of arrays by name."""
        found = self._structure
        if isinstance(found, jax.ShapeDtypeStruct):
            return specs.Array(found.shape, found.dtype, "observation")
        return {name: specs.Array(entry.shape, entry.dtype, name) for name, entry in found.items()}

    def action_spec(self) -> specs.BoundedArray:
        """Return the spec of an array within the range of actions."""
        low, high = self._bounds
        return specs.BoundedArray(low.shape, np.float32, low, high, "action")
