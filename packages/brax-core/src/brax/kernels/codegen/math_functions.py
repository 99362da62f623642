"""Elementary functions of floats: own code in single precision, C's library for the rest.

Own code computes in double precision and rounds once, so its error is at most 0.5001 units in the
last place of single precision, and its results are the same for every number of lanes. On a CPU it
is used for the functions that a step calls most. A GPU has no C library, so that there all
functions are own code, and the others are not supported.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen import single_precision
from brax.kernels.codegen.emitter import Emitter, Unsupported, Value, is_runtime_value

# The truncated terms are below 1e-11 within an eighth of a turn (|x| <= pi / 4), far less than
# the rounding to single precision.
_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(6)]
_COSINE = [(-1) ** k / math.factorial(2 * k) for k in range(7)]
"""Taylor coefficients, lowest power first, in powers of the square."""

_EXPONENTIAL = [1 / math.factorial(k) for k in range(11)]
"""Taylor coefficients, for |x| <= log(2) / 2."""

_EXPONENTIAL_LESS_ONE = [1 / math.factorial(k + 1) for k in range(12)]
"""Taylor coefficients of (exp(x) - 1) / x, for |x| <= log(2) / 2."""

_LOGARITHM = [2 / (2 * k + 1) for k in range(8)]
"""Coefficients of log(x) in odd powers of (x - 1) / (x + 1), for sqrt(1/2) <= x <= sqrt(2)."""

_ROUNDING_SHIFT = np.float64(1.5 * 2**52)
"""Added to a double of small size, it leaves the nearest integer in the lowest bits of the sum."""

NAMES_OF_BOTH = (
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"),
    *("atanh", "exp", "exp2", "expm1", "log", "log1p", "cbrt", "atan2", "erf"),
    *("erfc", "lgamma", "nextafter"),
)
"""The functions whose names in C's mathematics library are also those of JAX's primitives."""

FUNCTIONS = (*NAMES_OF_BOTH, "pow", "fmod")
"""The functions, by their names in C's mathematics library."""


_ARCTANGENT = [(-1) ** k / (2 * k + 1) for k in range(15)]
"""Taylor coefficients in odd powers, for |x| <= tan(pi / 8)."""


def _sine_and_cosine(emitter: Emitter, x: Value) -> tuple[Value, Value]:
    """Return sine and cosine of an angle, which share most of their work."""
    odd, even, quadrant = _near_sine_and_cosine(
        emitter, x, lambda y: emitter.convert("fptrunc", y, "f8", "f4")
    )
    swapped = _is_odd(emitter, quadrant)
    # cos(x) = sin(x + pi/2): the cosine's sign is that of the next quadrant.
    after = emitter.apply("add", "i4", quadrant, np.int32(1))
    sine = emitter.select(swapped, even, odd, "f4")
    cosine = emitter.select(swapped, odd, even, "f4")
    return _signed(emitter, sine, quadrant), _signed(emitter, cosine, after)


def _is_odd(emitter: Emitter, quadrant: Value) -> Value:
    """Return whether a quadrant exchanges sine and cosine."""
    swapped = emitter.apply("and", "i4", quadrant, np.int32(1))
    return emitter.compare("icmp ne", "i4", swapped, np.int32(0))


