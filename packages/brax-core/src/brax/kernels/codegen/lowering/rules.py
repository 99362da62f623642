"""Lowering of an equation by its rule in the registry, unrolled."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from brax.kernels.codegen import jax_internals
from brax.kernels.codegen.emitter import Emitter, Unsupported, Value, code_of
from brax.kernels.codegen.lowering import (  # noqa: F401  (importing a module registers its rules)
    elementwise,
    matrices,
    scalars,
    sorting,
)
from brax.kernels.codegen.lowering.arrays import ElementArray, map_elements
from brax.kernels.codegen.lowering.registry import Takes, lowering_rule, operation, without_rule

# No rules: what they cost in XLA's program.
lowering_rule("erf_inv", cost=scalars.FUNCTION_COST)(None)
lowering_rule("conv_general_dilated", stored=True)(None)


def elementwise_rule(emitter: Emitter, eqn: Any) -> Callable[..., Value] | None:
    """Return an operation's rule for one element of each operand, or None if there is none."""
    found = operation(eqn)
    if found.rule and found.takes is Takes.ELEMENTS:
        return functools.partial(found.rule, emitter, eqn)
    if not found.rule or found.takes is not Takes.NUMBERS:
        return None
    dtype = eqn.invars[0].aval.dtype
    # Newer versions of JAX let a product have another type than its factors.
    if "out_dtype" in eqn.params and eqn.outvars[0].aval.dtype != dtype:
        raise Unsupported("a product of another type than its factors")
    return functools.partial(found.rule, emitter, code_of(dtype))


def lower(emitter: Emitter, eqn: Any, operands: Sequence[ElementArray]) -> list[ElementArray]:
    """Emit the instructions of an equation, unrolled, and return its results.

    Raises:
        Unsupported: if the operation has no lowering rule.
    """
    rule, found = elementwise_rule(emitter, eqn), operation(eqn)
    if not found.rule:
        raise without_rule(eqn)
    # Only operations with a rule are checked: others are left to XLA in any case.
    jax_internals.check(eqn, found.parameters)
    if rule is not None:
        return [map_elements(rule, *operands)]
    # Rules of one result return it without a list.
    out = found.rule(emitter, eqn, *operands)
    return out if isinstance(out, list) else [out]
