"""Counts of what a compiled GPU program launches and moves, from its optimized HLO text."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

_BITS = {"pred": 8, "bf16": 16, "token": 0}
"""Sizes of the element types whose names do not end in their number of bits."""

_FREE = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all"),
    *("opt-barrier", "partition-id", "replica-id", "async-done", "copy-done"),
}
"""Operations that launch nothing."""

_SLICES = {"slice", "dynamic-slice", "gather"}
"""Operations that read only so much of their first operand as they return."""

_INSTRUCTION = re.compile(
    r"^\s+(?P<root>ROOT )?%(?P<name>\S+) = (?P<shape>\(.*?\)|\S+) "
    r"(?P<op>[a-z][\w-]*)\((?P<rest>.*)$"
)
_COMPUTATION = re.compile(r"^(?P<entry>ENTRY )?%(?P<name>\S+) \(.*\{$")
_ARRAY = re.compile(r"\b([a-z][a-z0-9]*)\[([\d,]*)\]")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')


class Size(NamedTuple):
    """The size of a program, as one execution has it."""

    kernels: int
    """Kernels and copies that are launched, those in loops as often as the loops run."""
    bytes: int
    """Bytes that they read and write, as if nothing stayed in a cache."""
    syncs: int
    """Loops whose end, and branches whose choice, is only known while the program runs. Outside of
    a command buffer, the host waits for the device at each. Such a loop counts as one round, and
    such a branch as the longest of its cases."""


class _Instruction(NamedTuple):
    """An instruction of a computation."""

    name: str
    shape: str
    op: str
    operands: list[str]
    attributes: str
    root: bool

    def called(self, role: str) -> list[str]:
        """Return the computations that an instruction names in a role, such as its body."""
        found = re.search(rf"\b{role}=\{{?(%[^}} ]+(?:, %[^}} ,]+)*)", self.attributes)
        return re.findall(r"%([^\s,}]+)", found[1]) if found else []


def program_size(hlo: str) -> Size:
    """Return the size of an optimized and scheduled HLO module for a GPU."""
    computations, entry = _parsed(hlo)
    sizes: dict[str, Size] = {}

    def size(name: str) -> Size:
        if name not in sizes:
            sizes[name] = _sum(each(i, computations[name]) for i in computations[name].values())
        return sizes[name]

    def each(i: _Instruction, beside: dict[str, _Instruction]) -> Size:
        if i.op in _FREE:
            return Size(0, 0, 0)
        if i.op == "while":
            trips = _TRIPS.search(i.attributes)
            rounds = int(trips[1]) if trips else 1
            body = size(i.called("body")[0])
            syncs = rounds * body.syncs + (trips is None)
            return Size(rounds * body.kernels, rounds * body.bytes, syncs)
        if i.op == "conditional":
            cases = [*i.called("branch_computations"), *i.called("true_computation")]
            longest = max(map(size, [*cases, *i.called("false_computation")]))
            return longest._replace(syncs=longest.syncs + 1)
        if i.op in ("call", "async-start"):
            return size([*i.called("to_apply"), *i.called("calls")][0])
        if i.op == "fusion":
            return Size(1, _traffic(computations[i.called("calls")[0]]), 0)
        read = sum(_bytes(beside[o].shape) for o in i.operands if o in beside)
        return Size(1, read + _bytes(i.shape), 0)

    return size(entry)


def _sum(sizes: Iterator[Size]) -> Size:
    """Return the sum of some sizes."""
    return Size(*map(sum, zip(Size(0, 0, 0), *sizes, strict=True)))


def _parsed(hlo: str) -> tuple[dict[str, dict[str, _Instruction]], str]:
    """Return the instructions of each computation by name, and the name of the entry."""
    found: dict[str, dict[str, _Instruction]] = {}
    here: dict[str, _Instruction] = {}
    entry = ""
    for line in hlo.splitlines():
        if head := _COMPUTATION.match(line):
            here = found[head["name"]] = {}
            entry = head["name"] if head["entry"] else entry
        elif part := _INSTRUCTION.match(line):
            # Operands have no parentheses of their own: their shapes are where they are defined.
            operands, _, attributes = part["rest"].partition(")")
            # A parameter's number stands where others have operands.
            names = re.findall(r"%([^\s,]+)", operands) if "%" in operands else [operands]
            here[part["name"]] = _Instruction(
                part["name"], part["shape"], part["op"], names, attributes, bool(part["root"])
            )
    return found, entry


def _bytes(shape: str) -> int:
    """Return the number of bytes of an array, or of all arrays of a tuple."""
    total = 0
    for kind, extents in _ARRAY.findall(shape):
        bits = _BITS.get(kind) if kind in _BITS else int(re.sub(r"\D", "", kind) or 0)
        size = bits or 0
        for n in extents.split(","):
            size *= int(n) if n else 1
        total += size // 8
    return total


def _traffic(fused: dict[str, _Instruction]) -> int:
    """Return the bytes that a fused computation reads and writes."""
    users: dict[str, list[tuple[_Instruction, int]]] = defaultdict(list)
    for i in fused.values():
        for place, operand in enumerate(i.operands):
            users[operand].append((i, place))

    def read(name: str) -> int:
        total = 0
        for user, place in users[name]:
            if user.op in ("bitcast", "reshape"):
                total += read(user.name)
            elif user.op in _SLICES and place == 0:
                total += _bytes(user.shape)
            # What an update leaves is not touched: it is done in place.
            elif user.op != "dynamic-update-slice" or place != 0:
                return _bytes(fused[name].shape)
        return min(total, _bytes(fused[name].shape))

    def written(i: _Instruction) -> int:
        if i.op == "tuple":
            return sum(written(fused[o]) for o in i.operands)
        if i.op == "bitcast":
            return written(fused[i.operands[0]])
        return _bytes(fused[i.operands[1]].shape if i.op == "dynamic-update-slice" else i.shape)

    reads = sum(read(i.name) for i in fused.values() if i.op == "parameter")
    return reads + sum(written(i) for i in fused.values() if i.root)
