"""Instructions as records: rules emit them, passes put them in order, `text_of` prints them.

The passes ask a record for its operands, its result and its effect, and never read LLVM's text.
"""

import enum
import functools
from typing import NamedTuple


class Type(NamedTuple):
    """A type of LLVM."""

    scalar: str
    """The scalar type, such as `float`."""
    lanes: int = 0
    """The number of lanes of a vector; 0 for a scalar."""
    members: int = 0
    """The number of equal members of a structure; 0 if it is none."""

    def __str__(self) -> str:
        """Return the type as LLVM writes it."""
        return _type_text(self)

    @property
    def bytes(self) -> int:
        """The size in memory, in bytes."""
        return SCALAR_BYTES[self.scalar] * max(self.lanes, 1) * max(self.members, 1)


@functools.cache
def _type_text(kind: Type) -> str:
    """Return a type as LLVM writes it."""
    one = f"<{kind.lanes} x {kind.scalar}>" if kind.lanes else kind.scalar
    return f"{{{', '.join([one] * kind.members)}}}" if kind.members else one


SCALAR_BYTES = {
    **{"float": 4, "double": 8, "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "ptr": 8}
}
"""The size of each scalar type in memory, in bytes."""

VOID, PTR = Type("void"), Type("ptr")
I1, I8, I32, I64 = map(Type, ("i1", "i8", "i32", "i64"))


class Effect(enum.Enum):
    """The effect of an instruction besides its result."""

    NONE = "none"
    READS = "reads"
    """It reads the buffers among its operands, and those of its group."""
    WRITES = "writes"
    """It writes to memory."""
    READS_AND_WRITES = "reads and writes"
    """It may write to each of the buffers, and reads them first."""
    CONTROL = "control"
    """It begins or ends a basic block, and nothing moves across it."""


class Instruction(NamedTuple):
    """An instruction, or the label of a basic block."""

    operation: str
    """LLVM's name with its predicate, such as `fadd` or `icmp slt`; `label` for a label."""
    operands: tuple[str, ...] = ()
    """Names of values and literals. The first one of a call is the function, and of
    `getelementptr` the type of the elements."""
    types: tuple[Type | None, ...] = ()
    """The type of each operand, None where LLVM does not write it."""
    type: Type = VOID
    """The type of the result."""
    result: str = ""
    """The name of the result; empty if there is none."""
    effect: Effect = Effect.NONE
    labels: tuple[str, ...] = ()
    """The targets of a jump, the blocks that the operands of a phi node come from, or the label."""
    alignment: int = 0
    """The alignment of the address, in bytes, where it is not that of the type."""


Group = tuple[Instruction, ...]
"""Instructions that stay together when the schedule changes their order.

Result and effect of the last one are those of the group. Those before it compute its address.
"""

CONVERSIONS = frozenset(
    ("sext", "zext", "trunc", "fptosi", "fptoui", "sitofp", "uitofp", "fpext", "fptrunc")
) | {"bitcast", "ptrtoint", "inttoptr"}
"""The operations that change the type of their operand."""


def text_of(instruction: Instruction) -> str:
    """Return an instruction as LLVM writes it."""
    operation, operands, types, kind, result, _, labels, alignment = instruction
    if operation == "label":
        return f"{labels[0]}:"
    head = f"{result} = {operation}" if result else operation
    if operation == "phi":
        cases = zip(operands, labels, strict=True)
        return f"{head} {kind} {', '.join(f'[ {x}, %{label} ]' for x, label in cases)}"
    written = [f"{t} {x}" if t else x for t, x in zip(types, operands, strict=True)]
    if operation == "call":
        return f"{head} {kind} {written[0]}({', '.join(written[1:])})"
    if operation in CONVERSIONS:
        return f"{head} {written[0]} to {kind}"
    if operation == "load":
        written.insert(0, str(kind))
    written += [f"label %{label}" for label in labels]
    if alignment:
        written.append(f"align {alignment}")
    return f"{head} {', '.join(written)}"


def address(result: str, element: Type, base: str, index: str, size: Type = I32) -> Instruction:
    """Return the computation of an element's address, or of one for each lane of the index."""
    return Instruction(
        "getelementptr",
        (str(element), base, index),
        (None, PTR, size),
        Type("ptr", size.lanes),
        result,
    )


def load(
    result: str, kind: Type, place: str, alignment: int = 0, effect: Effect = Effect.READS
) -> Instruction:
    """Return a load from an address."""
    return Instruction("load", (place,), (PTR,), kind, result, effect, alignment=alignment)


def store(x: str, kind: Type, place: str, alignment: int = 0) -> Instruction:
    """Return a store of a value at an address."""
    effect = Effect.WRITES
    return Instruction("store", (x, place), (kind, PTR), effect=effect, alignment=alignment)


_FIRST_LANE = "poison", "zeroinitializer"
"""The operands of a `shufflevector` that puts lane 0 into all lanes."""


def broadcast(number: str, kind: Type, name: str) -> tuple[Instruction, Instruction]:
    """Return LLVM's idiom for a broadcast, which its back end turns into one instruction.

    Args:
        number: the number for all lanes.
        kind: the type of the vector.
        name: the vector's name.
    """
    first, types = f"{name}.first", (kind, kind, Type("i32", kind.lanes))
    one = ("poison", number, "0"), (kind, Type(kind.scalar), I32)
    return (
        Instruction("insertelement", *one, kind, first),
        Instruction("shufflevector", (first, *_FIRST_LANE), types, kind, name),
    )


def is_broadcast(instruction: Instruction) -> bool:
    """Return whether an instruction is the second one of a broadcast."""
    return instruction.operation == "shufflevector" and instruction.operands[1:] == _FIRST_LANE


def phi(result: str, kind: Type, *cases: tuple[str, str]) -> Instruction:
    """Return a phi node of values, each with the label of the block that it comes from."""
    operands, labels = zip(*cases, strict=True)
    return Instruction("phi", operands, (), kind, result, Effect.CONTROL, labels)


def label(name: str) -> Instruction:
    """Return the label that begins a basic block."""
    return Instruction("label", effect=Effect.CONTROL, labels=(name,))


def jump(target: str) -> Instruction:
    """Return a jump to a label."""
    return Instruction("br", effect=Effect.CONTROL, labels=(target,))


def branch(condition: str, yes: str, no: str) -> Instruction:
    """Return a jump to one of two labels."""
    return Instruction("br", (condition,), (I1,), effect=Effect.CONTROL, labels=(yes, no))


RETURN = Instruction("ret", ("void",), (None,), effect=Effect.CONTROL)
"""The end of a function without a result."""
