"""Outlining: a long kernel becomes several functions of its module.

LLVM's time for a function grows faster than the function. So parts of a kernel that control enters
at their begin and leaves at their end become functions of their own, which work on the kernel's
memory. What one part computes and another reads goes through this memory too, as it mostly would in
a single function, which has many more values than a processor has registers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from brax.kernels.codegen import ir
from brax.kernels.codegen.emitter import Routine
from brax.kernels.codegen.ir import Instruction, Type
from brax.kernels.codegen.stack import aligned

PART_LINES = 1500
"""Number of instructions from which on a part is long enough for a function."""

MIN_PART_LINES = 200
"""Number of instructions below which a part stays where it is."""

ARGUMENTS = {"%stack": ir.PTR, "%in": ir.PTR, "%out": ir.PTR, "%first": ir.I64}
"""Names and types of what each part is called with."""


@dataclass
class _Part:
    """A part of the kernel that becomes a function; number 0 is the kernel itself."""

    number: int
    items: "list[int | _Part]" = field(default_factory=list)
    """Instructions, by their places, and parts that are called, in order."""

    @property
    def symbol(self) -> str:
        """The name of the function."""
        return f"@part{self.number}"

    def places(self) -> Iterator[tuple[int, int]]:
        """Yield the places of all instructions, each with the number of its function."""
        for item in self.items:
            if isinstance(item, _Part):
                yield from item.places()
            else:
                yield item, self.number


class Outlined(NamedTuple):
    """A kernel that is split."""

    before: list[Instruction]
    """Instructions before the loop over the batch."""
    body: list[Instruction]
    """Instructions of its body."""
    functions: dict[str, Routine]
    """The functions that the body calls, by their names."""
    used: int
    """Bytes of the memory that are in use."""


def outlined(
    before: Sequence[Instruction],
    body: Sequence[Instruction],
    block: str,
    places: Mapping[str, int],
    used: int,
) -> Outlined:
    """Split the body of the loop over the batch.

    What the instructions read besides their own values are `ARGUMENTS` and addresses of the memory.

    Args:
        before: instructions before the loop.
        body: instructions of its body.
        block: label of the basic block that the body begins in.
        places: the offsets of addresses of the memory, in bytes, by their names.
        used: bytes of the memory that are in use.
    """
    whole = [*before, *body]
    first = _Part(0, list(range(len(before))))
    kernel = _Part(0, _Split(whole).items(len(before), len(whole)))
    homes = dict([*first.places(), *kernel.places()])
    types = {i.result: i.type for i in whole if i.result}
    where = {i.result: homes[at] for at, i in enumerate(whole) if i.result}
    crossing = dict.fromkeys(
        x
        for at, i in enumerate(whole)
        for x in i.operands
        if where.get(x, homes[at]) != homes[at] and x not in ARGUMENTS
    )
    slots = {}
    for name in crossing:
        kind = types[name]
        alignment = _alignment(kind)
        slots[name] = used = aligned(used, alignment)
        used += memory_type(kind).bytes
    values = _Values(places, types, where, slots)
    unsplit, _ = _texts(first, "entry", whole, values)
    rest, functions = _texts(kernel, block, whole, values)
    return Outlined(unsplit, rest, functions, used)


class _Split:
    """The parts of a kernel."""

    def __init__(self, whole: Sequence[Instruction]) -> None:
        """Find the parts."""
        self._whole, self._count = whole, 0
        # For each label, the first and the last instruction that name it: define it, jump to it, or
        # have the values of a phi node of it.
        self._span: dict[str, list[int]] = {}
        for at, instruction in enumerate(whole):
            for label in instruction.labels:
                self._span.setdefault(label, [at, at])[1] = at

    def _closed(self, begin: int, end: int) -> int | None:
        """Return where the shortest piece ends that begins at a place and that no jump leaves.

        Return None if there is none before `end`.
        """
        at, stop = begin, begin + 1
        while at < stop:
            for label in self._whole[at].labels:
                first, last = self._span[label]
                if first < begin or last >= end:
                    return None
                stop = max(stop, last + 1)
            at += 1
        return stop

    def items(self, begin: int, end: int) -> "list[int | _Part]":
        """Return the items of the instructions in a range, with long pieces as parts."""
        out: list[int | _Part] = []
        mine: list[int | _Part] = []

        def flush(least: int) -> None:
            if len(mine) < least:
                out.extend(mine)
            else:
                self._count += 1
                out.append(_Part(self._count, list(mine)))
            mine.clear()

        at = begin
        while at < end:
            stop = None if _is_phi(self._whole[at]) else self._closed(at, end)
            if stop is None:
                # A label that is jumped to from elsewhere, such a jump, or a phi node, which stays
                # with its label.
                flush(MIN_PART_LINES)
                out.append(at)
                at += 1
                continue
            long = stop - at > PART_LINES
            mine += [at, *self.items(at + 1, stop)] if long else range(at, stop)
            at = stop
            if len(mine) >= PART_LINES:
                flush(MIN_PART_LINES)
        flush(MIN_PART_LINES)
        return out


class _Values(NamedTuple):
    """These facts about the values of a kernel decide what its parts are given."""

    places: Mapping[str, int]
    """Offsets of addresses of the memory."""
    types: Mapping[str, Type]
    """Types of the values."""
    homes: Mapping[str, int]
    """Numbers of the functions that compute them."""
    slots: Mapping[str, int]
    """Offsets in the memory of the values that go from one function to another."""

    def is_foreign(self, name: str, function: int) -> bool:
        """Return whether a function has to load a value that another one computes."""
        return name in self.slots and self.homes[name] != function


class _Writer:
    """Writes the instructions of one function."""

    def __init__(self, number: int, block: str, values: _Values) -> None:
        """Begin the function of a number in a basic block."""
        self.body: list[Instruction] = []
        self._number, self._block, self._values = number, block, values
        # The values that this block has loaded already, and the phi nodes that are to be stored.
        self._here: set[str] = set()
        self._late: list[str] = []

    def phi(self, node: Instruction) -> None:
        """Write a phi node, whose operands have the names that they have at the ends of blocks."""
        cases = zip(node.operands, node.labels, strict=True)
        self.body.append(node._replace(operands=tuple(self._at_end(*case) for case in cases)))
        # Stores come after all phi nodes of a block.
        if node.result in self._values.slots:
            self._late.append(node.result)

    def call(self, symbol: str) -> None:
        """Write the call of another function."""
        self._store_late()
        types = None, *ARGUMENTS.values()
        self.body.append(Instruction("call", (symbol, *ARGUMENTS), types))

    def write(self, instruction: Instruction, ends: Mapping[str, Sequence[str]]) -> None:
        """Write an instruction, after loading what it reads.

        Args:
            instruction: the instruction.
            ends: values that have to be loaded at the ends of blocks, by label.
        """
        self._store_late()
        if instruction.operation == "label":
            self.body.append(instruction)
            (self._block,) = instruction.labels
            self._here.clear()
            return
        if instruction.operation == "br":
            for name in ends.get(self._block, ()):
                self._fetch(name)
        operands = tuple(self._fetch(x) for x in instruction.operands)
        self.body.append(instruction._replace(operands=operands))
        self._store(instruction.result)

    def _fetch(self, name: str) -> str:
        """Return the name that a value has in this block, after loading it from memory."""
        values, local = self._values, f"{name}.{self._block}"
        if name in self._here:
            return local
        if name in values.places:
            self.body.append(_address(local, values.places[name]))
        elif values.is_foreign(name, self._number):
            self.body.extend(_loaded(local, values.types[name], values.slots[name]))
        else:
            return name
        self._here.add(name)
        return local

    def _at_end(self, name: str, label: str) -> str:
        """Return the name that a value has at the end of a block."""
        if self._values.is_foreign(name, self._number) or name in self._values.places:
            return f"{name}.{label}"
        return name

    def _store(self, name: str) -> None:
        """Store a value if other functions read it."""
        values = self._values
        if name in values.slots:
            self.body.extend(_stored(name, values.types[name], values.slots[name]))

    def _store_late(self) -> None:
        """Store the phi nodes that other functions read."""
        for name in self._late:
            self._store(name)
        self._late.clear()


def _texts(
    part: _Part, block: str, whole: Sequence[Instruction], values: _Values
) -> tuple[list[Instruction], dict[str, Routine]]:
    """Return the instructions of a function that begin in a block, and the functions it calls."""
    # Operands of phi nodes have to be there at the ends of the blocks that they come from.
    ends: dict[str, list[str]] = {}
    for item in part.items:
        if isinstance(item, int) and _is_phi(whole[item]):
            for name, label in zip(whole[item].operands, whole[item].labels, strict=True):
                ends.setdefault(label, []).append(name)
    writer, functions = _Writer(part.number, block, values), dict[str, Routine]()
    for item in part.items:
        if isinstance(item, _Part):
            writer.call(item.symbol)
            body, called = _texts(item, "entry", whole, values)
            body = [ir.label("entry"), *body, ir.RETURN]
            functions |= called | {item.symbol: Routine(tuple(ARGUMENTS.items()), ir.VOID, body)}
        elif _is_phi(whole[item]):
            writer.phi(whole[item])
        else:
            writer.write(whole[item], ends)
    return writer.body, functions


def _is_phi(instruction: Instruction) -> bool:
    """Return whether an instruction is a phi node."""
    return instruction.operation == "phi"


def _address(result: str, place: int) -> Instruction:
    """Return an instruction for an address in the memory."""
    return ir.address(result, ir.I8, "%stack", str(place), ir.I64)


def _stored(name: str, kind: Type, place: int) -> list[Instruction]:
    """Return instructions that store a value in memory."""
    memory, x = memory_type(kind), name
    out = [_address(f"{name}.to", place)]
    if memory != kind:
        x = f"{name}.bits"
        out.append(Instruction("sext", (name,), (kind,), memory, x))
    return [*out, ir.store(x, memory, f"{name}.to", _alignment(kind))]


def _loaded(local: str, kind: Type, place: int) -> list[Instruction]:
    """Return instructions that load a value from memory."""
    memory, x = memory_type(kind), local
    out = [_address(f"{local}.from", place)]
    if memory != kind:
        x = f"{local}.bits"
    out.append(ir.load(x, memory, f"{local}.from", _alignment(kind)))
    if memory != kind:
        types = memory, None
        out.append(Instruction("icmp slt", (x, "zeroinitializer"), types, kind, local))
    return out


def memory_type(kind: Type) -> Type:
    """Return the type that a value has in memory."""
    # Truth values of lanes are stored as integers, 0 or -1: without masks in registers of their
    # own, a processor takes many instructions to pack them.
    return kind._replace(scalar="i32") if kind.lanes and kind.scalar == "i1" else kind


def _alignment(kind: Type) -> int:
    """Return the alignment of a value in memory, in bytes: of a structure, that of its members."""
    return memory_type(kind)._replace(members=0).bytes
