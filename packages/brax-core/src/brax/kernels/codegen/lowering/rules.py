"""All lowering rules of operations on arrays, by the names of JAX's primitives."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from brax.kernels.codegen import jax_internals
from brax.kernels.codegen.emitter import Emitter, Unsupported, Value, code_of
from brax.kernels.codegen.lowering import arrays, elementwise, indexing, matrices, scalars, sorting
from brax.kernels.codegen.lowering.arrays import ElementArray, each

RULES_BY_ROWS = {**matrices.MATRIX_RULES, **sorting.SORTING_RULES}
"""Rules that apply one function to each matrix or row, in a loop where that is worth it."""

RULES_BY_PRIMITIVE: dict[str, Callable[..., Any]] = {
    **arrays.ARRAY_RULES,
    **indexing.INDEXING_RULES,
    **RULES_BY_ROWS,
}


def of_elements(asm: Emitter, eqn: Any) -> Callable[..., Value] | None:
    """Return what an operation does to one element of each operand, if it is elementwise."""
    name = eqn.primitive.name
    if name == "mul" and eqn.outvars[0].aval.dtype != eqn.invars[0].aval.dtype:
        raise Unsupported("a product of another type than its factors")
    if name in elementwise.ELEMENTWISE_RULES:
        return functools.partial(elementwise.ELEMENTWISE_RULES[name], asm, eqn)
    if name in scalars.SCALAR_RULES:
        return functools.partial(scalars.rule(name), asm, code_of(eqn.invars[0].aval.dtype))
    return None


def operation(asm: Emitter, eqn: Any, given: Sequence[ElementArray]) -> list[ElementArray]:
    """Return the results of an operation, which are arrays in the shapes of its results.

    Raises:
        Unsupported: if it is not translated.
    """
    rule, name = of_elements(asm, eqn), eqn.primitive.name
    if rule is None and name not in RULES_BY_PRIMITIVE:
        raise Unsupported(f"the operation '{name}'")
    jax_internals.check(eqn)
    if rule is not None:
        return [each(rule, *given)]
    out = RULES_BY_PRIMITIVE[name](asm, eqn, *given)
    return out if isinstance(out, list) else [out]
