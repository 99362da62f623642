"""Adapter to PyTorch, which must be installed: tensors in and out, through dlpack."""

from typing import Any

import jax
import torch
from torch.utils.dlpack import from_dlpack

from brax.env import Env
from brax.envs.wrappers.host import Host


class TorchWrapper:
    """An environment or a batch of them with tensors in and out, on JAX's device.

    Tensors share their memory with immutable arrays of JAX: `clone` a tensor before you change it
    in place. `info` contains the metrics of the step and `final_obs`, the true observation after
    it; `obs` may be that of the next episode.
    """

    def __init__(self, env: Env, seed: int = 0, backend: str | None = None) -> None:
        """Wrap an environment.

        Args:
            env: an environment, as `brax.envs.create(name, batch_size=16)` returns it.
            seed: random seed of resets without a seed of their own.
            backend: JAX platform to run on; by default JAX's own choice.
        """
        self._host = Host(env, seed, backend)
        self.observation_size = env.observation_size
        self.action_size = env.action_size

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Start all episodes; a `seed` makes these and all later ones reproducible."""
        if seed is not None:
            self._host.seed(seed)
        return to_torch(self._host.reset()), {}

    def step(self, action: torch.Tensor) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advance by one step.

        Args:
            action: shape (action_size,), or (batch, action_size) for a batch.

        Returns:
            Observation, reward, terminated, truncated, info.
        """
        out = to_torch(self._host.step(to_jax(action)))
        info = {**out.metrics, "final_obs": out.final_obs}
        return out.obs, out.reward, out.terminated, out.truncated, info


def to_torch(tree: Any) -> Any:
    """Return the arrays of a tree as tensors on the same device."""
    return jax.tree.map(from_dlpack, tree)


def to_jax(tensor: torch.Tensor) -> jax.Array:
    """Return a tensor as an array on the same device.

    The tensor is copied, so later changes to it do not matter.
    """
    return jax.dlpack.from_dlpack(tensor.detach().clone())
