"""Elementary functions of single precision that are computed in single precision.

They take about a third of the time of those in `math_functions`, and their error is a few units in
the last place, not half a unit. That is enough for the activations of neural networks.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import Emitter, Value
from brax.kernels.recognized import PREFIX, recognized

MARK = f"{PREFIX}single_precision"
"""The name of a function whose kernel computes elementary functions in single precision."""


def in_single_precision(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose kernel computes elementary functions in single precision."""

    def marked(*args: Any) -> Any:
        return fun(*args)

    return recognized(MARK, marked)


_LESS_ONE = [1 / math.factorial(k + 1) for k in range(7)]
"""Taylor coefficients of (exp(x) - 1) / x, lowest power first. For |x| <= log(2) / 2 the first
omitted term is 5e-9, below the rounding of single precision."""

_LOGARITHM = [2 / (2 * k + 1) for k in range(5)]
"""Coefficients of log(x) in odd powers of (x - 1) / (x + 1), for sqrt(1/2) <= x <= sqrt(2). The
first omitted term is 7e-10."""

_ROUNDING_SHIFT = 1.5 * 2**23
"""Added to a small number, it leaves the nearest integer in the lowest bits of the sum."""

_LOG_2 = 0.693359375, -2.12194440e-4
"""log(2) in two parts, of which the first has so few bits that its multiples are exact."""

_EXTREMES = -86.6, 88.72283
"""Arguments of the exponential are clipped to them, so that 2^n / 2 is a normal number. Below the
first the result is 0, above the second infinite."""


def _fma(emitter: Emitter, x: Value, y: Value, z: float | Value) -> Value:
    """Return x y + z."""
    return emitter.intrinsic("fma", "f4", x, y, np.float32(z) if isinstance(z, float) else z)


