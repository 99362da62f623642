"""Lowering rules of elementwise operations without parameters, for one element of each operand.

If all elements are known while the kernel is translated, the result is computed by NumPy at once
(constant folding); otherwise instructions are emitted.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from brax.kernels.codegen import math_functions, single_precision
from brax.kernels.codegen.emitter import Emitter, Value, is_runtime_value
from brax.kernels.codegen.lowering import integers
from brax.kernels.codegen.lowering.registry import Takes, lowering_rule, named

Rule = Callable[..., Value]
"""A function of the emitter, the type code of the first operand, and an element of each operand."""

FUNCTION_COST, DIVISION_COST = 20, 5
"""The costs of an elementary function and of a division or a root, in additions."""

_number_rule = functools.partial(lowering_rule, takes=Takes.NUMBERS)


class _Comparison(NamedTuple):
    """NumPy's and LLVM's forms of a comparison."""

    known: Callable[..., Any]
    floats: str
    signed: str
    unsigned: str


# Those of floats are ordered, false for NaN, except `ne`, which is true.
_COMPARISONS = {
    "lt": _Comparison(np.less, "fcmp olt", "icmp slt", "icmp ult"),
    "gt": _Comparison(np.greater, "fcmp ogt", "icmp sgt", "icmp ugt"),
    "le": _Comparison(np.less_equal, "fcmp ole", "icmp sle", "icmp ule"),
    "ge": _Comparison(np.greater_equal, "fcmp oge", "icmp sge", "icmp uge"),
    "eq": _Comparison(np.equal, "fcmp oeq", "icmp eq", "icmp eq"),
    "ne": _Comparison(np.not_equal, "fcmp une", "icmp ne", "icmp ne"),
}


def rule(name: str) -> Rule:
    """Return the rule of an operation on numbers, with constant folding."""
    found = named(name)
    assert found.rule and found.takes is Takes.NUMBERS, name
    return found.rule


def is_float(code: str) -> bool:
    """Return whether a type code is that of a float."""
    return code[0] == "f"


def constant(code: str, x: float) -> Value:
    """Return a known number of a type; a negative one wraps around in an unsigned type."""
    return np.asarray(x).astype(code if code != "b1" else bool)[()]


@_number_rule("add", "add_any", folded=np.add)
def _add(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
    """Return the sum; that of floats may be fused with a product."""
    return emitter.add(code, x, y) if is_float(code) else emitter.apply("add", code, x, y)


@_number_rule("sub", folded=np.subtract)
def _subtract(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
    """Return the difference; that of floats may be fused with a product."""
    return emitter.subtract(code, x, y) if is_float(code) else emitter.apply("sub", code, x, y)


@_number_rule("mul", parameters="out_dtype?", folded=np.multiply)
def _multiply(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
    """Return the product."""
    return emitter.multiply(code, x, y) if is_float(code) else emitter.apply("mul", code, x, y)


def _known_quotient(x: Any, y: Any) -> Value:
    """Return the quotient of known numbers; that of integers is that of `integers.divide`."""
    dtype = np.asarray(x).dtype
    if dtype.kind == "f":
        return np.divide(x, y)
    # Not NumPy's quotient, which is a float.
    whole = abs(int(x)) // abs(int(y)) if y else -1
    return np.asarray(whole if (x < 0) == (y < 0) or not y else -whole).astype(dtype)[()]


@_number_rule("div", cost=DIVISION_COST, folded=_known_quotient)
def _divide(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
    """Return the quotient; integers are divided towards zero."""
    # Division by one is exact, so it is left out.
    if is_float(code):
        return x if not is_runtime_value(y) and y == 1 else emitter.apply("fdiv", code, x, y)
    return integers.divide(emitter, code, x, y)


@_number_rule("rem", cost=DIVISION_COST)
def _remainder(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
    """Return the remainder, with the sign of `x`."""
    # LLVM's `frem` calls the same function of C.
    if is_float(code):
        return math_functions.math_function("fmod")(emitter, code, x, y)
    return integers.remainder(emitter, code, x, y)


@_number_rule("neg", folded=np.negative)
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
    _, floats, signed, unsigned = _COMPARISONS[name]

    def one(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
        # Of truth values, true is the larger one: 1 without a sign.
        whole = unsigned if code[0] in "ub" else signed
        return emitter.compare(floats if is_float(code) else whole, code, x, y)

    return one


@_number_rule("not", folded=np.invert)
def _not(emitter: Emitter, code: str, x: Value) -> Value:
    """Return the number with all bits inverted: LLVM has no instruction but `xor` for this."""
    return emitter.apply("xor", code, x, constant(code, 1 if code == "b1" else -1))


def _bits(name: str) -> Rule:
    """Return the rule of a bitwise instruction."""
    return lambda emitter, code, x, y: emitter.apply(name, code, x, y)


def _intrinsic(name: str) -> Rule:
    """Return the rule of an LLVM intrinsic."""
    return lambda emitter, code, x: emitter.intrinsic(name, code, x)


@_number_rule("rsqrt", cost=DIVISION_COST, folded=lambda x: np.divide(type(x)(1), np.sqrt(x)))
def _reciprocal_root(emitter: Emitter, code: str, x: Value) -> Value:
    """Return 1 / sqrt(x)."""
    # Two correctly rounded operations, so that the result is the same on every processor.
    return emitter.apply("fdiv", code, constant(code, 1), emitter.intrinsic("sqrt", code, x))


@_number_rule("abs", folded=np.abs)
def _absolute(emitter: Emitter, code: str, x: Value) -> Value:
    """Return the absolute value."""
    if is_float(code):
        return emitter.intrinsic("fabs", code, x)
    below = compare("lt")(emitter, code, x, constant(code, 0))
    return emitter.select(below, _negative(emitter, code, x), x, code)


@_number_rule("sign", folded=np.sign)
def _sign(emitter: Emitter, code: str, x: Value) -> Value:
    """Return -1, 1, or the number itself if it is zero or NaN, which keeps the sign of zero."""
    # Comparisons with NaN are false, so that it passes both selections.
    zero, one = constant(code, 0), constant(code, 1)
    up = emitter.select(compare("gt")(emitter, code, x, zero), one, x, code)
    return emitter.select(compare("lt")(emitter, code, x, zero), constant(code, -1), up, code)


@_number_rule("is_finite", folded=np.isfinite)
def _is_finite(emitter: Emitter, code: str, x: Value) -> Value:
    """Return whether a float is neither infinite nor NaN."""
    # The ordered comparison is false for NaN.
    size = emitter.intrinsic("fabs", code, x)
    return emitter.compare("fcmp olt", code, size, constant(code, np.inf))


@_number_rule("square", folded=np.square)
def _square(emitter: Emitter, code: str, x: Value) -> Value:
    """Return the square."""
    return multiply(emitter, code, x, x)


@_number_rule("one_minus_square", folded=lambda x: (type(x)(1) + x) * (type(x)(1) - x))
def _one_minus_square(emitter: Emitter, code: str, x: Value) -> Value:
    """Return (1 + x) (1 - x), as JAX 0.12 computes 1 - x²."""
    one = constant(code, 1)
    less = rule("sub")(emitter, code, one, x)
    return multiply(emitter, code, add(emitter, code, one, x), less)


@_number_rule("logistic", cost=FUNCTION_COST)
def _logistic(emitter: Emitter, code: str, x: Value) -> Value:
    """Return 1 / (1 + exp(-x))."""
    if emitter.single_precision and code == "f4":
        return single_precision.logistic(emitter, x)
    one = constant(code, 1)
    grown = math_functions.math_function("exp")(
        emitter, code, _negative(emitter, code, x) if is_runtime_value(x) else -x
    )
    return emitter.apply("fdiv", code, one, emitter.apply("fadd", code, one, grown))


@_number_rule("clamp")
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
            return constant(after, x)
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


def index_code(code: str) -> str:
    """Return the type code in which indices of a type are compared with bounds, at least `i4`."""
    return code if code in ("u4", "i8", "u8") else "i4"


def clipped_index(emitter: Emitter, code: str, index: Value, most: int) -> Value:
    """Return an index of a type as `i4`, clipped to the range from 0 to `most`."""
    # Clipped first: another index may be within the range once it has 32 bits.
    kind = index_code(code)
    index = convert(emitter, index, code, kind)
    index = largest(emitter, kind, index, constant(kind, 0))
    index = smallest(emitter, kind, index, constant(kind, most))
    return convert(emitter, index, kind, "i4")


for _name, _test in _COMPARISONS.items():
    _number_rule(_name, folded=_test.known)(compare(_name))
_number_rule("and", folded=np.bitwise_and)(_bits("and"))
_number_rule("or", folded=np.bitwise_or)(_bits("or"))
_number_rule("xor", folded=np.bitwise_xor)(_bits("xor"))
_number_rule("max", folded=np.maximum)(_outer("gt", "maximum", "or"))
_number_rule("min", folded=np.minimum)(_outer("lt", "minimum", "and"))
_number_rule("sqrt", folded=np.sqrt, cost=DIVISION_COST)(_intrinsic("sqrt"))
_number_rule("floor", folded=np.floor)(_intrinsic("floor"))
_number_rule("ceil", folded=np.ceil)(_intrinsic("ceil"))

_KNOWN = {"sin": np.sin, "cos": np.cos, "exp": np.exp, "log": np.log}
"""NumPy's functions for known numbers; the other elementary functions become instructions."""

for _name in math_functions.NAMES_OF_BOTH:
    _number_rule(_name, folded=_KNOWN.get(_name), cost=FUNCTION_COST)(
        math_functions.math_function(_name)
    )

# The rules that other rules use most.
add, multiply, largest, smallest = rule("add"), rule("mul"), rule("max"), rule("min")


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
