"""Functions of numbers with a fraction."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import Emitter, Value

_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(6)]
_COSINE = [(-1) ** k / math.factorial(2 * k) for k in range(7)]
"""Taylor's series, lowest power first; within an eighth of a turn what is left out is below 1e-11,
far less than the rounding to single precision."""

_EXPONENTIAL = [1 / math.factorial(k) for k in range(11)]
_LOGARITHM = [2 / (2 * k + 1) for k in range(8)]
"""Of (x - 1) / (x + 1), by powers of its square."""

_WHOLE = np.float64(1.5 * 2**52)
"""A whole number of few bits that is added to it is in its lowest bits."""

FUNCTIONS = (
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"),
    *("atanh", "exp", "exp2", "expm1", "log", "log1p", "cbrt", "pow", "atan2", "erf", "fmod"),
    *("erfc", "lgamma", "nextafter"),
)
"""Functions, by their names in C's library of mathematics, where those are that are not here."""


def _sine_and_cosine(asm: Emitter, x: Value) -> tuple[Value, Value]:
    """Both of an angle, which share most of their work.

    The angle within an eighth of a turn, then Taylor's series; good up to 1e9 rad and more.

    Source: Cody and Waite (1980), Software Manual for the Elementary Functions, chapter 8.
    """
    far = asm.convert("fpext", x, "f4", "f8")
    counted = asm.intrinsic("fma", "f8", far, np.float64(2 / math.pi), _WHOLE)
    turns = asm.apply("fsub", "f8", counted, _WHOLE)
    near = asm.intrinsic("fma", "f8", turns, np.float64(-math.pi / 2), far)
    near = asm.intrinsic("fma", "f8", turns, np.float64(_HALF_PI_LEFT), near)
    # Beyond what double precision resolves the angle is anything; the sine is within bounds still.
    known = asm.compare("fcmp ole", "f8", asm.intrinsic("fabs", "f8", near), np.float64(1))
    near = asm.select(known, near, asm.apply("fmul", "f8", near, np.float64(0)), "f8")
    square = asm.apply("fmul", "f8", near, near)
    odd = asm.apply("fmul", "f8", near, _series(asm, square, _SINE))
    odd = asm.convert("fptrunc", odd, "f8", "f4")
    even = asm.convert("fptrunc", _series(asm, square, _COSINE), "f8", "f4")
    # The quadrant, 0 to 3: whether it is odd says which series, whether it is 2 or 3 the sign.
    quadrant = asm.convert("bitcast", counted, "f8", "i8")
    quadrant = asm.convert("trunc", quadrant, "i8", "i4")
    swapped = asm.apply("and", "i4", quadrant, np.int32(1))
    swapped = asm.compare("icmp ne", "i4", swapped, np.int32(0))
    after = asm.apply("add", "i4", quadrant, np.int32(1))
    sine = asm.select(swapped, even, odd, "f4")
    cosine = asm.select(swapped, odd, even, "f4")
    return _signed(asm, sine, quadrant), _signed(asm, cosine, after)


def _signed(asm: Emitter, x: Value, quadrant: Value) -> Value:
    """Minus a number in the quadrants 2 and 3."""
    sign = asm.apply("shl", "i4", asm.apply("lshr", "i4", quadrant, np.int32(1)), np.int32(31))
    bits = asm.apply("xor", "i4", asm.convert("bitcast", x, "f4", "i4"), sign)
    return asm.convert("bitcast", bits, "i4", "f4")


_HALF_PI_LEFT = -6.123233995736766e-17
"""What the double precision number nearest to a right angle is more than it, negated."""


def _exponential(asm: Emitter, x: Value) -> tuple[Value]:
    """A power of two, times Taylor's series of what is left."""
    far = asm.convert("fpext", x, "f4", "f8")
    far = asm.intrinsic("maximum", "f8", far, np.float64(-120))
    far = asm.intrinsic("minimum", "f8", far, np.float64(120))
    power = asm.intrinsic("rint", "f8", asm.apply("fmul", "f8", far, np.float64(1 / math.log(2))))
    near = asm.intrinsic("fma", "f8", power, np.float64(-math.log(2)), far)
    biased = asm.apply("fadd", "f8", power, _WHOLE + 1023)
    bits = asm.apply("shl", "i8", asm.convert("bitcast", biased, "f8", "i8"), np.int64(52))
    scale = asm.convert("bitcast", bits, "i8", "f8")
    value = asm.apply("fmul", "f8", _series(asm, near, _EXPONENTIAL), scale)
    return (asm.convert("fptrunc", value, "f8", "f4"),)


def _logarithm(asm: Emitter, x: Value) -> tuple[Value]:
    """That of a power of two, and a series of what is left.

    Source: Abramowitz and Stegun (1964), Handbook of Mathematical Functions, 4.1.27.
    """
    far = asm.convert("fpext", x, "f4", "f8")
    bits = asm.convert("bitcast", far, "f8", "i8")
    # By how many powers of two it is above the fraction, from sqrt(1/2) to sqrt(2), that is left.
    half = np.int64(np.float64(math.sqrt(0.5)).view(np.int64))
    above = asm.apply("sub", "i8", bits, half)
    kept = asm.apply("and", "i8", above, np.int64((1 << 52) - 1))
    fraction = asm.convert("bitcast", asm.apply("add", "i8", kept, half), "i8", "f8")
    whole = asm.apply("add", "i8", asm.apply("ashr", "i8", above, np.int64(52)), _WHOLE.view(int))
    power = asm.apply("fsub", "f8", asm.convert("bitcast", whole, "i8", "f8"), _WHOLE)
    ratio = asm.apply(
        "fdiv",
        "f8",
        asm.apply("fsub", "f8", fraction, np.float64(1)),
        asm.apply("fadd", "f8", fraction, np.float64(1)),
    )
    square = asm.apply("fmul", "f8", ratio, ratio)
    small = asm.apply("fmul", "f8", ratio, _series(asm, square, _LOGARITHM))
    value = asm.intrinsic("fma", "f8", power, np.float64(math.log(2)), small)
    for test, result in (("oeq", -np.inf), ("ult", np.nan)):
        odd = asm.compare(f"fcmp {test}", "f8", far, np.float64(0))
        value = asm.select(odd, np.float64(result), value, "f8")
    endless = asm.compare("fcmp oeq", "f8", far, np.float64(np.inf))
    return (asm.convert("fptrunc", asm.select(endless, far, value, "f8"), "f8", "f4"),)


def _series(asm: Emitter, x: Value, coefficients: list[float]) -> Value:
    value: Value = np.float64(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = asm.intrinsic("fma", "f8", value, x, np.float64(c))
    return value


_LANES: dict[str, tuple[str, Callable[[Emitter, Value], tuple[Value, ...]], int]] = {
    "sin": ("sincos", _sine_and_cosine, 0),
    "cos": ("sincos", _sine_and_cosine, 1),
    "exp": ("exp", _exponential, 0),
    "log": ("log", _logarithm, 0),
}
"""Functions in single precision for all lanes at once: found in double precision, rounded once.
Each is one of the results of a routine."""


def math_function(name: str) -> Callable[..., Any]:
    """A function of numbers with a fraction, of the assembly, their type, and them."""

    def call(asm: Emitter, code: str, *values: Value) -> Value:
        if code == "f4" and name in _LANES:
            routine, build, which = _LANES[name]
            return asm.routine(routine, code, build, *values)[which]
        return asm.function(name, code, *values)

    return call
