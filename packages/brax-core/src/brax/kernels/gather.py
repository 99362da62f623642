"""Gathers whose indices differ between environments."""

from typing import TypeVar

import jax
import jax.numpy as jnp

from brax.kernels.fusion_barrier import compiled_apart

T = TypeVar("T")


def picked(tree: T, index: jax.Array) -> T:
    """Take entries along the first axis, by indices of which each environment has its own.

    Args:
        tree: a pytree of arrays (rows, ..., 1 or batch).
        index: row numbers (n, ..., batch), each at least 0 and less than the number of rows.

    Returns:
        The entries, leaves (n, ..., batch).
    """

    def take(leaf: jax.Array, index: jax.Array) -> jax.Array:
        """Take the entries of one leaf, which environments may share."""
        if leaf.ndim == 2 and leaf.shape[-1] == 1:
            return leaf[:, 0].at[index].get(mode="promise_in_bounds")
        inner = jnp.broadcast_shapes(leaf.shape[1:], index.shape[1:])
        leaf = jnp.broadcast_to(leaf, (len(leaf), *inner))
        wide = jnp.broadcast_to(index, (len(index), *inner))
        return jnp.take_along_axis(leaf, wide, axis=0, mode="promise_in_bounds")

    # XLA's fusion emitter aborts on some gathers that share a loop with another result.
    return compiled_apart(lambda t, i: jax.tree.map(lambda x: take(x, i), t), tree, index)
