"""The memory of a kernel's large arrays, which take each other's place when they are used up."""

import re
from collections.abc import Mapping, Sequence

from brax.kernels.codegen.emitter import InstructionGroup
from brax.kernels.codegen.schedule import PLACE_NAME

STACK_ALIGNMENT = 64
"""Bytes that arrays begin at multiples of."""

_LABEL = re.compile(r"^([\w.]+):", re.MULTILINE)
_BACK = re.compile(r"label %([\w.]+)")


def allocate_stack(
    lines: Sequence[InstructionGroup], sizes: Mapping[str, int]
) -> tuple[list[InstructionGroup], list[str], list[str]]:
    """Finds room for places.

    Args:
        lines: all instructions of a kernel, in order.
        sizes: bytes of the places among them.

    Returns:
        The instructions without those that store what is never loaded, and those that come before
        and after all others.
    """
    places = [[p for p in PLACE_NAME.findall(line.text) if p in sizes] for line in lines]
    read = {p for line, mine in zip(lines, places, strict=True) if line.name for p in mine}
    kept = [
        (line, mine)
        for line, mine in zip(lines, places, strict=True)
        if line.name or line.jump or not mine or any(p in read for p in mine)
    ]
    spans: dict[str, list[int]] = {}
    for i, (_, mine) in enumerate(kept):
        for p in mine:
            spans.setdefault(p, [i, i])[1] = i
    for begin, end in _loop_spans([line for line, _ in kept]):
        for span in spans.values():
            inside = begin <= span[0] <= end or begin <= span[1] <= end
            across = span[0] < begin <= span[1] or span[0] <= end < span[1]
            if inside and across:
                span[:] = min(span[0], begin), max(span[1], end)
    starts, total = _color_slots(spans, sizes)
    if not starts:
        return [line for line, _ in kept], [], []
    before = [
        f"%arena.room = call ptr @malloc(i64 {total + STACK_ALIGNMENT})",
        "%arena.number = ptrtoint ptr %arena.room to i64",
        f"%arena.up = add i64 %arena.number, {STACK_ALIGNMENT - 1}",
        f"%arena.even = and i64 %arena.up, {-STACK_ALIGNMENT}",
        "%arena = inttoptr i64 %arena.even to ptr",
        *(f"{p} = getelementptr i8, ptr %arena, i64 {at}" for p, at in starts.items()),
    ]
    return [line for line, _ in kept], before, ["call void @free(ptr %arena.room)"]


def _loop_spans(lines: Sequence[InstructionGroup]) -> list[tuple[int, int]]:
    """Where loops begin and end, inner ones first."""
    labels: dict[str, int] = {}
    out = []
    for i, line in enumerate(lines):
        if line.jump:
            out += [(labels[x], i) for x in _BACK.findall(line.text) if x in labels]
            labels |= dict.fromkeys(_LABEL.findall(line.text), i)
    return out


def _color_slots(
    spans: Mapping[str, Sequence[int]], sizes: Mapping[str, int]
) -> tuple[dict[str, int], int]:
    """Where each place begins, and the bytes of all, such that none that are in use overlap."""
    starts: dict[str, int] = {}
    total = 0
    live: list[str] = []
    for name, (begin, _) in sorted(spans.items(), key=lambda x: x[1][0]):
        live = sorted((p for p in live if spans[p][1] >= begin), key=starts.__getitem__)
        at = 0
        for p in live:
            if starts[p] - at >= sizes[name]:
                break
            at = max(at, -(-(starts[p] + sizes[p]) // STACK_ALIGNMENT) * STACK_ALIGNMENT)
        starts[name] = at
        live.append(name)
        total = max(total, at + sizes[name])
    return starts, total
