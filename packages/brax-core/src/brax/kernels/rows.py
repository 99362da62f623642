"""Functions of single rows of arrays: on a CPU one kernel, whose threads share the rows.

XLA computes such a function operation by operation, each over all rows, and many of them on one
core. `map_rows` is the function of all rows, `weighted_sum` a sum of its results, such as a loss.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brax.kernels.batch_last import batch_last
from brax.kernels.codegen import cpu
from brax.kernels.codegen.single_precision import in_single_precision

MIN_ROWS = 128
"""Smallest number of rows for which there is a kernel; it takes a tenth of a second to compile."""

Terms = Callable[[Any, Any], tuple[jax.Array, ...]]
"""A function of pytrees of arrays (..., n) or (...), as `weighted_sum` takes it."""


def map_rows(fun: Callable[..., Any], *arrays: Any) -> Any:
    """Return the results of a function of rows, leaves (rows, ...).

    The kernel computes elementary functions in single precision.

    Args:
        fun: takes pytrees of arrays with any number of leading axes or none; returns such a pytree.
            It may not depend on traced values otherwise. A function that is new at each call is
            translated at each call, so outside of `jit` it should be the same one.
        *arrays: pytrees of arrays, leaves (rows, ...).
    """
    return jax.vmap(_kernel(fun))(*arrays) if _has_kernel(arrays) else fun(*arrays)


# Cached, so that a function that is called again outside of `jit` is not translated again.
@functools.lru_cache(maxsize=256)
def _kernel(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of a function of rows, for one row."""
    single = in_single_precision(fun)

    def rows_last(*args: Any) -> Any:
        return jax.vmap(single, in_axes=-1, out_axes=-1)(*args)

    return batch_last(rows_last)


def _has_kernel(arrays: Any) -> bool:
    """Return whether a function of the rows of some arrays is a kernel."""
    leaves = jax.tree.leaves(arrays)
    if any(x.dtype != jnp.float32 for x in leaves) or len(leaves[0]) < MIN_ROWS:
        return False
    return cpu.is_default()


def weighted_sum(
    terms: Terms, outputs: Any, rows: Any, weights: Sequence[jax.Array]
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Return the weighted sum of the terms of all rows, and the terms, without a gradient.

    The sum can be differentiated by `outputs` only. One kernel computes each row's terms and their
    gradient, since the weights of the terms are known then.

    Args:
        terms: takes `outputs` and `rows`, for any number of leading axes or none; returns the terms
            of each row, arrays of the leading axes. It may not depend on traced values otherwise.
        outputs: pytree of what the sum is differentiated by, leaves (rows, ...).
        rows: pytree of other data of each row, leaves (rows, ...).
        weights: the weights of the first terms, each () or (rows,). Those of the others are zero,
            even where a term is infinite.
    """
    rows, weights = jax.lax.stop_gradient((rows, weights))
    if not _has_kernel((outputs, rows, weights)):
        found = terms(outputs, rows)
        return _total(found, weights), jax.lax.stop_gradient(found)
    size = len(jax.tree.leaves(outputs)[0])
    return _by_kernel(terms, outputs, rows, [jnp.broadcast_to(w, (size,)) for w in weights])


def _total(found: Sequence[jax.Array], weights: Sequence[jax.Array]) -> jax.Array:
    """Return the sum over all rows of terms times weights."""
    return sum((jnp.sum(w * x) for w, x in zip(weights, found, strict=False)), jnp.float32(0))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _by_kernel(terms: Terms, outputs: Any, rows: Any, weights: Sequence[jax.Array]) -> Any:
    """Return the weighted sum and the terms."""
    found = map_rows(terms, outputs, rows)
    return _total(found, weights), found


@_by_kernel.defjvp
def _with_gradient(terms: Terms, primals: Any, tangents: Any) -> Any:
    """Return the weighted sum and the terms, and their tangents, by the gradient of each row."""
    outputs, rows, weights = primals

    def graded(outputs: Any, row: Any, weights: Any) -> Any:
        def weighted(outputs: Any) -> Any:
            found = terms(outputs, row)
            return sum(w * x for w, x in zip(weights, found, strict=False)), found

        return jax.grad(weighted, has_aux=True)(outputs)

    gradient, found = map_rows(graded, outputs, rows, weights)
    both = zip(*map(jax.tree.leaves, (gradient, tangents[0])), strict=True)
    tangent = sum((jnp.sum(g * t) for g, t in both), jnp.float32(0))
    return (_total(found, weights), found), (tangent, jax.tree.map(jnp.zeros_like, found))
