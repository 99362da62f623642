"""Counts of the arithmetic of a function, from its jaxpr."""

import math
from collections.abc import Callable
from typing import Any

import jax

from brax.kernels.codegen import jax_internals
from brax.kernels.codegen.lowering.arrays import DATA_MOVEMENT


def operations(function: Callable[..., Any], *args: Any) -> int:
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
    name = eqn.primitive.name
    if name == "batch_last":
        shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars]
        return operations(eqn.params["fun"], *shapes)
    if name == "scan":
        loop = jax_internals.scan(eqn)
        return loop.length * _count(loop.body.jaxpr)
    if name == "cond":
        return max(_count(branch.jaxpr) for branch in jax_internals.branches(eqn))
    if inner := jax_internals.inner(eqn):
        return sum(map(_count, inner))
    if name in DATA_MOVEMENT:
        return 0
    # A reduction has its operand's elements, a broadcasting operation its result's.
    sizes = (math.prod(v.aval.shape) for v in (*eqn.invars, *eqn.outvars))
    return max(sizes, default=0)
