"""Buffer allocation: buffers that are not live at the same time share memory.

A kernel allocates one block of memory when it is called. Each buffer gets an offset in it by the
liveness of its contents, as in stack slot colouring, so that the memory in use stays in the cache.
"""

import bisect
from collections.abc import Mapping, Sequence

import numpy as np

from brax.kernels.codegen.ir import Effect, Group

STACK_ALIGNMENT = 64
"""Offsets of buffers on a CPU are multiples of it: the widest register and a cache line, in
bytes."""

_READS = Effect.READS, Effect.READS_AND_WRITES


def aligned(size: int, to: int = STACK_ALIGNMENT) -> int:
    """Return the least multiple of an alignment that is no less than a size, in bytes."""
    return -(-size // to) * to


def allocate_stack(
    groups: Sequence[Group], sizes: Mapping[str, int], alignment: int = STACK_ALIGNMENT
) -> tuple[list[Group], dict[str, int], int]:
    """Allocate the buffers of a kernel.

    Args:
        groups: all instructions of the kernel, in order.
        sizes: the sizes of its buffers, in bytes.
        alignment: what the offsets are multiples of, in bytes.

    Returns:
        The instructions without stores to buffers that are never loaded from; the offsets of the
        buffers in the kernel's memory; and its size, in bytes.
    """
    buffers = [[x for i in group for x in i.operands if x in sizes] for group in groups]
    # Dead store elimination: stores keep no buffer.
    loaded = {
        b
        for group, mine in zip(groups, buffers, strict=True)
        if group[-1].effect in _READS
        for b in mine
    }
    kept = [
        (group, mine)
        for group, mine in zip(groups, buffers, strict=True)
        if not mine or any(b in loaded for b in mine)
    ]
    return [group for group, _ in kept], *_color_slots(_live_ranges(kept), sizes, alignment)


def allocation(size: int) -> tuple[list[str], list[str]]:
    """Return the instructions that allocate a kernel's memory, `%stack`, and those that free it."""
    if not size:
        return [], []
    # The memory is on the heap: a thread's stack is small, and what LLVM spills goes there. malloc
    # promises 16 bytes of alignment, so the address is rounded up here.
    before = [
        f"%stack.room = call ptr @malloc(i64 {size + STACK_ALIGNMENT})",
        "%stack.number = ptrtoint ptr %stack.room to i64",
        f"%stack.up = add i64 %stack.number, {STACK_ALIGNMENT - 1}",
        f"%stack.even = and i64 %stack.up, {-STACK_ALIGNMENT}",
        "%stack = inttoptr i64 %stack.even to ptr",
    ]
    return before, ["call void @free(ptr %stack.room)"]


def _live_ranges(
    groups: Sequence[tuple[Group, Sequence[str]]],
) -> dict[str, tuple[int, int]]:
    """Return the first and the last instruction at which each buffer is live.

    Args:
        groups: the instructions, each with the buffers that it uses.
    """
    spans: dict[str, list[int]] = {}
    for i, (_, mine) in enumerate(groups):
        for b in mine:
            spans.setdefault(b, [i, i])[1] = i
    # A buffer that is used both in a loop and outside of it is live during all iterations. Inner
    # loops come first, so that what they extend is extended by the loops around them too.
    first, last = np.array([*spans.values()], int).reshape(-1, 2).T
    for begin, end in _loop_spans([group for group, _ in groups]):
        begins, ends = (begin <= first) & (first <= end), (begin <= last) & (last <= end)
        # Of a buffer that is live in the loop, what goes on outside of it.
        across = (begins | ends) & ((first < begin) | (last > end))
        first[across] = np.minimum(first[across], begin)
        last[across] = np.maximum(last[across], end)
    return dict(zip(spans, zip(first.tolist(), last.tolist(), strict=True), strict=True))


def _loop_spans(groups: Sequence[Group]) -> list[tuple[int, int]]:
    """Return the first and the last instruction of each loop, inner loops first."""
    labels: dict[str, int] = {}
    out = []
    for i, group in enumerate(groups):
        for instruction in group:
            if instruction.operation == "br":
                # A jump to a label that has come before is a back edge, the end of a loop.
                out += [(labels[x], i) for x in instruction.labels if x in labels]
            elif instruction.operation == "label":
                labels[instruction.labels[0]] = i
    return out


def _color_slots(
    spans: Mapping[str, Sequence[int]], sizes: Mapping[str, int], alignment: int
) -> tuple[dict[str, int], int]:
    """Return each buffer's offset and the bytes of all; live buffers do not overlap.

    Buffers are placed first fit, in the order in which they become live (linear scan).
    """
    offsets: dict[str, int] = {}
    total = 0
    live: list[str] = []
    for name, (begin, _) in sorted(spans.items(), key=lambda x: x[1][0]):
        # Live buffers by offset; one that ends at `begin` may be an operand of what begins there.
        live = [b for b in live if spans[b][1] >= begin]
        at = 0
        for b in live:
            if offsets[b] - at >= sizes[name]:
                break
            at = max(at, aligned(offsets[b] + sizes[b], alignment))
        offsets[name] = at
        bisect.insort(live, name, key=offsets.__getitem__)
        total = max(total, at + sizes[name])
    # What follows the buffers in memory is aligned as they are.
    return offsets, aligned(total)
