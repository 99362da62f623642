"""Lowering rules of elementwise operations without parameters, for one element of each operand.

If all elements are known while the kernel is translated, the result is computed by NumPy at once
(constant folding); otherwise instructions are emitted.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from brax.kernels.codegen import math_functions
from brax.kernels.codegen.emitter import Emitter, Value, is_runtime_value
from brax.kernels.codegen.lowering import integers

Rule = Callable[..., Value]
"""A function of the emitter, the type code of the first operand, and an element of each operand."""

# The operands are NumPy scalars, of which these functions keep the type.
_FOLDED: dict[str, Callable[..., Any]] = {
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
    "one_minus_square": lambda x: (type(x)(1) + x) * (type(x)(1) - x),
    "sin": np.sin,
    "cos": np.cos,
    "exp": np.exp,
    "log": np.log,
}
"""NumPy's functions for known elements. Operations that are not here become instructions."""

_COMPARISONS = {
    "lt": ("fcmp olt", "icmp slt", "icmp ult"),
    "gt": ("fcmp ogt", "icmp sgt", "icmp ugt"),
    "le": ("fcmp ole", "icmp sle", "icmp ule"),
    "ge": ("fcmp oge", "icmp sge", "icmp uge"),
    "eq": ("fcmp oeq", "icmp eq", "icmp eq"),
    "ne": ("fcmp une", "icmp ne", "icmp ne"),
}
"""LLVM's comparisons of floats, of signed and of unsigned integers. Those of floats are ordered,
false for NaN, except `ne`, which is true."""


def rule(name: str) -> Rule:
    """Return one of `SCALAR_RULES` with constant folding."""
    instruction, folded = SCALAR_RULES[name], _FOLDED.get(name)

    def one(emitter: Emitter, code: str, *x: Value) -> Value:
        if folded is None or any(is_runtime_value(v) for v in x):
            return instruction(emitter, code, *x)
        # Infinities and NaN of constants are no reason to warn: instructions do not either.
        with np.errstate(all="ignore"):
            return folded(*x)

    return one


def is_float(code: str) -> bool:
    """Return whether a type code is that of a float."""
    return code[0] == "f"


def constant(code: str, x: float) -> Value:
    """Return a known number of a type."""
    return np.dtype(code if code != "b1" else bool).type(x)


