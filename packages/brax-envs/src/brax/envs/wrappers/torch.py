"""Brax's environments for PyTorch, which this needs: tensors in and out, by dlpack."""

from typing import Any

import jax
import torch
from torch.utils.dlpack import from_dlpack

from brax.env import Env
from brax.envs.wrappers.host import Host


class TorchWrapper:
    """An environment or a batch of them that takes and gives tensors, where JAX computes.

    Tensors share their memory with arrays of JAX, which nobody may write to: `clone` what is to be
    changed in place. `info` holds the metrics of the step and `final_obs`, the true observation
    after it, where `obs` may be the next episode's.
    """

    def __init__(self, env: Env, seed: int = 0, backend: str | None = None) -> None:
        """Wraps an environment.

        Args:
            env: such as `brax.envs.create(name, batch_size=16)` makes.
            seed: of the resets that name none.
            backend: JAX platform to run on; by default JAX's own choice.
        """
        self._host = Host(env, seed, backend)
        self.observation_size = env.observation_size
        self.action_size = env.action_size

    def reset(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode of each; a `seed` makes these and all later ones repeat."""
        if seed is not None:
            self._host.seed(seed)
        return to_torch(self._host.reset()), {}

    def step(self, action: torch.Tensor) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Advances by one step.

        Args:
            action: shape (action_size,), of a batch (batch, action_size).

        Returns:
            Observation, reward, whether the episode ended by itself, whether its time was up, info.
        """
        out = to_torch(self._host.step(to_jax(action)))
        info = {**out.metrics, "final_obs": out.final_obs}
        return out.obs, out.reward, out.terminated, out.truncated, info


def to_torch(tree: Any) -> Any:
    """The arrays of a tree as tensors on the same device."""
    return jax.tree.map(from_dlpack, tree)


def to_jax(tensor: torch.Tensor) -> jax.Array:
    """A tensor as an array on the same device; what becomes of the tensor does not matter."""
    return jax.dlpack.from_dlpack(tensor.detach().clone())
