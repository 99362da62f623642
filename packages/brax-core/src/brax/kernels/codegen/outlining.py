"""Outlining: a long kernel becomes several functions of its module.

LLVM's time for a function grows faster than the function. So parts of a kernel that control enters
at their begin and leaves at their end become functions of their own, which work on the kernel's
memory. What one part computes and another reads goes through this memory too, as it mostly would in
a single function, which has many more values than a processor has registers.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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
    texts = _Texts(lines, places, types, where, slots)
    return Outlined(texts.of(first, "entry"), texts.of(kernel, block), texts.functions, used)


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
            stop = None if " = phi " in self._lines[at] else self._closed(at, end)
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


class _Texts:
    """The texts of the functions."""

    def __init__(
        self,
        lines: Sequence[str],
        places: Mapping[str, int],
        types: Mapping[str, str],
        where: Mapping[str, int],
        slots: Mapping[str, int],
    ) -> None:
        """Keep what is known about the values: their types, functions and places in memory."""
        self._lines, self._places, self._types = lines, places, types
        self._where, self._slots = where, slots
        self.functions: list[str] = []

    def of(self, part: _Part, block: str = "entry") -> list[str]:
        """Return the lines of a function, which begin in a block, and add those that it calls."""
        own = [item for item in part.items if isinstance(item, int)]
        # Operands of phi nodes have to be there at the ends of the blocks that they come from.
        ends: dict[str, list[str]] = {}
        for i in own:
            if " = phi " in self._lines[i]:
                for name, label in _PHI_CASE.findall(self._lines[i]):
                    ends.setdefault(label, []).append(name)
        out: list[str] = []
        here, late = set[str](), list[str]()

        def fetch(name: str) -> str:
            """Return the name of a value in this block, after loading it from memory."""
            if name in self._places:
                local = f"{name}.{block}"
                if name not in here:
                    out.append(f"{local} = {_address(self._places[name])}")
            elif name in self._slots and self._where[name] != part.number:
                local = f"{name}.{block}"
                if name not in here:
                    out.extend(_loaded(local, self._types[name], self._slots[name]))
            else:
                return name
            here.add(name)
            return local

        for item in part.items:
            if not (isinstance(item, int) and " = phi " in self._lines[item]):
                for name in late:
                    out.extend(_stored(name, self._types[name], self._slots[name]))
                late.clear()
            if isinstance(item, _Part):
                self._add(item)
                given = ", ".join(f"{kind} {name}" for name, kind in ARGUMENTS.items())
                out.append(f"call void {item.symbol}({given})")
                continue
            line = self._lines[item]
            found = _DEFINITION.match(line)
            if " = phi " in line:
                out.append(_PHI_CASE.sub(functools.partial(self._at_end, part), line))
                if found and found[1] in self._slots:
                    late.append(found[1])
                continue
            if label := _LABEL.fullmatch(line):
                out.append(line)
                block = label[1]
                here.clear()
                continue
            if line.startswith("br "):
                for name in ends.get(block, ()):
                    fetch(name)
            jumps = set(_TARGET.findall(line))
            names = [n for n in _NAME.findall(line) if n[1:] not in jumps]
            fetched = {n: fetch(n) for n in names if not found or n != found[1]}
            out.append(_NAME.sub(functools.partial(_replaced, fetched), line))
            if found and found[1] in self._slots:
                out.extend(_stored(found[1], self._types[found[1]], self._slots[found[1]]))
        return out

    def _at_end(self, part: _Part, case: re.Match[str]) -> str:
        """Return a case of a phi node, with the name that its value has at the end of a block."""
        name, label = case.groups()
        foreign = name in self._slots and self._where[name] != part.number
        if foreign or name in self._places:
            return f"[ {name}.{label}, %{label} ]"
        return case[0]

    def _add(self, part: _Part) -> None:
        """Add the function of a part."""
        operands = ", ".join(f"{kind} {name}" for name, kind in ARGUMENTS.items())
        body = [f"define internal void {part.symbol}({operands}) {{", "entry:", *self.of(part)]
        self.functions.append("\n".join([*body, "ret void", "}"]))


def _replaced(names: Mapping[str, str], found: re.Match[str]) -> str:
    """Return what stands for a name."""
    return names.get(found[0], found[0])


def _address(place: int) -> str:
    """Return an instruction for an address in the memory."""
    return f"getelementptr i8, ptr %stack, i64 {place}"


def _stored(name: str, kind: str, place: int) -> list[str]:
    """Return instructions that store a value in memory."""
    out = [f"{name}.to = {_address(place)}"]
    # Truth values of lanes are stored as integers: without masks in registers of their own, a
    # processor takes many instructions to pack them.
    if wide := re.fullmatch(r"<(\d+) x i1>", kind):
        memory = f"<{wide[1]} x i32>"
        return [
            *out,
            f"{name}.bits = sext {kind} {name} to {memory}",
            f"store {memory} {name}.bits, ptr {name}.to, align {_layout(kind)[1]}",
        ]
    return [*out, f"store {kind} {name}, ptr {name}.to, align {_layout(kind)[1]}"]


def _loaded(local: str, kind: str, place: int) -> list[str]:
    """Return instructions that load a value from memory."""
    out = [f"{local}.from = {_address(place)}"]
    if wide := re.fullmatch(r"<(\d+) x i1>", kind):
        memory = f"<{wide[1]} x i32>"
        return [
            *out,
            f"{local}.bits = load {memory}, ptr {local}.from, align {_layout(kind)[1]}",
            f"{local} = icmp slt {memory} {local}.bits, zeroinitializer",
        ]
    return [*out, f"{local} = load {kind}, ptr {local}.from, align {_layout(kind)[1]}"]


_BYTES = {"i1": 4, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8, "ptr": 8}
"""Bytes that a value takes in memory; lanes of truth values are stored as integers."""


def _layout(kind: str) -> tuple[int, int]:
    """Return the bytes that a value takes in memory, and the alignment of its address."""
    # A structure, the result of a function, has equal parts.
    if kind.startswith("{"):
        parts = re.findall(_TYPE, kind)
        size = _layout(parts[0])[0]
        return len(parts) * size, size
    wide = re.fullmatch(r"<(\d+) x (\w+)>", kind)
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
