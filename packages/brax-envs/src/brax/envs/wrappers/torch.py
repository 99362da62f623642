"""Adapter to PyTorch, which must be installed: tensors in and out, through dlpack."""

from typing import Any

import jax
import torch

from brax.envs.wrappers.host import Host
from brax.io.torch import jax_to_torch as to_torch
from brax.io.torch import torch_to_jax as to_jax

__all__ = ["TorchWrapper", "to_jax", "to_torch"]


class TorchWrapper:
    """An environment or a batch of them with tensors in and out.

    Tensors on JAX's device share their memory with immutable arrays of JAX: `clone` a tensor before
    you change it in place. `info` contains the metrics of the step and `final_obs`, the true
    observation after it; `obs` may be that of the next episode.

    Around a `GymWrapper` or `VectorGymWrapper`, it has the interface of Google's brax: `reset`
    returns the observation, and `step` returns observation, reward, done and `info`, which also has
    `truncation`. `done` and `truncation` are 0 or 1, floats. `action_space` and the like
    are those of the inner wrapper.
    """

    def __init__(
        self,
        env: Any,
        seed: int = 0,
        backend: str | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        """Wrap an environment.

        Args:
            env: an environment, as `brax.envs.create(name, batch_size=16)` returns it, or a gym
                wrapper around one, which has its own `seed` and `backend`.
            seed: random seed of resets without a seed of their own.
            backend: JAX platform to run on; by default JAX's own choice.
            device: PyTorch's device of the tensors; by default that of JAX.
        """
        host = getattr(env, "_host", None)
        self._gym = env if isinstance(host, Host) else None
        self._host = host if isinstance(host, Host) else Host(env, seed, backend)
        self._device = device
        if self._gym is None:
            self.observation_size, self.action_size = env.observation_size, env.action_size

    def reset(self, seed: int | None = None) -> Any:
        """Start all episodes; a `seed` makes these and all later ones reproducible.

        Returns:
            Observation and an empty `info`; around a gym wrapper the observation.
        """
        if seed is not None:
            self._host.seed(seed)
        obs = to_torch(self._host.reset(), self._device)
        return (obs, {}) if self._gym is None else obs

    def step(self, action: torch.Tensor) -> tuple[Any, ...]:
        """Advance by one step.

        Args:
            action: shape (action_size,), or (batch, action_size) for a batch.

        Returns:
            Observation, reward, terminated, truncated, info; around a gym wrapper observation,
            reward, done, info.
        """
        controls = jax.device_put(to_jax(action), self._host.device)
        out = to_torch(self._host.step(controls), self._device)
        info = {**out.metrics, "final_obs": out.final_obs}
        if self._gym is None:
            return out.obs, out.reward, out.terminated, out.truncated, info
        info["truncation"] = out.truncated.to(out.reward.dtype)
        done = (out.terminated | out.truncated).to(out.reward.dtype)
        return out.obs, out.reward, done, info

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the inner gym wrapper."""
        if name.startswith("_") or self._gym is None:
            raise AttributeError(f"TorchWrapper has no attribute '{name}'")
        return getattr(self._gym, name)
