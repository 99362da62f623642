"""Counts of the arithmetic of a function, from its jaxpr."""

from collections.abc import Callable
from typing import Any

import jax

from brax.kernels.codegen import jax_internals
from brax.kernels.codegen.operations import elements, operation


def operations(function: Callable[..., object], *args: object) -> int:
    """Return the number of operations on numbers that a function does.

    Loops count as often as they run, and work that only some environments need counts in full. A
    loop that ends by a test counts once.

    Args:
        function: the function, of one environment.
        args: pytrees of arrays, or of their shapes.
    """
    return _count(jax.make_jaxpr(function)(*args).jaxpr)


def _count(jaxpr: Any) -> int:
    """Return the number of operations of a jaxpr."""
    return sum(map(_of_equation, jaxpr.eqns))


def _of_equation(eqn: Any) -> int:
    """Return the number of operations of an equation."""
    found = operation(eqn)
    if found.kernel:
        shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars]
        return operations(eqn.params["fun"], *shapes)
    parts = found.parts(eqn) if found.parts else None
    if isinstance(parts, jax_internals.Scan):
        return parts.length * _count(parts.body.jaxpr)
    if isinstance(parts, jax_internals.Branches):
        return max(_count(branch.jaxpr) for branch in parts.all)
    if inner := jax_internals.inner(eqn):
        return sum(map(_count, inner))
    return 0 if found.moves else elements(eqn)
