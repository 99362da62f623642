"""All lowering rules of operations on arrays, by the names of JAX's primitives."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from brax.native import (
    arrays,
    elementwise,
    indexing,
    jax_internals,
    matrices,
    scalars,
    sorting,
)
from brax.native.arrays import Elements, each
from brax.native.assembly import Assembly, Unsupported, Value, code_of

BY_ROWS = {**matrices.OPERATIONS, **sorting.OPERATIONS}
"""Rules that apply one function to each matrix or row, in a loop where that is worth it."""

OPERATIONS: dict[str, Callable[..., Any]] = {
    **arrays.OPERATIONS,
    **indexing.OPERATIONS,
    **BY_ROWS,
}


def of_elements(asm: Assembly, eqn: Any) -> Callable[..., Value] | None:
    """Return what an operation does to one element of each operand, if it is elementwise."""
    name = eqn.primitive.name
    if name == "mul" and eqn.outvars[0].aval.dtype != eqn.invars[0].aval.dtype:
        raise Unsupported("a product of another type than its factors")
    if name in elementwise.OPERATIONS:
        return functools.partial(elementwise.OPERATIONS[name], asm, eqn)
    if name in scalars.RULES:
        return functools.partial(scalars.rule(name), asm, code_of(eqn.invars[0].aval.dtype))
    return None


def operation(asm: Assembly, eqn: Any, given: Sequence[Elements]) -> list[Elements]:
    """Return the results of an operation, which are arrays in the shapes of its results.

    Raises:
        Unsupported: if it is not translated.
    """
    rule, name = of_elements(asm, eqn), eqn.primitive.name
    if rule is None and name not in OPERATIONS:
        raise Unsupported(f"the operation '{name}'")
    jax_internals.check(eqn)
    if rule is not None:
        return [each(rule, *given)]
    out = OPERATIONS[name](asm, eqn, *given)
    return out if isinstance(out, list) else [out]
