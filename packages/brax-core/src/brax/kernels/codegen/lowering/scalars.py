"""What JAX's elementwise operations are for one element: a number known now, or an instruction."""

from collections.abc import Callable
from typing import Any

import numpy as np

from brax.kernels.codegen import math_functions
from brax.kernels.codegen.emitter import Emitter, Value, is_runtime_value
from brax.kernels.codegen.lowering import integers

Rule = Callable[..., Value]
"""Of the assembly, the type of the first operand, and the elements of all operands."""

_KNOWN: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "add_any": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": lambda x, y: np.divide(x, y).astype(np.asarray(x).dtype),
    "neg": np.negative,
    "max": np.maximum,
    "min": np.minimum,
    "lt": np.less,
    "gt": np.greater,
    "le": np.less_equal,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: np.divide(type(x)(1), np.sqrt(x)),
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "is_finite": np.isfinite,
    "square": np.square,
    "sin": np.sin,
    "cos": np.cos,
    "exp": np.exp,
    "log": np.log,
}
"""Of numbers that are known; those not named here become instructions all the same."""

_COMPARISONS = {
    "lt": ("fcmp olt", "icmp slt", "icmp ult"),
    "gt": ("fcmp ogt", "icmp sgt", "icmp ugt"),
    "le": ("fcmp ole", "icmp sle", "icmp ule"),
    "ge": ("fcmp oge", "icmp sge", "icmp uge"),
    "eq": ("fcmp oeq", "icmp eq", "icmp eq"),
    "ne": ("fcmp une", "icmp ne", "icmp ne"),
}


def rule(name: str) -> Rule:
    """Return what one of `SCALAR_RULES` does to elements; what is known is computed now."""
    instruction, known = SCALAR_RULES[name], _KNOWN.get(name)

    def one(asm: Emitter, code: str, *x: Value) -> Value:
        if known is None or any(is_runtime_value(v) for v in x):
            return instruction(asm, code, *x)
        with np.errstate(all="ignore"):
            return known(*x)

    return one


def fraction(code: str) -> bool:
    """Return whether numbers of a type have a fraction."""
    return code[0] == "f"


def constant(code: str, x: float) -> Value:
    """A number of a type."""
    return np.dtype(code if code != "b1" else bool).type(x)


def _add(asm: Emitter, code: str, x: Value, y: Value) -> Value:
    return asm.add(code, x, y) if fraction(code) else asm.apply("add", code, x, y)


def _subtract(asm: Emitter, code: str, x: Value, y: Value) -> Value:
    return asm.subtract(code, x, y) if fraction(code) else asm.apply("sub", code, x, y)


def _multiply(asm: Emitter, code: str, x: Value, y: Value) -> Value:
    return asm.multiply(code, x, y) if fraction(code) else asm.apply("mul", code, x, y)


def _divide(asm: Emitter, code: str, x: Value, y: Value) -> Value:
    if fraction(code):
        return x if not is_runtime_value(y) and y == 1 else asm.apply("fdiv", code, x, y)
    return integers.divide(asm, code, x, y)


def _remainder(asm: Emitter, code: str, x: Value, y: Value) -> Value:
    if fraction(code):
        return math_functions.math_function("fmod")(asm, code, x, y)
    return integers.remainder(asm, code, x, y)


def _negative(asm: Emitter, code: str, x: Value) -> Value:
    zero = constant(code, 0)
    return asm.negative(code, x) if fraction(code) else asm.apply("sub", code, zero, x)


def _outer(test: str, name: str, bits: str) -> Rule:
    """The larger or the smaller; not a number if one is not."""

    def one(asm: Emitter, code: str, x: Value, y: Value) -> Value:
        if fraction(code):
            return asm.intrinsic(name, code, x, y)
        if code == "b1":
            return asm.apply(bits, code, x, y)
        return asm.select(compare(test)(asm, code, x, y), x, y, code)

    return one


def compare(name: str) -> Rule:
    """A comparison of two numbers."""
    floats, signed, unsigned = _COMPARISONS[name]

    def one(asm: Emitter, code: str, x: Value, y: Value) -> Value:
        unlike = unsigned if code[0] in "ub" else signed
        return asm.compare(floats if fraction(code) else unlike, code, x, y)

    return one


def _not(asm: Emitter, code: str, x: Value) -> Value:
    return asm.apply("xor", code, x, constant(code, 1 if code == "b1" else -1))


def _bits(name: str) -> Rule:
    return lambda asm, code, x, y: asm.apply(name, code, x, y)


