"""The table of lowering rules, by the names of JAX's primitives.

A rule of a whole array takes the emitter, the equation and its operands. An elementwise operation
has a rule for one element of each operand, which `lower` applies to all of them.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from brax.kernels.codegen import jax_internals
from brax.kernels.codegen.emitter import Emitter, Unsupported, Value, code_of
from brax.kernels.codegen.lowering import arrays, elementwise, indexing, matrices, scalars, sorting
from brax.kernels.codegen.lowering.arrays import ElementArray, map_elements

RULES_BY_ROWS = {**matrices.MATRIX_RULES, **sorting.SORTING_RULES}
"""Rules that apply one function to each matrix or row, in a loop if there are many."""

RULES_BY_PRIMITIVE: dict[str, Callable[..., Any]] = {
    **arrays.ARRAY_RULES,
    **indexing.INDEXING_RULES,
    **RULES_BY_ROWS,
}
"""Rules of operations on whole arrays."""


def elementwise_rule(emitter: Emitter, eqn: Any) -> Callable[..., Value] | None:
    """Return an operation's rule for one element of each operand, or None if there is none."""
    name = eqn.primitive.name
    # Newer versions of JAX let a product have another type than its factors (`out_dtype`).
    if name == "mul" and eqn.outvars[0].aval.dtype != eqn.invars[0].aval.dtype:
        raise Unsupported("a product of another type than its factors")
    # Rules that read the equation's parameters come first: `pow` is in both tables, and its
    # exponent may be of another type.
    if name in elementwise.ELEMENTWISE_RULES:
        return functools.partial(elementwise.ELEMENTWISE_RULES[name], emitter, eqn)
    if name in scalars.SCALAR_RULES:
        return functools.partial(scalars.rule(name), emitter, code_of(eqn.invars[0].aval.dtype))
    return None


def lower(emitter: Emitter, eqn: Any, operands: Sequence[ElementArray]) -> list[ElementArray]:
    """Emit the instructions of an equation, unrolled, and return its results.

    Raises:
        Unsupported: if the operation has no lowering rule.
    """
    rule, name = elementwise_rule(emitter, eqn), eqn.primitive.name
    if rule is None and name not in RULES_BY_PRIMITIVE:
        raise Unsupported(f"the operation '{name}'")
    # Only operations with a rule are checked: others are left to XLA in any case.
    jax_internals.check(eqn)
    if rule is not None:
        return [map_elements(rule, *operands)]
    # Rules of one result return it without a list.
    out = RULES_BY_PRIMITIVE[name](emitter, eqn, *operands)
    return out if isinstance(out, list) else [out]
