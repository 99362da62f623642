"""Conversion between arrays of JAX and tensors of PyTorch, which must be installed, by dlpack."""

from typing import Any

import jax
import torch
from torch.utils.dlpack import from_dlpack


def jax_to_torch(value: object, device: torch.device | str | None = None) -> Any:
    """Return the arrays of a tree as tensors.

    Tensors on the device of their array share its memory, which is immutable: `clone` a tensor
    before you change it in place.

    Args:
        value: a tree of arrays.
        device: where the tensors are; by default where the arrays are.
    """
    tensors = jax.tree.map(from_dlpack, value)
    return tensors if device is None else jax.tree.map(lambda t: t.to(device), tensors)


def torch_to_jax(value: object) -> Any:
    """Return the tensors of a tree as arrays on the same device.

    They are copied, so later changes of the tensors do not matter.
    """
    return jax.tree.map(lambda t: jax.dlpack.from_dlpack(t.detach().clone()), value)
