"""Lowering rules of operations on integers and on the bits of numbers.

LLVM leaves a division by zero and a shift by all bits undefined. The results here are XLA's.
"""

from collections.abc import Callable

import numpy as np

from brax.kernels.codegen.emitter import Emitter, Value, is_runtime_value
from brax.kernels.codegen.lowering.registry import Takes, lowering_rule


def _number(code: str, x: int) -> Value:
    """Return a number of an integer type; a negative one wraps around in an unsigned type."""
    return np.asarray(x).astype(code)[()]


def divide(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
    """Divide towards zero; by zero, all bits of the result are set."""
    by, zero = _divisor(emitter, code, x, y)
    out = emitter.apply("udiv" if code[0] == "u" else "sdiv", code, x, by)
    return emitter.select(zero, _number(code, -1), out, code)


def remainder(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
    """Return the remainder of `divide`, which has the sign of `x`; by zero, it is `x`."""
    by, zero = _divisor(emitter, code, x, y)
    out = emitter.apply("urem" if code[0] == "u" else "srem", code, x, by)
    return emitter.select(zero, x, out, code)


def _divisor(emitter: Emitter, code: str, x: Value, y: Value) -> tuple[Value, Value]:
    """Return a divisor that does not trap, and whether `y` is zero.

    The least signed number divided by -1 overflows, which traps too. XLA's result is that number,
    which is also its quotient by 1.
    """
    # A known divisor is nearly always harmless; then nothing is tested as the kernel runs.
    if not is_runtime_value(y) and y not in (0, -1):
        return y, np.bool_(False)
    # The test comes before the division: lanes whose result is not used divide as well.
    zero = emitter.compare("icmp eq", code, y, _number(code, 0))
    unsafe: Value = zero
    if code[0] == "i":
        least = emitter.compare("icmp eq", code, x, _number(code, np.iinfo(code).min))
        minus = emitter.compare("icmp eq", code, y, _number(code, -1))
        unsafe = emitter.apply("or", "b1", zero, emitter.apply("and", "b1", least, minus))
    return emitter.select(unsafe, _number(code, 1), y, code), zero


def _shift(instruction: str) -> Callable[..., Value]:
    """Return the rule of a shift; by all bits or more, only copies of the sign remain, if any."""

    def one(emitter: Emitter, code: str, x: Value, by: Value) -> Value:
        bits = 8 * int(code[1])
        if not is_runtime_value(by):
            if 0 <= int(by) < bits:
                return emitter.apply(instruction, code, x, by)
            # An arithmetic shift to the right by all bits but one leaves the sign in each bit.
            sign = emitter.apply("ashr", code, x, _number(code, bits - 1))
            return sign if instruction == "ashr" else _number(code, 0)
        # Unsigned, so that a negative count is out of range too.
        within = emitter.compare("icmp ult", code, by, _number(code, bits))
        most = emitter.select(within, by, _number(code, bits - 1), code)
        out = emitter.apply(instruction, code, x, most)
        return out if instruction == "ashr" else emitter.select(within, out, _number(code, 0), code)

    return one


@lowering_rule("population_count", takes=Takes.NUMBERS)
def _count_ones(emitter: Emitter, code: str, x: Value) -> Value:
    """Return the number of bits that are set."""
    return emitter.intrinsic("ctpop", code, x)


@lowering_rule("clz", takes=Takes.NUMBERS)
def _count_leading_zeros(emitter: Emitter, code: str, x: Value) -> Value:
    """Return the number of zeros before the highest bit: set all below it, count the others."""
    # LLVM's `ctlz` takes a second operand of another type, which `Emitter.intrinsic` has not.
    by = 1
    while by < 8 * int(code[1]):
        x = emitter.apply("or", code, x, emitter.apply("lshr", code, x, _number(code, by)))
        by *= 2
    return _count_ones(emitter, code, emitter.apply("xor", code, x, _number(code, -1)))


def bits_of(emitter: Emitter, x: Value, before: str, after: str) -> Value:
    """Return the number with the same bits in another type of the same size."""
    # LLVM's integers have no sign, so that only a change between integer and float is needed.
    if not is_runtime_value(x):
        return np.asarray(x).view(after)[()]
    return (
        x if before[0] != "f" and after[0] != "f" else emitter.convert("bitcast", x, before, after)
    )


def ordered_code(code: str) -> str:
    """Return the type code of `ordered` numbers of a type."""
    return f"i{code[1]}" if code[0] == "f" else code


def ordered(emitter: Emitter, code: str, x: Value) -> Value:
    """Return an integer that ascends with a float: -NaN below all, NaN above all, -0 below 0.

    Integers and truth values are returned as they are.
    """
    if code[0] != "f":
        return x
    whole = ordered_code(code)
    return _mirrored(emitter, whole, bits_of(emitter, x, code, whole))


def from_ordered(emitter: Emitter, code: str, x: Value) -> Value:
    """Return the number of a type that `ordered` has made an integer of."""
    if code[0] != "f":
        return x
    whole = ordered_code(code)
    return bits_of(emitter, _mirrored(emitter, whole, x), whole, code)


def _mirrored(emitter: Emitter, code: str, bits: Value) -> Value:
    """Return an integer with all bits but the sign inverted if it is negative.

    The bits of positive floats ascend with the numbers. Those of negative ones descend.
    """
    sign = emitter.apply("ashr", code, bits, _number(code, 8 * int(code[1]) - 1))
    return emitter.apply("xor", code, bits, emitter.apply("lshr", code, sign, _number(code, 1)))


def _total_order(predicate: str) -> Callable[..., Value]:
    """Return the rule of a comparison in total order, which is that of `ordered` numbers."""

    def one(emitter: Emitter, code: str, x: Value, y: Value) -> Value:
        test = f"icmp {'u' if code[0] in 'ub' else 's'}{predicate}"
        keys = ordered(emitter, code, x), ordered(emitter, code, y)
        return emitter.compare(test, ordered_code(code), *keys)

    return one


def rounded_mantissa(emitter: Emitter, code: str, x: Value, bits: int) -> Value:
    """Return a float whose mantissa is rounded to some bits, halves to even."""
    whole, mantissa_bits = f"i{code[1]}", np.finfo(code).nmant
    if bits >= mantissa_bits:
        return x
    number, drop = bits_of(emitter, x, code, whole), mantissa_bits - bits
    # Adding half a unit less one, and the last bit that stays, carries into the bits that stay if
    # the rest is above one half, or equal to it with an odd last bit. The carry may reach the
    # exponent, which is right: the mantissa is then zero.
    last = emitter.apply("lshr", whole, number, _number(whole, drop))
    last = emitter.apply("and", whole, last, _number(whole, 1))
    up = emitter.apply("add", whole, last, _number(whole, 2 ** (drop - 1) - 1))
    near = emitter.apply("add", whole, number, up)
    near = emitter.apply("and", whole, near, _number(whole, -(2**drop)))
    # NaN could become infinity.
    odd = emitter.compare("fcmp uno", code, x, x)
    return emitter.select(odd, x, emitter.convert("bitcast", near, whole, code), code)


lowering_rule("shift_left", takes=Takes.NUMBERS)(_shift("shl"))
lowering_rule("shift_right_logical", takes=Takes.NUMBERS)(_shift("lshr"))
lowering_rule("shift_right_arithmetic", takes=Takes.NUMBERS)(_shift("ashr"))
lowering_rule("lt_to", takes=Takes.NUMBERS)(_total_order("lt"))
lowering_rule("le_to", takes=Takes.NUMBERS)(_total_order("le"))
