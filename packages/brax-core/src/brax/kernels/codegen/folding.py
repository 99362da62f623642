"""Folding: leaves out what zeros and ones of a model make trivial, such as a product with zero.

Of the numbers that environments share, many are exactly 0, 1 or -1: the normal of a floor, the axis
of a hinge, the orientation of a geom. A kernel knows which of them are, and what they are, but no
other numbers. So models that differ in their masses or lengths share a kernel.

A stack slot in which a loop carries a number counts as known if all that is stored there is one
known number: on a level floor friction has no component along the normal, in any round.

The pass works on instructions that the emitter has already chosen. So the same products are fused
with sums whether numbers are known or not, and every result has the same bits, but for the sign of
a zero, and for what is not finite: zero times infinity or NaN, and infinity or NaN minus itself,
are zero here.

That holds in every kernel, also where no number of a model is known: a zero that is written in a
function counts as known, and so does the difference of a value and itself. Steps of the pipelines
have both, so leaving them alone would add instructions to ordinary kernels.
"""

import math
import struct
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import literal
from brax.kernels.codegen.ir import Effect, Group, Instruction, Type

FOLDED = (0.0, 1.0, -1.0)
"""The numbers that a kernel knows."""

MAX_FOLLOWED = 100_000
"""Number of instructions from which on stack slots are not followed, which takes several passes."""

Pattern = tuple[float | None, ...]
"""For each element of an operand its number, if it is one of `FOLDED`; else None."""

_CODES = {"float": "f4", "double": "f8"}


def pattern(numbers: Any) -> Pattern | None:
    """Return what a kernel may know of an operand's numbers; None if it is nothing."""
    numbers = np.asarray(numbers)
    if not np.issubdtype(numbers.dtype, np.floating):
        return None
    # The sign of a zero would be lost.
    own = [x if x in FOLDED and not (x == 0 and np.signbit(x)) else None for x in numbers.flat]
    return tuple(None if x is None else float(x) for x in own) if set(own) != {None} else None


def folded(
    groups: Sequence[Group], known: Mapping[str, float], slots: Collection[str] = ()
) -> list[Group]:
    """Return the instructions without those that known numbers make trivial.

    Args:
        groups: the instructions, each value before its uses but for phi nodes.
        known: numbers among `FOLDED`, by the names of the values that are loaded.
        slots: the names of stack slots.
    """
    varying: set[str] = set() if len(groups) < MAX_FOLLOWED else set(slots)
    while True:
        folding = _Folding(known, slots, varying)
        kept = [group for group in map(folding.simplified, groups) if group]
        if folding.varying == varying:
            break
        # What was taken for the only number of a slot was not: begin anew without it.
        varying = folding.varying
    # Phi nodes use values that come after them.
    return [tuple(map(folding.resolved, group)) for group in kept]


class _Folding:
    """The values and slots that are known so far."""

    def __init__(
        self, known: Mapping[str, float], slots: Collection[str], varying: Collection[str]
    ) -> None:
        self.numbers = dict(known)
        """The numbers that are known, in all lanes, by the names of the values."""
        self.same: dict[str, str] = {}
        """For each value that equals another one the name of that one."""
        self.slots = slots
        """The names of stack slots."""
        self.varying = set(varying)
        """The slots that hold several numbers, or numbers that are not known."""
        self.held: dict[str, float] = {}
        """The number that each of the others holds, if it has been stored."""

    def simplified(self, group: Group) -> Group:
        """Return a group, simplified; nothing if its result is known or is another value's."""
        last = group[-1]
        if slot := next((x for x in group[0].operands if x in self.slots), None):
            return self._at_slot(slot, group)
        if len(group) > 1 or last.effect is not Effect.NONE or last.type.scalar not in _CODES:
            return group
        if last.result in self.numbers:
            return ()
        new = self._of(self.resolved(last))
        if isinstance(new, Instruction):
            return (new,)
        if isinstance(new, str):
            self.same[last.result] = new
        else:
            self.numbers[last.result] = new
        return ()

    def _at_slot(self, slot: str, group: Group) -> Group:
        """Return a group that uses a slot; nothing if the slot holds one number always."""
        last = group[-1]
        number = None
        if last.operation == "store" and last.types[0] and last.types[0].scalar in _CODES:
            number = _number(self.resolved(last).operands[0])
            number = None if self.held.get(slot, number) != number else number
        elif last.operation == "load" and last.type.scalar in _CODES:
            number = self.held.get(slot)
        if number is None or slot in self.varying or group[0].operands[-1] != "0":
            self.varying.add(slot)
            return group
        self.held[slot] = number
        if last.operation == "load":
            self.numbers[last.result] = number
        return ()

    def resolved(self, instruction: Instruction) -> Instruction:
        """Return an instruction with what is known in the place of its operands."""
        if not any(x in self.same or x in self.numbers for x in instruction.operands):
            return instruction
        return instruction._replace(operands=tuple(map(self._operand, *_typed(instruction))))

    def _operand(self, name: str, kind: Type | None) -> str:
        """Return the text of an operand of a type."""
        name = self.same.get(name, name)
        if name not in self.numbers or kind is None:
            return name
        return _text(self.numbers[name], kind)

    def _of(self, given: Instruction) -> Instruction | str | float:
        """Return the number that an instruction gives, the value that it equals, or itself."""
        operation, kind = given.operation, given.type
        if operation == "insertelement" and given.operands[0] == "poison":
            number = _number(given.operands[1])
            return given if number is None else number
        if operation == "shufflevector":
            # A broadcast, of a number that is known if the lane before it is.
            number = _number(given.operands[0])
            return given if number is None else number
        function, *values = given.operands if operation == "call" else (operation, *given.operands)
        if function == "fneg" and (number := _number(values[0])) is not None:
            return -number + 0.0
        if function == "fmul":
            return _product(given, values)
        if function in ("fadd", "fsub"):
            return _sum(given, function, values)
        if function.startswith("@llvm.fma."):
            product, added = _product(given, values[:2]), values[2]
            if isinstance(product, float):
                return _sum(given, "fadd", [_text(product, kind), added])
            if isinstance(product, str):
                return _sum(given, "fadd", [product, added])
            if product.operation == "fneg":
                return _sum(given, "fsub", [added, *product.operands])
            if _number(added) == 0:
                return _binary(given, "fmul", values[:2])
        return given


