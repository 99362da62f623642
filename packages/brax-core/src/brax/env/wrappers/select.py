"""Selection between two states for each environment of a batch."""

from typing import Any

import jax
import jax.numpy as jnp


def select(where: jax.Array, new: Any, old: Any, shared: Any = None) -> Any:
    """Return `new` for the environments in `where` (*batch,), and `old` for the others.

    Args:
        where: bool, shape (*batch,).
        new: a tree of arrays with leading axes (*batch,). A leaf without these axes belongs to no
            environment.
        old: a tree of the same structure.
        shared: a tree of the same structure, whose leaves without these axes are returned; by
            default `new`.
    """

    def pick(x: jax.Array, y: jax.Array, z: jax.Array) -> jax.Array:
        if jnp.shape(x)[: where.ndim] != where.shape:
            return z
        # The condition has the batch axes only; the axes behind them broadcast.
        return jnp.where(where.reshape(where.shape + (1,) * (jnp.ndim(x) - where.ndim)), x, y)

    return jax.tree.map(pick, new, old, new if shared is None else shared)
