"""Lowering rules of elementwise operations that read the parameters of their equation.

Each takes the emitter, the equation and one element of each operand. Operations without parameters
are in `scalars`.
"""

import functools
from typing import Any

import numpy as np

from brax.kernels.codegen import math_functions
from brax.kernels.codegen.emitter import Emitter, Unsupported, Value, code_of
from brax.kernels.codegen.lowering import integers, scalars
from brax.kernels.codegen.lowering.registry import Takes, lowering_rule

_element_rule = functools.partial(lowering_rule, takes=Takes.ELEMENTS)


def _codes(eqn: Any) -> tuple[str, str]:
    """Return the type codes of the first operand and of the result."""
    return code_of(eqn.invars[0].aval.dtype), code_of(eqn.outvars[0].aval.dtype)


@_element_rule("convert_element_type", parameters="new_dtype sharding weak_type", cost=0)
def _convert(emitter: Emitter, eqn: Any, x: Value) -> Value:
    """Lower `convert_element_type`."""
    return scalars.convert(emitter, x, *_codes(eqn))


@_element_rule("integer_pow", parameters="y")
def _integer_power(emitter: Emitter, eqn: Any, x: Value) -> Value:
    """Lower `integer_pow`, whose exponent is a parameter."""
    return scalars.power(emitter, _codes(eqn)[1], x, eqn.params["y"])


@_element_rule("pow", cost=scalars.FUNCTION_COST)
def _power(emitter: Emitter, eqn: Any, x: Value, y: Value) -> Value:
    """Lower `pow`, whose exponent may be an integer; C's function takes two floats."""
    code, exponent = (code_of(v.aval.dtype) for v in eqn.invars)
    return math_functions.math_function("pow")(
        emitter, code, x, scalars.convert(emitter, y, exponent, code)
    )


@_element_rule("select_n")
def _select(emitter: Emitter, eqn: Any, which: Value, *cases: Value) -> Value:
    """Lower `select_n`: choose a case by its number, or by a truth value."""
    kind, code = _codes(eqn)
    # JAX's cases are ordered by number, so that false comes first.
    if kind == "b1":
        no, yes = cases
        return emitter.select(which, yes, no, code)
    # A number beyond the cases means the last one, since the comparisons are inequalities.
    out = cases[-1]
    for i in reversed(range(len(cases) - 1)):
        here = scalars.rule("le")(emitter, kind, which, scalars.constant(kind, i))
        out = emitter.select(here, cases[i], out, code)
    return out


@_element_rule("round", parameters="rounding_method")
def _round(emitter: Emitter, eqn: Any, x: Value) -> Value:
    """Lower `round`: halves go to even numbers (method 1) or away from zero (method 0)."""
    # LLVM's `round` rounds halves away from zero.
    even = int(eqn.params["rounding_method"]) == 1
    return emitter.intrinsic("roundeven" if even else "round", _codes(eqn)[0], x)


@_element_rule("bitcast_convert_type", parameters="new_dtype")
def _bitcast(emitter: Emitter, eqn: Any, x: Value) -> Value:
    """Lower `bitcast_convert_type` between types of the same size."""
    before, after = _codes(eqn)
    # JAX adds or drops an axis for types of other sizes; truth values have no bits in registers.
    if before[1] != after[1] or "b1" in (before, after):
        raise Unsupported("a number whose bits become several numbers, or the other way round")
    return integers.bits_of(emitter, x, before, after)


@_element_rule("reduce_precision", parameters="exponent_bits mantissa_bits")
def _reduce_precision(emitter: Emitter, eqn: Any, x: Value) -> Value:
    """Lower `reduce_precision`; only the mantissa may be shortened."""
    code, _ = _codes(eqn)
    # With a shorter exponent, numbers out of its range would become infinite or zero.
    if eqn.params["exponent_bits"] < np.finfo(code).nexp:
        raise Unsupported("an exponent of fewer bits")
    return integers.rounded_mantissa(emitter, code, x, eqn.params["mantissa_bits"])
