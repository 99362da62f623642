"""Lowering rules of operations on whole numbers and on the bits of numbers.

LLVM leaves a division by zero and a shift by all bits undefined. The results here are XLA's.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import Emitter, Value, is_runtime_value


def _number(code: str, x: int) -> Value:
    """Return a number of a type of whole numbers; a negative one wraps around."""
    return np.asarray(x).astype(code)[()]


def divide(asm: Emitter, code: str, x: Value, y: Value) -> Value:
    """Divide towards zero; by zero, all bits of the result are set."""
    by, zero = _divisor(asm, code, x, y)
    out = asm.apply("udiv" if code[0] == "u" else "sdiv", code, x, by)
    return asm.select(zero, _number(code, -1), out, code)


def remainder(asm: Emitter, code: str, x: Value, y: Value) -> Value:
    """Return the remainder of `divide`, which has the sign of `x`; by zero, it is `x`."""
    by, zero = _divisor(asm, code, x, y)
    out = asm.apply("urem" if code[0] == "u" else "srem", code, x, by)
    return asm.select(zero, x, out, code)


def _divisor(asm: Emitter, code: str, x: Value, y: Value) -> tuple[Value, Value]:
    """Return a divisor that does not trap, and whether `y` is zero.

    The least number divided by -1 traps too; by 1 it is what XLA gives.
    """
    if not is_runtime_value(y) and y not in (0, -1):
        return y, np.bool_(False)
    zero = asm.compare("icmp eq", code, y, _number(code, 0))
    unsafe: Value = zero
    if code[0] == "i":
        least = asm.compare("icmp eq", code, x, _number(code, np.iinfo(code).min))
        minus = asm.compare("icmp eq", code, y, _number(code, -1))
        unsafe = asm.apply("or", "b1", zero, asm.apply("and", "b1", least, minus))
    return asm.select(unsafe, _number(code, 1), y, code), zero


def _shift(instruction: str) -> Callable[..., Value]:
    """Return a shift; by all bits or more, no bit of the number but its sign is left."""

    def one(asm: Emitter, code: str, x: Value, by: Value) -> Value:
        bits = 8 * int(code[1])
        if not is_runtime_value(by):
            if 0 <= int(by) < bits:
                return asm.apply(instruction, code, x, by)
            sign = asm.apply("ashr", code, x, _number(code, bits - 1))
            return sign if instruction == "ashr" else _number(code, 0)
        within = asm.compare("icmp ult", code, by, _number(code, bits))
        most = asm.select(within, by, _number(code, bits - 1), code)
        out = asm.apply(instruction, code, x, most)
        return out if instruction == "ashr" else asm.select(within, out, _number(code, 0), code)

    return one


def _count_ones(asm: Emitter, code: str, x: Value) -> Value:
    return asm.intrinsic("ctpop", code, x)


def _count_leading_zeros(asm: Emitter, code: str, x: Value) -> Value:
    """Set all bits below the highest one, and count the others."""
    by = 1
    while by < 8 * int(code[1]):
        x = asm.apply("or", code, x, asm.apply("lshr", code, x, _number(code, by)))
        by *= 2
    return _count_ones(asm, code, asm.apply("xor", code, x, _number(code, -1)))


def bits_of(asm: Emitter, x: Value, before: str, after: str) -> Value:
    """Return the number of another type of the same size that has the same bits."""
    if not is_runtime_value(x):
        return np.asarray(x).view(after)[()]
    return x if before[0] != "f" and after[0] != "f" else asm.convert("bitcast", x, before, after)


def _total_order(predicate: str) -> Callable[..., Value]:
    """Compare with -NaN below all numbers, NaN above all, and -0 below 0."""

    def key(asm: Emitter, code: str, x: Value) -> Value:
        if code[0] != "f":
            return x
        whole = f"i{code[1]}"
        bits = bits_of(asm, x, code, whole)
        sign = asm.apply("ashr", whole, bits, _number(whole, 8 * int(code[1]) - 1))
        return asm.apply("xor", whole, bits, asm.apply("lshr", whole, sign, _number(whole, 1)))

    def one(asm: Emitter, code: str, x: Value, y: Value) -> Value:
        sign = "u" if code[0] in "ub" else "s"
        kind = f"i{code[1]}" if code[0] == "f" else code
        test = f"icmp {sign}{predicate}"
        return asm.compare(test, kind, key(asm, code, x), key(asm, code, y))

    return one


def rounded_mantissa(asm: Emitter, code: str, x: Value, bits: int) -> Value:
    """Round the mantissa of a number to some bits, halves to even."""
    whole, given = f"i{code[1]}", np.finfo(code).nmant
    if bits >= given:
        return x
    number, drop = bits_of(asm, x, code, whole), given - bits
    last = asm.apply("lshr", whole, number, _number(whole, drop))
    last = asm.apply("and", whole, last, _number(whole, 1))
    up = asm.apply("add", whole, last, _number(whole, 2 ** (drop - 1) - 1))
    near = asm.apply("add", whole, number, up)
    near = asm.apply("and", whole, near, _number(whole, -(2**drop)))
    odd = asm.compare("fcmp uno", code, x, x)
    return asm.select(odd, x, asm.convert("bitcast", near, whole, code), code)


INTEGER_RULES: dict[str, Callable[..., Any]] = {
    "shift_left": _shift("shl"),
    "shift_right_logical": _shift("lshr"),
    "shift_right_arithmetic": _shift("ashr"),
    "population_count": _count_ones,
    "clz": _count_leading_zeros,
    "lt_to": _total_order("lt"),
    "le_to": _total_order("le"),
}
"""Operations without parameters, by JAX's names."""
