"""A search whose result has the derivative of the solution rather than of the search."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

T = TypeVar("T")
R = TypeVar("R")


def solved(search: Callable[[T], R], refine: Callable[[T, R], R], problem: T) -> R:
    """Return `search(problem)`, with the derivative of `refine(problem, found)` at what it found.

    Args:
        search: finds the solution.
        refine: one or more contracting passes from what was found.
        problem: a tree in which only arrays of numbers are differentiated.
    """
    leaves, structure = jax.tree.flatten(problem)
    moving = [i for i, x in enumerate(leaves) if _moves(x)]

    def whole(arrays: list[jax.Array]) -> T:
        every = list(leaves)
        for i, x in zip(moving, arrays, strict=True):
            every[i] = x
        return jax.tree.unflatten(structure, every)

    found = jax.custom_jvp(lambda arrays: search(whole(arrays)))

    def derivative(primals: Any, tangents: Any) -> tuple[R, R]:
        out = found(*primals)
        _, change = jax.jvp(lambda arrays: refine(whole(arrays), out), primals, tangents)
        return out, change

    found.defjvp(derivative)
    return found([leaves[i] for i in moving])


def _moves(x: Any) -> bool:
    return isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jnp.inexact)


def at(base: T, moved: T) -> T:
    """Return `base`, with the derivative of `moved`."""
    return jax.tree.map(
        lambda b, m: jax.lax.stop_gradient(b) + (m - jax.lax.stop_gradient(m)), base, moved
    )
