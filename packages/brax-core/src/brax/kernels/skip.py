"""Conditional work: skipped on a CPU if no environment of a register needs it."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

T = TypeVar("T")

WHERE_NEEDED = "where_needed"
"""The name of the function that holds such work, by which the code generator recognizes it."""


UNREAD = "unread"
"""The name of the function that marks what nobody reads."""


def unread(tree: T) -> T:
    """Return arrays for `otherwise` of `map_needed` that nobody reads: a CPU does not write them.

    Whoever reads the results must pass over the same chunks.
    """

    def same(tree: T) -> T:
        return tree

    same.__name__ = UNREAD
    return jax.jit(same)(tree)


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


def empty(function: Callable[[Any], T], chunk: Any) -> T:
    """Return zeros shaped as a function's result for a chunk, as `otherwise` of `map_needed`."""
    shapes = jax.eval_shape(function, chunk)
    return jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)


def in_chunks(tree: T, count: int) -> T:
    """Return rows (rows, ..., batch) as so many chunks, (count, rows of a chunk, ..., batch)."""
    return jax.tree.map(lambda x: x.reshape(count, -1, *x.shape[1:]), tree)


def map_needed(needed: jax.Array, function: Callable[[Any], T], chunks: Any, otherwise: T) -> T:
    """Return `function` of each chunk that an environment needs, and `otherwise` of the others.

    On a CPU, a chunk that no environment of a register needs costs a test.

    Args:
        needed: truth values, (chunks, batch).
        function: takes a chunk, returns a pytree shaped as `otherwise`.
        chunks: a pytree whose leaves are (chunks, ..., batch).
        otherwise: the result where a chunk is not needed; the last axis of its leaves is the batch.

    Returns:
        A pytree of the results, leaves (chunks, ..., batch).
    """

    def step(_: None, given: tuple[jax.Array, Any]) -> tuple[None, T]:
        mine, chunk = given
        return None, where_needed(mine, lambda _: function(chunk), otherwise)

    # The code generator knows a loop whose body is `where_needed` alone, of a scanned value.
    return jax.lax.scan(step, None, (needed[:, None], chunks))[1]


def fold_needed(needed: jax.Array, function: Callable[[T, Any], T], start: T, chunks: Any) -> T:
    """Return `function(... function(start, chunk 0) ..., chunk n)` over the chunks that are needed.

    Args:
        needed: truth values, (chunks, batch).
        function: takes what is carried and a chunk, returns what is carried next.
        start: the first carry, a pytree whose leaves have the batch as last axis.
        chunks: a pytree whose leaves are (chunks, ..., batch).
    """

    def step(carry: T, given: tuple[jax.Array, Any]) -> tuple[T, None]:
        mine, chunk = given
        return where_needed(mine, lambda carry: function(carry, chunk), carry), None

    return jax.lax.scan(step, start, (needed[:, None], chunks))[0]
