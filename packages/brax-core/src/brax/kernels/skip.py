"""Conditional work: skipped on a CPU if no environment of a register needs it."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

T = TypeVar("T")

WHERE_NEEDED = "where_needed"
"""The name of the function that holds such work, by which the code generator recognizes it."""


def where_needed(needed: jax.Array, function: Callable[[T], T], tree: T) -> T:
    """Return `function(tree)` in the environments that need it, and `tree` in the others.

    On a CPU, the work is skipped if none of the environments in the lanes of a register needs it.
    The result is the same.

    Args:
        needed: truth values, shape (1, batch).
        function: takes and returns a pytree of arrays whose last axis is the batch; the shapes of
            the results are those of the operands.
        tree: the operands.
    """

    # For XLA and for derivatives this is an ordinary selection. `jit` keeps the function together
    # as one equation of the jaxpr, with its name.
    def chosen(needed: jax.Array, tree: Any) -> Any:
        return jax.tree.map(lambda new, old: jnp.where(needed, new, old), function(tree), tree)

    chosen.__name__ = WHERE_NEEDED
    return jax.jit(chosen)(needed, tree)
