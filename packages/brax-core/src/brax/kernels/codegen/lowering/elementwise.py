"""Lowering rules of operations on one element of each operand, with parameters of the operation."""

from collections.abc import Callable
from typing import Any

import numpy as np

from brax.kernels.codegen import math_functions
from brax.kernels.codegen.emitter import Emitter, Unsupported, Value, code_of
from brax.kernels.codegen.lowering import integers, scalars


def _codes(eqn: Any) -> tuple[str, str]:
    """Return the types of the first operand and of the result."""
    return code_of(eqn.invars[0].aval.dtype), code_of(eqn.outvars[0].aval.dtype)


def _convert(asm: Emitter, eqn: Any, x: Value) -> Value:
    return scalars.convert(asm, x, *_codes(eqn))


def _integer_power(asm: Emitter, eqn: Any, x: Value) -> Value:
    return scalars.power(asm, _codes(eqn)[1], x, eqn.params["y"])


def _power(asm: Emitter, eqn: Any, x: Value, y: Value) -> Value:
    code, exponent = (code_of(v.aval.dtype) for v in eqn.invars)
    return math_functions.math_function("pow")(
        asm, code, x, scalars.convert(asm, y, exponent, code)
    )


def _select(asm: Emitter, eqn: Any, which: Value, *cases: Value) -> Value:
    """Choose a case by its number, of which a truth value is one."""
    kind, code = _codes(eqn)
    if kind == "b1":
        no, yes = cases
        return asm.select(which, yes, no, code)
    out = cases[-1]
    for i in reversed(range(len(cases) - 1)):
        here = scalars.rule("le")(asm, kind, which, scalars.constant(kind, i))
        out = asm.select(here, cases[i], out, code)
    return out


def _round(asm: Emitter, eqn: Any, x: Value) -> Value:
    even = int(eqn.params["rounding_method"]) == 1
    return asm.intrinsic("roundeven" if even else "round", _codes(eqn)[0], x)


def _bitcast(asm: Emitter, eqn: Any, x: Value) -> Value:
    before, after = _codes(eqn)
    if before[1] != after[1] or "b1" in (before, after):
        raise Unsupported("a number whose bits become several numbers, or the other way round")
    return integers.bits_of(asm, x, before, after)


def _reduce_precision(asm: Emitter, eqn: Any, x: Value) -> Value:
    code, _ = _codes(eqn)
    if eqn.params["exponent_bits"] < np.finfo(code).nexp:
        raise Unsupported("an exponent of fewer bits")
    return integers.rounded_mantissa(asm, code, x, eqn.params["mantissa_bits"])


ELEMENTWISE_RULES: dict[str, Callable[..., Value]] = {
    "convert_element_type": _convert,
    "integer_pow": _integer_power,
    "pow": _power,
    "select_n": _select,
    "round": _round,
    "bitcast_convert_type": _bitcast,
    "reduce_precision": _reduce_precision,
}
"""Each takes the assembly, the operation and an element of each operand."""
