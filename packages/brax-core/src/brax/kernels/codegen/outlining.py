"""Outlining: a long kernel becomes several functions of its module.

LLVM's time for a function grows faster than the function. So parts of a kernel that control enters
at their begin and leaves at their end become functions of their own, which work on the kernel's
memory. What one part computes and another reads goes through this memory too, as it mostly would in
a single function, which has many more values than a processor has registers.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from brax.kernels.codegen.emitter import LLVM_TYPE_BYTES

PART_LINES = 1500
"""Number of lines from which on a part is long enough for a function."""

MIN_PART_LINES = 200
"""Number of lines below which a part stays where it is."""

ARGUMENTS = {"%stack": "ptr", "%in": "ptr", "%out": "ptr", "%size": "i64", "%first": "i64"}
"""Names and types of what each part is called with."""

_NAME = re.compile(r"%[\w.]+")
_DEFINITION = re.compile(r"(%[\w.]+) = (.+)", re.DOTALL)
_LABEL = re.compile(r"([\w.]+):")
_TARGET = re.compile(r"label %([\w.]+)")
_PHI_CASE = re.compile(r"\[ ([^\[\]]+), %([\w.]+) \]")
_TYPE = r"<\d+ x \w+>|\w+"


@dataclass
class _Part:
    """A part of the kernel that becomes a function; number 0 is the kernel itself."""

    number: int
    items: "list[int | _Part]" = field(default_factory=list)
    """Lines, by their places, and parts that are called, in order."""

    @property
    def symbol(self) -> str:
        """The name of the function."""
        return f"@part{self.number}"

    def lines(self) -> Iterator[tuple[int, int]]:
        """Yield the places of all lines, each with the number of the function that it is in."""
        for item in self.items:
            if isinstance(item, _Part):
                yield from item.lines()
            else:
                yield item, self.number


class Outlined(NamedTuple):
    """A kernel that is split."""

    before: list[str]
    """Lines before the loop over the batch."""
    body: list[str]
    """Lines of its body."""
    functions: list[str]
    """The texts of the functions that the body calls."""
    used: int
    """Bytes of the memory that are in use."""


def outlined(
    before: Sequence[str], body: Sequence[str], block: str, places: Mapping[str, int], used: int
) -> Outlined:
    """Split the body of the loop over the batch.

    What the lines read besides their own values are `ARGUMENTS` and addresses of the memory.

    Args:
        before: lines before the loop.
        body: lines of its body.
        block: label of the basic block that the body begins in.
        places: the offsets of addresses of the memory, in bytes, by their names.
        used: bytes of the memory that are in use.
    """
    lines = [*before, *body]
    first = _Part(0, list(range(len(before))))
    kernel = _Part(0, _Split(lines).items(len(before), len(lines)))
    homes = dict([*first.lines(), *kernel.lines()])
    types, where = {}, {}
    for i, line in enumerate(lines):
        if found := _DEFINITION.match(line):
            types[found[1]], where[found[1]] = _type_of(found[2]), homes[i]
    crossing = dict.fromkeys(
        name
        for i, line in enumerate(lines)
        for name in _NAME.findall(line)
        if where.get(name, homes[i]) != homes[i] and name not in ARGUMENTS
    )
    slots = {}
    for name in crossing:
        size, alignment = _layout(types[name])
        slots[name] = used = -(-used // alignment) * alignment
        used += size
    values = _Values(places, types, where, slots)
    unsplit, _ = _texts(first, "entry", lines, values)
    rest, functions = _texts(kernel, block, lines, values)
    return Outlined(unsplit, rest, functions, used)


class _Split:
    """The parts of a kernel."""

    def __init__(self, lines: Sequence[str]) -> None:
        """Find the parts."""
        self._lines, self._count = lines, 0
        # For each label, the first and the last line that name it.
        self._span: dict[str, list[int]] = {}
        for i, line in enumerate(lines):
            for label in self._labels(line):
                self._span.setdefault(label, [i, i])[1] = i

    def _labels(self, line: str) -> list[str]:
        """Return the labels that a line names: defines, jumps to, or has the values of a phi of."""
        if found := _LABEL.fullmatch(line):
            return [found[1]]
        return [label for _, label in _PHI_CASE.findall(line)] or _TARGET.findall(line)

    def _closed(self, begin: int, end: int) -> int | None:
        """Return where the shortest piece ends that begins at a line and that no jump leaves.

        Return None if there is none before `end`.
        """
        at, stop = begin, begin + 1
        while at < stop:
            for label in self._labels(self._lines[at]):
                first, last = self._span[label]
                if first < begin or last >= end:
                    return None
                stop = max(stop, last + 1)
            at += 1
        return stop

    def items(self, begin: int, end: int) -> "list[int | _Part]":
        """Return the items of the lines in a range, with long pieces as parts."""
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
            stop = None if _is_phi(self._lines[at]) else self._closed(at, end)
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
    types: Mapping[str, str]
    """Types of the values."""
    homes: Mapping[str, int]
    """Numbers of the functions that compute them."""
    slots: Mapping[str, int]
    """Offsets in the memory of the values that go from one function to another."""

    def is_foreign(self, name: str, function: int) -> bool:
        """Return whether a function has to load a value that another one computes."""
        return name in self.slots and self.homes[name] != function


class _Writer:
    """Writes the lines of one function."""

    def __init__(self, number: int, block: str, values: _Values) -> None:
        """Begin the function of a number in a basic block."""
        self.lines: list[str] = []
        self._number, self._block, self._values = number, block, values
        # The values that this block has loaded already, and the phi nodes that are to be stored.
        self._here: set[str] = set()
        self._late: list[str] = []

    def phi(self, line: str) -> None:
        """Write a phi node, whose operands have the names that they have at the ends of blocks."""
        self.lines.append(_PHI_CASE.sub(self._at_end, line))
        name = line.partition(" = ")[0]
        # Stores come after all phi nodes of a block.
        if name in self._values.slots:
            self._late.append(name)

    def call(self, symbol: str) -> None:
        """Write the call of another function."""
        self._store_late()
        given = ", ".join(f"{kind} {name}" for name, kind in ARGUMENTS.items())
        self.lines.append(f"call void {symbol}({given})")

    def line(self, line: str, ends: Mapping[str, Sequence[str]]) -> None:
        """Write a line, after loading what it reads.

        Args:
            line: the line.
            ends: values that have to be loaded at the ends of blocks, by label.
        """
        self._store_late()
        if label := _LABEL.fullmatch(line):
            self.lines.append(line)
            self._block = label[1]
            self._here.clear()
            return
        if line.startswith("br "):
            for name in ends.get(self._block, ()):
                self._fetch(name)
        jumps = {f"%{label}" for label in _TARGET.findall(line)}
        found = _DEFINITION.match(line)
        own = found[1] if found else ""
        names = {
            name: self._fetch(name) for name in _NAME.findall(line) if name not in jumps | {own}
        }
        self.lines.append(_NAME.sub(lambda m: names.get(m[0], m[0]), line))
        self._store(own)

    def _fetch(self, name: str) -> str:
        """Return the name that a value has in this block, after loading it from memory."""
        values, local = self._values, f"{name}.{self._block}"
        if name in self._here:
            return local
        if name in values.places:
            self.lines.append(f"{local} = {_address(values.places[name])}")
        elif values.is_foreign(name, self._number):
            self.lines.extend(_loaded(local, values.types[name], values.slots[name]))
        else:
            return name
        self._here.add(name)
        return local

    def _at_end(self, case: re.Match[str]) -> str:
        """Return a case of a phi node, with the name that its value has at the end of a block."""
        name, label = case.groups()
        if self._values.is_foreign(name, self._number) or name in self._values.places:
            return f"[ {name}.{label}, %{label} ]"
        return case[0]

    def _store(self, name: str) -> None:
        """Store a value if other functions read it."""
        values = self._values
        if name in values.slots:
            self.lines.extend(_stored(name, values.types[name], values.slots[name]))

    def _store_late(self) -> None:
        """Store the phi nodes that other functions read."""
        for name in self._late:
            self._store(name)
        self._late.clear()


def _texts(
    part: _Part, block: str, lines: Sequence[str], values: _Values
) -> tuple[list[str], list[str]]:
    """Return the lines of a function that begin in a block, and the texts of those it calls."""
    # Operands of phi nodes have to be there at the ends of the blocks that they come from.
    ends: dict[str, list[str]] = {}
    for item in part.items:
        if isinstance(item, int) and _is_phi(lines[item]):
            for name, label in _PHI_CASE.findall(lines[item]):
                ends.setdefault(label, []).append(name)
    writer, functions = _Writer(part.number, block, values), list[str]()
    for item in part.items:
        if isinstance(item, _Part):
            writer.call(item.symbol)
            body, called = _texts(item, "entry", lines, values)
            operands = ", ".join(f"{kind} {name}" for name, kind in ARGUMENTS.items())
            head = f"define internal void {item.symbol}({operands}) {{"
            functions += [*called, "\n".join([head, "entry:", *body, "ret void", "}"])]
        elif _is_phi(lines[item]):
            writer.phi(lines[item])
        else:
            writer.line(lines[item], ends)
    return writer.lines, functions


def _is_phi(line: str) -> bool:
    """Return whether a line is a phi node."""
    return " = phi " in line


def _address(place: int) -> str:
    """Return an instruction for an address in the memory."""
    return f"getelementptr i8, ptr %stack, i64 {place}"


def _stored(name: str, kind: str, place: int) -> list[str]:
    """Return instructions that store a value in memory."""
    memory, x = _memory_type(kind), name
    out = [f"{name}.to = {_address(place)}"]
    if memory != kind:
        x = f"{name}.bits"
        out.append(f"{x} = sext {kind} {name} to {memory}")
    return [*out, f"store {memory} {x}, ptr {name}.to, align {_layout(kind)[1]}"]


def _loaded(local: str, kind: str, place: int) -> list[str]:
    """Return instructions that load a value from memory."""
    memory, x = _memory_type(kind), local
    out = [f"{local}.from = {_address(place)}"]
    if memory != kind:
        x = f"{local}.bits"
    out.append(f"{x} = load {memory}, ptr {local}.from, align {_layout(kind)[1]}")
    if memory != kind:
        out.append(f"{local} = icmp slt {memory} {x}, zeroinitializer")
    return out


def _memory_type(kind: str) -> str:
    """Return the type that a value has in memory."""
    # Truth values of lanes are stored as integers, 0 or -1: without masks in registers of their
    # own, a processor takes many instructions to pack them.
    return re.sub(r"^(<\d+ x) i1>$", r"\1 i32>", kind)


_BYTES = LLVM_TYPE_BYTES | {"i1": 1, "ptr": 8}
"""Bytes that a scalar takes in memory."""


def _layout(kind: str) -> tuple[int, int]:
    """Return the bytes that a value takes in memory, and the alignment of its address."""
    # A structure, the result of a function, has equal parts.
    if kind.startswith("{"):
        parts = re.findall(_TYPE, kind)
        size = _layout(parts[0])[0]
        return len(parts) * size, size
    wide = re.fullmatch(r"<(\d+) x (\w+)>", _memory_type(kind))
    size = int(wide[1]) * _BYTES[wide[2]] if wide else _BYTES[kind]
    return size, size


def bytes_of(kind: str) -> int:
    """Return the bytes that a number of a type takes in memory, or one for each lane."""
    return _layout(kind)[0]


def _type_of(text: str) -> str:
    """Return the type of an instruction's result, which LLVM's text says in several ways."""
    operation, rest = text.split(" ", 1)
    if operation in _CONVERSIONS:
        return rest.rsplit(" to ", 1)[1]
    if operation == "getelementptr":
        wide = re.search(r", <(\d+) x i\d+> [^,]+$", rest)
        return f"<{wide[1]} x ptr>" if wide else "ptr"
    if operation in ("icmp", "fcmp"):
        wide = re.match(r"\w+ <(\d+) x", rest)
        return f"<{wide[1]} x i1>" if wide else "i1"
    # Where the type stands after the operation: before the first operand, but for these.
    pattern = {
        "select": rf"(?:{_TYPE}) [^,]+, ({_TYPE}) ",
        "extractelement": r"<\d+ x (\w+)>",
        "extractvalue": rf"\{{({_TYPE})",
    }
    found = re.match(pattern.get(operation, rf"(\{{.*?\}}|{_TYPE})"), rest)
    assert found, text
    return found[1]


_CONVERSIONS = {
    *("sext", "zext", "trunc", "fptosi", "fptoui", "sitofp", "uitofp", "fpext", "fptrunc"),
    *("bitcast", "ptrtoint", "inttoptr"),
}
