"""Implicit differentiation: a search whose result has the derivative of the solution.

The derivative of the iterations that find a solution need not converge to that of the solution,
here it even grew without bound. So the derivative comes from contracting passes that start at the
solution.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

T = TypeVar("T")
R = TypeVar("R")


def solved(search: Callable[[T], R], refine: Callable[[T, R], R], problem: T) -> R:
    """Return `search(problem)`, with the derivative of `refine(problem, solution)`.

    Args:
        search: a function that finds the solution of a problem.
        refine: a function that makes contracting passes from a solution.
        problem: a pytree, of which only the floating-point arrays are differentiated.
    """
    # A custom derivative takes arrays only, but the problem has static parts such as the model's
    # structure. So the arrays are taken out of it and put back inside.
    leaves, structure = jax.tree.flatten(problem)
    moving = [i for i, x in enumerate(leaves) if _moves(x)]

    def whole(arrays: list[jax.Array]) -> T:
        """Return the problem with other floating-point arrays."""
        every = list(leaves)
        for i, x in zip(moving, arrays, strict=True):
            every[i] = x
        return jax.tree.unflatten(structure, every)

    # Forward mode suffices: JAX transposes the linear passes for reverse mode.
    found = jax.custom_jvp(lambda arrays: search(whole(arrays)))

    def derivative(primals: Any, tangents: object) -> tuple[R, R]:
        """Return the solution, and its tangent through the passes."""
        out = found(*primals)
        _, change = jax.jvp(lambda arrays: refine(whole(arrays), out), primals, tangents)
        return out, change

    found.defjvp(derivative)
    return found([leaves[i] for i in moving])


def _moves(x: object) -> bool:
    """Return whether a leaf is a floating-point array."""
    return isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jnp.inexact)


def at(base: T, moved: T) -> T:
    """Return the values of `base` with the derivative of `moved`."""
    # The difference is exactly zero, so that values stay equal to the last bit.
    return jax.tree.map(
        lambda b, m: jax.lax.stop_gradient(b) + (m - jax.lax.stop_gradient(m)), base, moved
    )
