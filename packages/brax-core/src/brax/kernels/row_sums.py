"""Weighted sums of terms of rows, such as a loss: on a CPU, with their gradient in one kernel."""

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brax.kernels.batch_last import batch_last
from brax.kernels.codegen.single_precision import MARK

Terms = Callable[[Any, Any], tuple[jax.Array, ...]]
"""A function of pytrees of arrays (..., n) or (...), as `weighted_sum` takes it."""


def weighted_sum(
    terms: Terms, outputs: Any, rows: Any, weights: Sequence[jax.Array]
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Return the weighted sum of the terms of all rows, and the terms, without a gradient.

    The sum can be differentiated by `outputs` only, once and in reverse mode. On a CPU one kernel
    computes each row's terms and their gradient, since the weights of the terms are known then.
    Its elementary functions are computed in single precision.

    Args:
        terms: takes `outputs` and `rows`, for any number of leading axes or none; returns the terms
            of each row, arrays of the leading axes. It may not depend on traced values otherwise.
        outputs: pytree of what the sum is differentiated by, leaves (rows, ...).
        rows: pytree of other data of each row, leaves (rows, ...).
        weights: the weights of the first terms, each () or (rows,). Those of the others are zero,
            even where a term is infinite.
    """
    arrays = jax.tree.leaves((outputs, rows, weights))
    single = all(x.dtype == jnp.float32 for x in arrays)
    if not single or jax.default_backend() != "cpu" or os.environ.get("BRAX_NATIVE") == "0":
        found = terms(outputs, jax.lax.stop_gradient(rows))
        return _total(found, weights), jax.lax.stop_gradient(found)
    size = len(arrays[0])
    each = [jnp.broadcast_to(w, (size,)) for w in weights]
    return _by_kernel(terms, outputs, rows, each)


def _total(found: Sequence[jax.Array], weights: Sequence[jax.Array]) -> jax.Array:
    """Return the sum over all rows of terms times weights."""
    return sum((jnp.sum(w * x) for w, x in zip(weights, found, strict=False)), jnp.float32(0))


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _by_kernel(terms: Terms, outputs: Any, rows: Any, weights: Sequence[jax.Array]) -> Any:
    """Return the weighted sum and the terms."""
    return _with_gradient(terms, outputs, rows, weights)[0]


def _with_gradient(terms: Terms, outputs: Any, rows: Any, weights: Sequence[jax.Array]) -> Any:
    """Return the weighted sum and the terms, and the sum's gradient by the outputs."""

    def graded(outputs: Any, row: Any, weights: Any) -> Any:
        def weighted(outputs: Any) -> Any:
            found = terms(outputs, row)
            return sum(w * x for w, x in zip(weights, found, strict=False)), found

        return jax.grad(weighted, has_aux=True)(outputs)

    graded.__name__ = MARK

    def rows_last(*args: Any) -> Any:
        return jax.vmap(jax.jit(graded), in_axes=-1, out_axes=-1)(*args)

    gradient, found = jax.vmap(batch_last(rows_last))(outputs, rows, weights)
    return (_total(found, weights), found), gradient


def _scaled(terms: Terms, gradient: Any, cotangents: Any) -> tuple[Any, None, None]:
    """Return the cotangents of the outputs; nothing else has any."""
    return jax.tree.map(lambda x: cotangents[0] * x, gradient), None, None


_by_kernel.defvjp(_with_gradient, _scaled)