def _product(given: Instruction, values: Sequence[str]) -> Instruction | str | float:
    """Return the product of two values in the place of an instruction, or that if it stays."""
    a, b = map(_number, values)
    if a is not None and b is not None:
        product = _exact(a * b, Fraction(a) * Fraction(b), given.type)
        if product is not None:
            return product
    for x, other in ((a, values[1]), (b, values[0])):
        if x == 0:
            return 0.0
        if x == 1:
            return other
        if x == -1:
            return _negative(given, other)
    return given


def _sum(given: Instruction, operation: str, values: Sequence[str]) -> Instruction | str | float:
    """Return the sum or the difference of two values in the place of an instruction."""
    a, b = map(_number, values)
    sign = 1 if operation == "fadd" else -1
    if a is not None and b is not None:
        total = _exact(a + sign * b, Fraction(a) + sign * Fraction(b), given.type)
        if total is not None:
            return total
    if sign < 0 and values[0] == values[1]:
        return 0.0
    if b == 0:
        return values[0]
    if a == 0:
        return values[1] if sign > 0 else _negative(given, values[1])
    return _binary(given, operation, values)


def _negative(given: Instruction, x: str) -> Instruction:
    """Return the opposite of a value in the place of an instruction."""
    return given._replace(operation="fneg", operands=(x,), types=(given.type,))


def _binary(given: Instruction, operation: str, operands: Sequence[str]) -> Instruction:
    """Return an operation on two values in the place of an instruction."""
    types = (given.type, None)
    return given._replace(operation=operation, operands=tuple(operands), types=types)


def _typed(instruction: Instruction) -> tuple[tuple[str, ...], tuple[Type | None, ...]]:
    """Return the operands of an instruction, and the type of each, also if it is not written."""
    operands, types = instruction.operands, instruction.types
    if instruction.operation == "phi":
        return operands, (instruction.type,) * len(operands)
    if instruction.operation == "call" or len(types) != len(operands):
        return operands, (*types, *(None,) * (len(operands) - len(types)))
    # The type of equal operands is written once.
    first = types[0] if types else None
    return operands, tuple(first if t is None and i else t for i, t in enumerate(types))


def _text(number: float, kind: Type) -> str:
    """Return a number as LLVM writes it, in all lanes of a vector."""
    text = literal(number, _CODES[kind.scalar])
    return f"splat ({kind.scalar} {text})" if kind.lanes else text


def _number(text: str) -> float | None:
    """Return the number that an operand is, or None if it is a value or not finite."""
    bits = text.rpartition(" ")[2].rstrip(")")
    if not bits.startswith("0x"):
        return None
    number: float = struct.unpack("<d", struct.pack("<Q", int(bits, 16)))[0]
    return number if math.isfinite(number) else None


def _exact(number: float, exact: Fraction, kind: Type) -> float | None:
    """Return a number if it is the exact result and has the precision of a type."""
    if kind.scalar == "float":
        try:
            number = struct.unpack("<f", struct.pack("<f", number))[0]
        except OverflowError:
            return None
    return number + 0.0 if Fraction(number) == exact else None