def _intrinsic(name: str) -> Rule:
    return lambda asm, code, x: asm.intrinsic(name, code, x)


def _reciprocal_root(asm: Emitter, code: str, x: Value) -> Value:
    return asm.apply("fdiv", code, constant(code, 1), asm.intrinsic("sqrt", code, x))


def _absolute(asm: Emitter, code: str, x: Value) -> Value:
    if fraction(code):
        return asm.intrinsic("fabs", code, x)
    below = compare("lt")(asm, code, x, constant(code, 0))
    return asm.select(below, _negative(asm, code, x), x, code)


def _sign(asm: Emitter, code: str, x: Value) -> Value:
    zero, one = constant(code, 0), constant(code, 1)
    up = asm.select(compare("gt")(asm, code, x, zero), one, x, code)
    return asm.select(compare("lt")(asm, code, x, zero), constant(code, -1), up, code)


def _is_finite(asm: Emitter, code: str, x: Value) -> Value:
    size = asm.intrinsic("fabs", code, x)
    return asm.compare("fcmp olt", code, size, constant(code, np.inf))


def _square(asm: Emitter, code: str, x: Value) -> Value:
    return multiply(asm, code, x, x)


def _logistic(asm: Emitter, code: str, x: Value) -> Value:
    one = constant(code, 1)
    grown = math_functions.math_function("exp")(
        asm, code, _negative(asm, code, x) if is_runtime_value(x) else -x
    )
    return asm.apply("fdiv", code, one, asm.apply("fadd", code, one, grown))


def _clamp(asm: Emitter, code: str, low: Value, x: Value, high: Value) -> Value:
    return smallest(asm, code, largest(asm, code, low, x), high)


def power(asm: Emitter, code: str, x: Value, n: int) -> Value:
    """A number to the power of an integer."""
    if n < 0:
        below = power(asm, code, x, -n)
        return asm.apply("fdiv", code, constant(code, 1), below)
    result, square = constant(code, 1), x
    while n:
        if n % 2:
            result = multiply(asm, code, result, square)
        n //= 2
        if n:
            square = multiply(asm, code, square, square)
    return result


def convert(asm: Emitter, x: Value, before: str, after: str) -> Value:
    """A number of another type."""
    if not is_runtime_value(x):
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(after if after != "b1" else bool)[()]
    whole = {before[0], after[0]} <= {"i", "u"}
    if before == after or (whole and before[1] == after[1]):
        return x
    if after == "b1":
        return compare("ne")(asm, before, x, constant(before, 0))
    signed = before[0] == "i"
    if fraction(after):
        if fraction(before):
            return asm.convert("fpext" if after == "f8" else "fptrunc", x, before, after)
        return asm.convert("sitofp" if signed else "uitofp", x, before, after)
    if fraction(before):
        return asm.rounded("fptosi" if after[0] == "i" else "fptoui", x, before, after)
    if before != "b1" and before[1] > after[1]:
        return asm.convert("trunc", x, before, after)
    return asm.convert("sext" if signed else "zext", x, before, after)


SCALAR_RULES: dict[str, Rule] = {
    "add": _add,
    "add_any": _add,
    "sub": _subtract,
    "mul": _multiply,
    "div": _divide,
    "rem": _remainder,
    "neg": _negative,
    "max": _outer("gt", "maximum", "or"),
    "min": _outer("lt", "minimum", "and"),
    **{name: compare(name) for name in _COMPARISONS},
    "and": _bits("and"),
    "or": _bits("or"),
    "xor": _bits("xor"),
    "not": _not,
    "sqrt": _intrinsic("sqrt"),
    "rsqrt": _reciprocal_root,
    "abs": _absolute,
    "sign": _sign,
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "is_finite": _is_finite,
    "square": _square,
    "logistic": _logistic,
    "clamp": _clamp,
    **{name: math_functions.math_function(name) for name in math_functions.FUNCTIONS},
    **integers.INTEGER_RULES,
}
"""Elementwise operations without parameters, by JAX's names."""

add, multiply, largest, smallest = map(rule, ("add", "mul", "max", "min"))


def log_add(asm: Emitter, code: str, x: Value, y: Value) -> Value:
    """Return the logarithm of the sum of two exponentials."""
    top = largest(asm, code, x, y)
    below = rule("sub")(asm, code, smallest(asm, code, x, y), top)
    rest = rule("log1p")(asm, code, rule("exp")(asm, code, below))
    # Of two equal infinities the difference is NaN, and the result is that infinity.
    return asm.select(rule("eq")(asm, code, below, below), add(asm, code, top, rest), top, code)