def _near_sine_and_cosine(
    emitter: Emitter, x: Value, finish: Callable[[Value], Value] = lambda y: y
) -> tuple[Value, Value, Value]:
    """Return sine and cosine of the angle to the next quarter turn, and the number of quarters.

    `finish` is applied to both as soon as they are computed. The angle is reduced to an eighth of a
    turn around zero, where Taylor series hold. The result is good up to 1e9 rad and more.

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
    odd = finish(emitter.apply("fmul", "f8", near, _series(emitter, square, _SINE)))
    even = finish(_series(emitter, square, _COSINE))
    # The lowest two bits of the number of quarters are the quadrant. An odd quadrant exchanges
    # sine and cosine, quadrants 2 and 3 change the sign.
    quadrant = emitter.convert("bitcast", counted, "f8", "i8")
    return odd, even, emitter.convert("trunc", quadrant, "i8", "i4")


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
    """Return exp(x)."""
    return (_rounded(emitter, _exponential_f8, x),)


def _rounded(emitter: Emitter, function: Callable[..., Value], *values: Value) -> Value:
    """Return a function of single precision that is computed in double precision."""
    far = [emitter.convert("fpext", x, "f4", "f8") for x in values]
    return emitter.convert("fptrunc", function(emitter, *far), "f8", "f4")


def _exponential_f8(emitter: Emitter, far: Value) -> Value:
    """Return exp(x) = 2^n exp(r) with integer n and |r| <= log(2) / 2, by a Taylor series of r."""
    near, scale = _reduced(emitter, far)
    return emitter.apply("fmul", "f8", _series(emitter, near, _EXPONENTIAL), scale)


def _reduced(emitter: Emitter, far: Value) -> tuple[Value, Value]:
    """Return r and 2^n with x = n log(2) + r, integer n and |r| <= log(2) / 2."""
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
    return near, emitter.convert("bitcast", bits, "i8", "f8")


def _logarithm(emitter: Emitter, x: Value) -> tuple[Value]:
    """Return log(x)."""
    return (_rounded(emitter, _logarithm_f8, x),)


def _logarithm_f8(emitter: Emitter, far: Value) -> Value:
    """Return log(x) = n log(2) + log(f) with integer n and f between sqrt(1/2) and sqrt(2).

    Source: Abramowitz and Stegun (1964), Handbook of Mathematical Functions, 4.1.27.
    """
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
    return emitter.select(infinite, far, value, "f8")


class _Numbers:
    """Arithmetic of doubles, for functions that a formula defines."""

    def __init__(self, emitter: Emitter) -> None:
        """Emit into an emitter."""
        self.emitter = emitter

    def add(self, x: Value, y: Value) -> Value:
        """Return the sum."""
        return self.emitter.apply("fadd", "f8", x, y)

    def subtract(self, x: Value, y: Value) -> Value:
        """Return the difference."""
        return self.emitter.apply("fsub", "f8", x, y)

    def multiply(self, x: Value, y: Value) -> Value:
        """Return the product."""
        return self.emitter.apply("fmul", "f8", x, y)

    def divide(self, x: Value, y: Value) -> Value:
        """Return the quotient."""
        return self.emitter.apply("fdiv", "f8", x, y)

    def root(self, x: Value) -> Value:
        """Return the square root."""
        return self.emitter.intrinsic("sqrt", "f8", x)

    def size(self, x: Value) -> Value:
        """Return the absolute value."""
        return self.emitter.intrinsic("fabs", "f8", x)

    def where(self, test: str, x: Value, y: Value, yes: Value, no: Value) -> Value:
        """Return `yes` where a comparison of `x` and `y` holds, and `no` elsewhere."""
        return self.emitter.select(self.emitter.compare(f"fcmp {test}", "f8", x, y), yes, no, "f8")

    def signed(self, x: Value, like: Value) -> Value:
        """Return a number that is not negative, with the sign of another."""
        if not is_runtime_value(like):
            return self.emitter.negative("f8", x) if np.signbit(like) else x
        bits = self.emitter.convert("bitcast", like, "f8", "i8")
        below = self.emitter.compare("icmp slt", "i8", bits, np.int64(0))
        return self.emitter.select(below, self.emitter.negative("f8", x), x, "f8")


_ONE, _HALF, _INFINITE = np.float64(1), np.float64(0.5), np.float64(np.inf)


def _expm1_f8(emitter: Emitter, x: Value) -> Value:
    """Return exp(x) - 1 = 2^n (exp(r) - 1) + (2^n - 1), without cancellation at zero."""
    n = _Numbers(emitter)
    near, scale = _reduced(emitter, x)
    small = n.multiply(near, _series(emitter, near, _EXPONENTIAL_LESS_ONE))
    value = emitter.intrinsic("fma", "f8", scale, small, n.subtract(scale, _ONE))
    # Minus zero gives minus zero.
    return n.where("oeq", x, np.float64(0), x, value)


def _log1p_f8(emitter: Emitter, x: Value) -> Value:
    """Return log(1 + x) = log(u) x / (u - 1) with u = 1 + x rounded, without cancellation at zero.

    Source: Higham (2002), Accuracy and Stability of Numerical Algorithms, section 1.14.1.
    """
    n = _Numbers(emitter)
    up = n.add(x, _ONE)
    step = n.subtract(up, _ONE)
    value = n.multiply(_logarithm_f8(emitter, up), n.divide(x, step))
    value = n.where("oeq", step, np.float64(0), x, value)
    return n.where("oeq", x, _INFINITE, x, value)


def _tangent(emitter: Emitter, x: Value) -> Value:
    """Return tan(x), of single precision."""
    n = _Numbers(emitter)
    sine, cosine, quadrant = _near_sine_and_cosine(emitter, x)
    swapped = emitter.negative("f8", n.divide(cosine, sine))
    odd = _is_odd(emitter, quadrant)
    value = emitter.select(odd, swapped, n.divide(sine, cosine), "f8")
    return emitter.convert("fptrunc", value, "f8", "f4")


def _sinh_f8(emitter: Emitter, x: Value) -> Value:
    """Return sinh(x) = (t + t / (t + 1)) / 2 with t = exp(|x|) - 1."""
    n = _Numbers(emitter)
    t = _expm1_f8(emitter, n.size(x))
    return n.signed(n.multiply(_HALF, n.add(t, n.divide(t, n.add(t, _ONE)))), x)


def _cosh_f8(emitter: Emitter, x: Value) -> Value:
    """Return cosh(x) = (t + 1 / t) / 2 with t = exp(x)."""
    n = _Numbers(emitter)
    t = _exponential_f8(emitter, x)
    return n.multiply(_HALF, n.add(t, n.divide(_ONE, t)))


def _tanh_f8(emitter: Emitter, x: Value) -> Value:
    """Return tanh(x) = t / (t + 2) with t = exp(2 |x|) - 1."""
    n = _Numbers(emitter)
    t = _expm1_f8(emitter, n.multiply(np.float64(2), n.size(x)))
    return n.signed(n.divide(t, n.add(t, np.float64(2))), x)


def _atan2_f8(emitter: Emitter, y: Value, x: Value) -> Value:
    """Return the angle of a point, from that of the smaller coordinate by the larger one.

    atan(t) is pi/4 + atan((t - 1) / (t + 1)) beyond tan(pi/8), and a Taylor series up to there.
    """
    n = _Numbers(emitter)
    across, up = n.size(x), n.size(y)
    low = emitter.intrinsic("minimum", "f8", across, up)
    high = emitter.intrinsic("maximum", "f8", across, up)
    # At the origin and with two infinities, the quotient would be NaN.
    ratio = n.where("oeq", high, np.float64(0), high, n.divide(low, high))
    ratio = n.where("oeq", low, _INFINITE, _ONE, ratio)
    limit = np.float64(math.tan(math.pi / 8))
    turned = n.divide(n.subtract(ratio, _ONE), n.add(ratio, _ONE))
    near = n.where("ogt", ratio, limit, turned, ratio)
    angle = n.multiply(near, _series(emitter, n.multiply(near, near), _ARCTANGENT))
    eighth = n.add(angle, np.float64(math.pi / 4))
    angle = n.where("ogt", ratio, limit, eighth, angle)
    angle = n.where("ogt", up, across, n.subtract(np.float64(math.pi / 2), angle), angle)
    # On the left, zero's sign counts too: the angle of (-0, 0) is pi.
    left = n.where("olt", n.signed(_ONE, x), np.float64(0), _ONE, np.float64(0))
    angle = n.where("ogt", left, _HALF, n.subtract(np.float64(math.pi), angle), angle)
    return n.signed(angle, y)


def _other_side(emitter: Emitter, x: Value) -> Value:
    """Return sqrt(1 - x²), without cancellation near one."""
    n = _Numbers(emitter)
    return n.root(n.multiply(n.subtract(_ONE, x), n.add(_ONE, x)))


def _asinh_f8(emitter: Emitter, x: Value) -> Value:
    """Return asinh(x) = log(1 + |x| + x² / (1 + sqrt(x² + 1))), with the sign of x."""
    n = _Numbers(emitter)
    size, square = n.size(x), n.multiply(x, x)
    more = n.divide(square, n.add(_ONE, n.root(n.add(square, _ONE))))
    more = n.where("oeq", square, _INFINITE, square, more)
    return n.signed(_log1p_f8(emitter, n.add(size, more)), x)


def _acosh_f8(emitter: Emitter, x: Value) -> Value:
    """Return acosh(x) = log(x + sqrt(x² - 1))."""
    n = _Numbers(emitter)
    root = n.root(n.multiply(n.subtract(x, _ONE), n.add(x, _ONE)))
    return _logarithm_f8(emitter, n.where("olt", x, _ONE, np.float64(np.nan), n.add(x, root)))


def _atanh_f8(emitter: Emitter, x: Value) -> Value:
    """Return atanh(x) = log(1 + 2 |x| / (1 - |x|)) / 2, with the sign of x."""
    n = _Numbers(emitter)
    size = n.size(x)
    ratio = n.divide(n.add(size, size), n.subtract(_ONE, size))
    return n.signed(n.multiply(_HALF, _log1p_f8(emitter, ratio)), x)


def _cube_root_f8(emitter: Emitter, x: Value) -> Value:
    """Return the cube root exp(log(|x|) / 3), with the sign of x."""
    n = _Numbers(emitter)
    third = n.divide(_logarithm_f8(emitter, n.size(x)), np.float64(3))
    return n.signed(_exponential_f8(emitter, third), x)


def _power_f8(emitter: Emitter, x: Value, y: Value) -> Value:
    """Return x to the power of y, exp(y log(|x|)), with C's results for special numbers.

    Source: the C standard (ISO/IEC 9899:2018), F.10.4.4.
    """
    n = _Numbers(emitter)
    zero, size = np.float64(0), n.size(x)
    log = _logarithm_f8(emitter, size)
    # The base is 1 or -1, and the exponent may be infinite.
    product = n.where("oeq", n.size(y), _INFINITE, zero, n.multiply(y, log))
    product = n.where("oeq", log, zero, product, n.multiply(y, log))
    value = _exponential_f8(emitter, product)
    whole = emitter.intrinsic("rint", "f8", y)
    half = n.multiply(_HALF, y)
    # An odd exponent keeps the sign; what is not whole has no power of a negative number.
    odd = n.where("une", emitter.intrinsic("rint", "f8", half), half, n.signed(value, x), value)
    root = n.where("olt", x, zero, np.float64(np.nan), value)
    root = n.where("oeq", size, _INFINITE, value, root)
    value = n.where("oeq", whole, y, odd, root)
    value = n.where("oeq", x, _ONE, _ONE, value)
    return n.where("oeq", y, zero, _ONE, value)


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


_IN_DOUBLE: dict[str, Callable[..., Value]] = {
    "asin": lambda e, x: _atan2_f8(e, x, _other_side(e, x)),
    "acos": lambda e, x: _atan2_f8(e, _other_side(e, x), x),
    "atan": lambda e, x: _atan2_f8(e, x, _ONE),
    "atan2": _atan2_f8,
    "sinh": _sinh_f8,
    "cosh": _cosh_f8,
    "tanh": _tanh_f8,
    "asinh": _asinh_f8,
    "acosh": _acosh_f8,
    "atanh": _atanh_f8,
    "exp2": lambda e, x: _exponential_f8(e, e.apply("fmul", "f8", x, np.float64(math.log(2)))),
    "expm1": _expm1_f8,
    "log1p": _log1p_f8,
    "cbrt": _cube_root_f8,
    "pow": _power_f8,
}
"""Functions of doubles, from which a GPU has those of single precision."""


def without_library(emitter: Emitter, name: str, code: str, values: Sequence[Value]) -> Value:
    """Return an elementary function without C's library.

    Raises:
        Unsupported: if there is none.
    """
    if code != "f4" or (name not in _IN_DOUBLE and name != "tan"):
        raise Unsupported(f"the function '{name}' of type {code} on a GPU")

    def build(inner: Emitter, *x: Value) -> tuple[Value]:
        return (_tangent(inner, *x) if name == "tan" else _rounded(inner, _IN_DOUBLE[name], *x),)

    return emitter.routine(name, code, build, *values)[0]


def math_function(name: str) -> Callable[..., Any]:
    """Return the lowering rule of one of `FUNCTIONS`: of the emitter, a type code and values."""

    def call(emitter: Emitter, code: str, *values: Value) -> Value:
        if emitter.single_precision and code == "f4" and name in single_precision.FUNCTIONS:
            return single_precision.FUNCTIONS[name](emitter, *values)
        if code == "f4" and name in _VECTOR_FUNCTIONS:
            routine, build, which = _VECTOR_FUNCTIONS[name]
            return emitter.routine(routine, code, build, *values)[which]
        if emitter.for_gpu:
            return without_library(emitter, name, code, values)
        return emitter.library_call(name, code, *values)

    return call
