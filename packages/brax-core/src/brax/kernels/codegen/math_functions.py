"""Elementary functions of floats: vector code in single precision, C's library for the rest.

The vector code computes in double precision and rounds once, so its error is at most 0.5001 units
in the last place of single precision, and its results are the same for every number of lanes.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import Emitter, Value

# The truncated terms are below 1e-11 within an eighth of a turn (|x| <= pi / 4), far less than
# the rounding to single precision.
_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(6)]
_COSINE = [(-1) ** k / math.factorial(2 * k) for k in range(7)]
"""Taylor coefficients, lowest power first, in powers of the square."""

_EXPONENTIAL = [1 / math.factorial(k) for k in range(11)]
"""Taylor coefficients, for |x| <= log(2) / 2."""

_LOGARITHM = [2 / (2 * k + 1) for k in range(8)]
"""Coefficients of log(x) in odd powers of (x - 1) / (x + 1), for sqrt(1/2) <= x <= sqrt(2)."""

_ROUNDING_SHIFT = np.float64(1.5 * 2**52)
"""Added to a double of small size, it leaves the nearest integer in the lowest bits of the sum."""

FUNCTIONS = (
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"),
    *("atanh", "exp", "exp2", "expm1", "log", "log1p", "cbrt", "pow", "atan2", "erf", "fmod"),
    *("erfc", "lgamma", "nextafter"),
)
"""The functions, by their names in C's mathematics library, which are also JAX's."""


def _sine_and_cosine(emitter: Emitter, x: Value) -> tuple[Value, Value]:
    """Return sine and cosine of an angle, which share most of their work.

    The angle is reduced to an eighth of a turn around zero, where Taylor series hold. The result is
    good up to 1e9 rad and more.

    Source: Cody and Waite (1980), Software Manual for the Elementary Functions, chapter 8.
    """
    far = emitter.convert("fpext", x, "f4", "f8")
    # quarters = round(x · 2/pi); the sum's lowest bits hold it as an integer, see below.
    counted = emitter.intrinsic("fma", "f8", far, np.float64(2 / math.pi), _ROUNDING_SHIFT)
    quarters = emitter.apply("fsub", "f8", counted, _ROUNDING_SHIFT)
    # pi/2 in two parts (Cody and Waite): with one, the reduced angle would lack its low bits.
    near = emitter.intrinsic("fma", "f8", quarters, np.float64(-math.pi / 2), far)
    near = emitter.intrinsic("fma", "f8", quarters, np.float64(_HALF_PI_REST), near)
    # Beyond the resolution of double precision the angle is arbitrary. Setting it to zero keeps
    # the sine within [-1, 1]. The product keeps NaN for infinities and NaN.
    known = emitter.compare("fcmp ole", "f8", emitter.intrinsic("fabs", "f8", near), np.float64(1))
    near = emitter.select(known, near, emitter.apply("fmul", "f8", near, np.float64(0)), "f8")
    square = emitter.apply("fmul", "f8", near, near)
    odd = emitter.apply("fmul", "f8", near, _series(emitter, square, _SINE))
    odd = emitter.convert("fptrunc", odd, "f8", "f4")
    even = emitter.convert("fptrunc", _series(emitter, square, _COSINE), "f8", "f4")
    # The lowest two bits of the number of quarters are the quadrant. An odd quadrant exchanges
    # sine and cosine, quadrants 2 and 3 change the sign.
    quadrant = emitter.convert("bitcast", counted, "f8", "i8")
    quadrant = emitter.convert("trunc", quadrant, "i8", "i4")
    swapped = emitter.apply("and", "i4", quadrant, np.int32(1))
    swapped = emitter.compare("icmp ne", "i4", swapped, np.int32(0))
    # cos(x) = sin(x + pi/2): the cosine's sign is that of the next quadrant.
    after = emitter.apply("add", "i4", quadrant, np.int32(1))
    sine = emitter.select(swapped, even, odd, "f4")
    cosine = emitter.select(swapped, odd, even, "f4")
    return _signed(emitter, sine, quadrant), _signed(emitter, cosine, after)


def _signed(emitter: Emitter, x: Value, quadrant: Value) -> Value:
    """Return a number, with the opposite sign in the quadrants 2 and 3."""
    # Bit 1 of the quadrant, shifted to the sign bit of the float.
    sign = emitter.apply(
        "shl", "i4", emitter.apply("lshr", "i4", quadrant, np.int32(1)), np.int32(31)
    )
    bits = emitter.apply("xor", "i4", emitter.convert("bitcast", x, "f4", "i4"), sign)
    return emitter.convert("bitcast", bits, "i4", "f4")


_HALF_PI_REST = -6.123233995736766e-17
"""The double nearest to pi/2 minus pi/2."""


def _exponential(emitter: Emitter, x: Value) -> tuple[Value]:
    """Return exp(x) = 2^n exp(r) with integer n and |r| <= log(2) / 2, by a Taylor series of r."""
    far = emitter.convert("fpext", x, "f4", "f8")
    # Single precision overflows beyond 89 and underflows below -104. The bounds keep 2^n finite in
    # double precision; the last conversion makes infinity or zero. These minima pass NaN on.
    far = emitter.intrinsic("maximum", "f8", far, np.float64(-120))
    far = emitter.intrinsic("minimum", "f8", far, np.float64(120))
    scaled = emitter.apply("fmul", "f8", far, np.float64(1 / math.log(2)))
    power = emitter.intrinsic("rint", "f8", scaled)
    near = emitter.intrinsic("fma", "f8", power, np.float64(-math.log(2)), far)
    # 2^n is the double whose exponent field, from bit 52 on, is n + 1023.
    biased = emitter.apply("fadd", "f8", power, _ROUNDING_SHIFT + 1023)
    bits = emitter.apply("shl", "i8", emitter.convert("bitcast", biased, "f8", "i8"), np.int64(52))
    scale = emitter.convert("bitcast", bits, "i8", "f8")
    value = emitter.apply("fmul", "f8", _series(emitter, near, _EXPONENTIAL), scale)
    return (emitter.convert("fptrunc", value, "f8", "f4"),)


def _logarithm(emitter: Emitter, x: Value) -> tuple[Value]:
    """Return log(x) = n log(2) + log(f) with integer n and f between sqrt(1/2) and sqrt(2).

    Source: Abramowitz and Stegun (1964), Handbook of Mathematical Functions, 4.1.27.
    """
    far = emitter.convert("fpext", x, "f4", "f8")
    bits = emitter.convert("bitcast", far, "f8", "i8")
    # Relative to the bits of sqrt(1/2), the exponent field is n and the mantissa field gives f.
    half = np.int64(np.float64(math.sqrt(0.5)).view(np.int64))
    above = emitter.apply("sub", "i8", bits, half)
    mantissa = emitter.apply("and", "i8", above, np.int64((1 << 52) - 1))
    fraction = emitter.convert("bitcast", emitter.apply("add", "i8", mantissa, half), "i8", "f8")
    # n is added to the bits of the shift, which is subtracted as a double: AVX2 has no conversion
    # of 64-bit integers.
    exponent = emitter.apply("ashr", "i8", above, np.int64(52))
    shifted = emitter.apply("add", "i8", exponent, _ROUNDING_SHIFT.view(int))
    power = emitter.apply(
        "fsub", "f8", emitter.convert("bitcast", shifted, "i8", "f8"), _ROUNDING_SHIFT
    )
    # 4.1.27: log f = 2 (z + z³/3 + z⁵/5 + ...) with z = (f - 1) / (f + 1), |z| < 0.172.
    ratio = emitter.apply(
        "fdiv",
        "f8",
        emitter.apply("fsub", "f8", fraction, np.float64(1)),
        emitter.apply("fadd", "f8", fraction, np.float64(1)),
    )
    square = emitter.apply("fmul", "f8", ratio, ratio)
    small = emitter.apply("fmul", "f8", ratio, _series(emitter, square, _LOGARITHM))
    value = emitter.intrinsic("fma", "f8", power, np.float64(math.log(2)), small)
    # Zero gives minus infinity; `ult` is true for negative numbers and for NaN.
    for test, result in (("oeq", -np.inf), ("ult", np.nan)):
        special = emitter.compare(f"fcmp {test}", "f8", far, np.float64(0))
        value = emitter.select(special, np.float64(result), value, "f8")
    infinite = emitter.compare("fcmp oeq", "f8", far, np.float64(np.inf))
    value = emitter.select(infinite, far, value, "f8")
    return (emitter.convert("fptrunc", value, "f8", "f4"),)


def _series(emitter: Emitter, x: Value, coefficients: list[float]) -> Value:
    """Return a polynomial by Horner's scheme, with fused multiply-adds."""
    value: Value = np.float64(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = emitter.intrinsic("fma", "f8", value, x, np.float64(c))
    return value


_VECTOR_FUNCTIONS: dict[str, tuple[str, Callable[[Emitter, Value], tuple[Value, ...]], int]] = {
    "sin": ("sincos", _sine_and_cosine, 0),
    "cos": ("sincos", _sine_and_cosine, 1),
    "exp": ("exp", _exponential, 0),
    "log": ("log", _logarithm, 0),
}
"""Functions of single precision for all lanes at once: routine, its body, and which result."""


def math_function(name: str) -> Callable[..., Any]:
    """Return the lowering rule of one of `FUNCTIONS`: of the emitter, a type code and values."""

    def call(emitter: Emitter, code: str, *values: Value) -> Value:
        if code == "f4" and name in _VECTOR_FUNCTIONS:
            routine, build, which = _VECTOR_FUNCTIONS[name]
            return emitter.routine(routine, code, build, *values)[which]
        return emitter.library_call(name, code, *values)

    return call
