"""Keeping XLA's CPU compiler from computing the same thing again and again."""

from typing import TypeVar

import jax
from jax.experimental.xla_metadata import set_xla_metadata

T = TypeVar("T")


def _identity(x: T) -> T:
    return x


_call = jax.jit(_identity)


def fence(tree: T) -> T:
    """Returns `tree` with its arrays computed once; leaves that are not arrays pass by.

    XLA's fusion on CPU clones cheap producers into every consumer, so that a recursion over a tree
    of links is recomputed at each level. A call that may not be inlined stops it.
    """
    leaves, structure = jax.tree.flatten(tree)
    arrays = [x for x in leaves if isinstance(x, jax.Array)]
    with set_xla_metadata(inlineable="false"):
        computed = iter(_call(arrays))
    return jax.tree.unflatten(
        structure, [next(computed) if isinstance(x, jax.Array) else x for x in leaves]
    )