def _add(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
    """Return the sum; that of floats may be fused with a product."""
    return emitter.add(code, x, y) if is_float(code) else emitter.apply("add", code, x, y)


def _subtract(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
    """Return the difference; that of floats may be fused with a product."""
    return emitter.subtract(code, x, y) if is_float(code) else emitter.apply("sub", code, x, y)


def _multiply(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
    """Return the product."""
    return emitter.multiply(code, x, y) if is_float(code) else emitter.apply("mul", code, x, y)


def _divide(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
    """Return the quotient; integers are divided towards zero."""
    # Division by one is exact, so it is left out.
    if is_float(code):
        return x if not is_runtime_value(y) and y == 1 else emitter.apply("fdiv", code, x, y)
    return integers.divide(emitter, code, x, y)


def _remainder(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
    """Return the remainder, with the sign of `x`."""
    # LLVM's `frem` calls the same function of C.
    if is_float(code):
        return math_functions.math_function("fmod")(emitter, code, x, y)
    return integers.remainder(emitter, code, x, y)


def _negative(emitter: Emitter, code: str, x: Value) -> Value:
    """Return the number with the opposite sign."""
    zero = constant(code, 0)
    return emitter.negative(code, x) if is_float(code) else emitter.apply("sub", code, zero, x)


def _outer(test: str, name: str, bits: str) -> Rule:
    """Return the rule of a maximum or minimum; the result is NaN if an operand is.

    Args:
        test: the comparison that the result passes, `gt` or `lt`.
        name: LLVM's intrinsic for floats.
        bits: the instruction for truth values.
    """

    def one(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
        # LLVM's `maximum` and `minimum` pass NaN on; `maxnum` and `minnum` would drop it.
        if is_float(code):
            return emitter.intrinsic(name, code, x, y)
        if code == "b1":
            return emitter.apply(bits, code, x, y)
        return emitter.select(compare(test)(emitter, code, x, y), x, y, code)

    return one


def compare(name: str) -> Rule:
    """Return the rule of a comparison."""
    floats, signed, unsigned = _COMPARISONS[name]

    def one(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
        # Of truth values, true is the larger one: 1 without a sign.
        whole = unsigned if code[0] in "ub" else signed
        return emitter.compare(floats if is_float(code) else whole, code, x, y)

    return one


def _not(emitter: Emitter, code: str, x: Value) -> Value:
    """Return the number with all bits inverted: LLVM has no instruction but `xor` for this."""
    return emitter.apply("xor", code, x, constant(code, 1 if code == "b1" else -1))


def _bits(name: str) -> Rule:
    """Return the rule of a bitwise instruction."""
    return lambda emitter, code, x, y: emitter.apply(name, code, x, y)


def _intrinsic(name: str) -> Rule:
    """Return the rule of an LLVM intrinsic."""
    return lambda emitter, code, x: emitter.intrinsic(name, code, x)


def _reciprocal_root(emitter: Emitter, code: str, x: Value) -> Value:
    """Return 1 / sqrt(x)."""
    # Two correctly rounded operations, so that the result is the same on every processor.
    return emitter.apply("fdiv", code, constant(code, 1), emitter.intrinsic("sqrt", code, x))


def _absolute(emitter: Emitter, code: str, x: Value) -> Value:
    """Return the absolute value."""
    if is_float(code):
        return emitter.intrinsic("fabs", code, x)
    below = compare("lt")(emitter, code, x, constant(code, 0))
    return emitter.select(below, _negative(emitter, code, x), x, code)


def _sign(emitter: Emitter, code: str, x: Value) -> Value:
    """Return -1, 1, or the number itself if it is zero or NaN, which keeps the sign of zero."""
    # Comparisons with NaN are false, so that it passes both selections.
    zero, one = constant(code, 0), constant(code, 1)
    up = emitter.select(compare("gt")(emitter, code, x, zero), one, x, code)
    return emitter.select(compare("lt")(emitter, code, x, zero), constant(code, -1), up, code)


def _is_finite(emitter: Emitter, code: str, x: Value) -> Value:
    """Return whether a float is neither infinite nor NaN."""
    # The ordered comparison is false for NaN.
    size = emitter.intrinsic("fabs", code, x)
    return emitter.compare("fcmp olt", code, size, constant(code, np.inf))


def _square(emitter: Emitter, code: str, x: Value) -> Value:
    """Return the square."""
    return multiply(emitter, code, x, x)


def _one_minus_square(emitter: Emitter, code: str, x: Value) -> Value:
    """Return (1 + x) (1 - x), as JAX 0.12 computes 1 - x²."""
    one = constant(code, 1)
    less = rule("sub")(emitter, code, one, x)
    return multiply(emitter, code, add(emitter, code, one, x), less)


def _logistic(emitter: Emitter, code: str, x: Value) -> Value:
    """Return 1 / (1 + exp(-x))."""
    one = constant(code, 1)
    grown = math_functions.math_function("exp")(
        emitter, code, _negative(emitter, code, x) if is_runtime_value(x) else -x
    )
    return emitter.apply("fdiv", code, one, emitter.apply("fadd", code, one, grown))


def _clamp(emitter: Emitter, code: str, low: Value, x: Value, high: Value) -> Value:
    """Return the number, limited to an interval; `high` wins if the limits cross."""
    return smallest(emitter, code, largest(emitter, code, low, x), high)


def power(emitter: Emitter, code: str, x: Value, n: int) -> Value:
    """Return a number to the power of an integer, by repeated squaring."""
    # As in XLA: x⁻ⁿ is 1 / xⁿ.
    if n < 0:
        below = power(emitter, code, x, -n)
        return emitter.apply("fdiv", code, constant(code, 1), below)
    # The bits of the exponent say which squares are factors.
    result, square = constant(code, 1), x
    while n:
        if n % 2:
            result = multiply(emitter, code, result, square)
        n //= 2
        if n:
            square = multiply(emitter, code, square, square)
    return result


def convert(emitter: Emitter, x: Value, before: str, after: str) -> Value:
    """Return a number in another type, as JAX converts it.

    Args:
        emitter: receives the instructions.
        x: the number.
        before: its type code.
        after: the type code of the result.
    """
    if not is_runtime_value(x):
        with np.errstate(all="ignore"):
            return np.asarray(x).astype(after if after != "b1" else bool)[()]
    # LLVM's integers have no sign: between types of one size nothing happens.
    whole = {before[0], after[0]} <= {"i", "u"}
    if before == after or (whole and before[1] == after[1]):
        return x
    if after == "b1":
        return compare("ne")(emitter, before, x, constant(before, 0))
    # Truth values count as unsigned, so that true becomes 1 and not -1.
    signed = before[0] == "i"
    if is_float(after):
        if is_float(before):
            return emitter.convert("fpext" if after == "f8" else "fptrunc", x, before, after)
        return emitter.convert("sitofp" if signed else "uitofp", x, before, after)
    if is_float(before):
        return emitter.saturating_cast("fptosi" if after[0] == "i" else "fptoui", x, before, after)
    if before != "b1" and before[1] > after[1]:
        return emitter.convert("trunc", x, before, after)
    return emitter.convert("sext" if signed else "zext", x, before, after)


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
    "one_minus_square": _one_minus_square,
    "logistic": _logistic,
    "clamp": _clamp,
    **{name: math_functions.math_function(name) for name in math_functions.FUNCTIONS},
    **integers.INTEGER_RULES,
}
"""Lowering rules without constant folding, by the names of JAX's primitives; see `rule`."""

# The rules that other rules use most.
add, multiply, largest, smallest = map(rule, ("add", "mul", "max", "min"))


def log_add(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
    """Return log(exp(x) + exp(y)) = max + log(1 + exp(min - max)), which does not overflow."""
    top = largest(emitter, code, x, y)
    # The exponent is at most zero.
    below = rule("sub")(emitter, code, smallest(emitter, code, x, y), top)
    rest = rule("log1p")(emitter, code, rule("exp")(emitter, code, below))
    # The difference of two equal infinities is NaN; the result is that infinity.
    return emitter.select(
        rule("eq")(emitter, code, below, below), add(emitter, code, top, rest), top, code
    )