def _series(emitter: Emitter, x: Value, coefficients: Sequence[float]) -> Value:
    """Return a polynomial by Horner's scheme, with fused multiply-adds."""
    value: Value = np.float32(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        value = _fma(emitter, value, x, c)
    return value


def _reduced(emitter: Emitter, x: Value) -> tuple[Value, Value]:
    """Return exp(r) - 1 and 2^n / 2, where x is n log(2) + r with integer n and |r| <= log(2) / 2.

    Source: Cody and Waite (1980), Software Manual for the Elementary Functions, chapter 6.
    """
    # LLVM's `maximum` and `minimum` pass NaN on.
    x = emitter.intrinsic("maximum", "f4", x, np.float32(_EXTREMES[0]))
    x = emitter.intrinsic("minimum", "f4", x, np.float32(_EXTREMES[1]))
    shifted = _fma(emitter, x, np.float32(1 / math.log(2)), _ROUNDING_SHIFT)
    power = emitter.apply("fsub", "f4", shifted, np.float32(_ROUNDING_SHIFT))
    near = x
    for part in _LOG_2:
        near = _fma(emitter, power, np.float32(-part), near)
    less_one = emitter.apply("fmul", "f4", near, _series(emitter, near, _LESS_ONE))
    # 2^n / 2 is the number whose exponent field, from bit 23 on, is n + 126.
    biased = emitter.apply("fadd", "f4", shifted, np.float32(126))
    bits = emitter.convert("bitcast", biased, "f4", "i4")
    half = emitter.apply("shl", "i4", bits, np.int32(23))
    return less_one, emitter.convert("bitcast", half, "i4", "f4")


def _twice(emitter: Emitter, x: Value) -> Value:
    """Return 2 x."""
    return emitter.apply("fadd", "f4", x, x)


def _where(
    emitter: Emitter, test: str, x: Value, bound: float, yes: float | Value, no: Value
) -> Value:
    """Return `yes` where a number compares to a bound by a test, and `no` elsewhere."""
    found = emitter.compare(f"fcmp {test}", "f4", x, np.float32(bound))
    return emitter.select(found, np.float32(yes) if isinstance(yes, float) else yes, no, "f4")


def _bounded_exponential(emitter: Emitter, x: Value) -> Value:
    """Return exp(x) = 2^n (exp(r) - 1) + 2^n of a number clipped to `_EXTREMES`."""
    less_one, half = _reduced(emitter, x)
    return _twice(emitter, _fma(emitter, less_one, half, half))


def _exponential(emitter: Emitter, x: Value) -> Value:
    """Return exp(x)."""
    value = _bounded_exponential(emitter, x)
    value = _where(emitter, "olt", x, _EXTREMES[0], 0.0, value)
    return _where(emitter, "ogt", x, _EXTREMES[1], math.inf, value)


def _less_one(emitter: Emitter, x: Value) -> Value:
    """Return exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1), without cancellation at zero."""
    less_one, half = _reduced(emitter, x)
    rest = emitter.apply("fsub", "f4", half, np.float32(0.5))
    value = _twice(emitter, _fma(emitter, less_one, half, rest))
    return _where(emitter, "ogt", x, _EXTREMES[1], math.inf, value)


def _tanh(emitter: Emitter, x: Value) -> Value:
    """Return tanh(x) = t / (t + 2) with t = exp(2 |x|) - 1, with the sign of x."""
    size = emitter.intrinsic("fabs", "f4", x)
    # From |x| = 9 on it rounds to 1; the bound keeps t finite.
    size = emitter.intrinsic("minimum", "f4", size, np.float32(10))
    t = _less_one(emitter, _twice(emitter, size))
    value = emitter.apply("fdiv", "f4", t, emitter.apply("fadd", "f4", t, np.float32(2)))
    return emitter.intrinsic("copysign", "f4", value, x)


def logistic(emitter: Emitter, x: Value) -> Value:
    """Return 1 / (1 + exp(-x)).

    Where the exponential is clipped, the result is 1 or less than 1e-38.
    """
    grown = _bounded_exponential(emitter, emitter.apply("fsub", "f4", np.float32(-0.0), x))
    below = emitter.apply("fadd", "f4", grown, np.float32(1))
    return emitter.apply("fdiv", "f4", np.float32(1), below)


def _logarithm(emitter: Emitter, x: Value) -> Value:
    """Return log(x) = n log(2) + log(f) with an integer n and f between sqrt(1/2) and sqrt(2).

    Source: Abramowitz and Stegun (1964), Handbook of Mathematical Functions, 4.1.27.
    """
    # Subnormal numbers, whose exponent field is zero, count as the least normal one.
    normal = emitter.intrinsic("maximum", "f4", x, np.finfo(np.float32).tiny)
    bits = emitter.convert("bitcast", normal, "f4", "i4")
    # Relative to the bits of sqrt(1/2), the exponent field is n and the mantissa field gives f.
    half = np.int32(np.float32(math.sqrt(0.5)).view(np.int32))
    above = emitter.apply("sub", "i4", bits, half)
    power = emitter.convert("sitofp", emitter.apply("ashr", "i4", above, np.int32(23)), "i4", "f4")
    mantissa = emitter.apply("and", "i4", above, np.int32((1 << 23) - 1))
    fraction = emitter.convert("bitcast", emitter.apply("add", "i4", mantissa, half), "i4", "f4")
    # 4.1.27: log f = 2 (z + z³/3 + z⁵/5 + ...) with z = (f - 1) / (f + 1), |z| < 0.172.
    less = emitter.apply("fsub", "f4", fraction, np.float32(1))
    ratio = emitter.apply("fdiv", "f4", less, emitter.apply("fadd", "f4", fraction, np.float32(1)))
    square = emitter.apply("fmul", "f4", ratio, ratio)
    small = emitter.apply("fmul", "f4", ratio, _series(emitter, square, _LOGARITHM))
    value = _fma(emitter, power, np.float32(_LOG_2[1]), small)
    value = _fma(emitter, power, np.float32(_LOG_2[0]), value)
    # Zero gives minus infinity; `ult` is true for negative numbers and for NaN.
    for test, result in (("oeq", -math.inf), ("ult", math.nan)):
        value = _where(emitter, test, x, 0.0, result, value)
    return _where(emitter, "oeq", x, math.inf, math.inf, value)


def _logarithm_of_more(emitter: Emitter, x: Value) -> Value:
    """Return log(1 + x) = log(u) x / (u - 1) with u = 1 + x rounded, without cancellation at zero.

    Source: Higham (2002), Accuracy and Stability of Numerical Algorithms, section 1.14.1.
    """
    up = emitter.apply("fadd", "f4", x, np.float32(1))
    step = emitter.apply("fsub", "f4", up, np.float32(1))
    value = emitter.apply(
        "fmul", "f4", _logarithm(emitter, up), emitter.apply("fdiv", "f4", x, step)
    )
    value = _where(emitter, "oeq", step, 0.0, x, value)
    return _where(emitter, "oeq", x, math.inf, math.inf, value)


FUNCTIONS: dict[str, Callable[[Emitter, Value], Value]] = {
    "exp": _exponential,
    "expm1": _less_one,
    "log": _logarithm,
    "log1p": _logarithm_of_more,
    "tanh": _tanh,
}
"""The functions of one operand, by their names in C's mathematics library."""
