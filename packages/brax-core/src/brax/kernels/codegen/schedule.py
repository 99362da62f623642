"""Instruction scheduling: each instruction is moved down to its first use.

As JAX traces a function, many values are computed long before they are used. A processor has 16 or
32 vector registers, so the others would be spilled. With the scheduler, steps ran 1.06 to 1.3 times
as fast as in the order of the trace.

What a basic block computes for others is ordered too: next comes the value that shares most
operations with the one before it. A function of many joints computes the first number of all of
them, then the second number of all of them; ordered, it computes joint after joint, and finds in
the cache what it spilled. An ant's step in `spring` ran 1.06 times as fast.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from brax.kernels.codegen.ir import Effect, Group

MAX_ORDERED = 1000
"""Number of values that are ordered at a time: time and memory grow with its square."""


def scheduled(body: Sequence[Group], memory: Collection[str]) -> Iterator[Group]:
    """Yield each instruction just before its first use, and leave out unused ones.

    Args:
        body: the instructions. Those between two jumps, a basic block, may change their order.
        memory: the names of buffers and stack slots.
    """
    used = [[x for instruction in group for x in instruction.operands] for group in body]
    uses = Counter(x for names in used for x in names)
    start = 0
    for end, group in enumerate(body):
        if group[-1].effect is Effect.CONTROL:
            yield from _sink(body[start:end], used[start:end], uses, memory)
            yield group
            start = end + 1
    yield from _sink(body[start:], used[start:], uses, memory)


def _sink(
    groups: Sequence[Group],
    used: Sequence[list[str]],
    uses: Counter[str],
    memory: Collection[str],
) -> Iterator[Group]:
    """Yield the instructions of one basic block, each after its dependencies.

    Args:
        groups: the instructions.
        used: the operands of each.
        uses: how often each operand occurs in the whole kernel.
        memory: the names of buffers and stack slots.
    """
    here = Counter(x for names in used for x in names)
    block = _Block(_dependencies(groups, used, memory))
    # Roots are values that other blocks use, and side effects. The rest is pulled in by need.
    values: list[int] = []
    for i, group in enumerate(groups):
        result = group[-1].result
        if not result:
            yield from (groups[j] for j in block.compute(values, i))
            values = []
        elif uses[result] != here[result]:
            values.append(i)
    yield from (groups[j] for j in block.compute(values))


class _Block:
    """The instructions of a basic block by their places in it, and which of them are computed."""

    def __init__(self, dependencies: Sequence[Sequence[int]]) -> None:
        """Begin with no instruction computed.

        Args:
            dependencies: the instructions that have to come before each one.
        """
        self._dependencies = dependencies
        self._done = bytearray(len(dependencies))

    def compute(self, values: Sequence[int], *effects: int) -> Iterator[int]:
        """Yield what values and then effects need and is not yet computed, after what it needs."""
        for start in range(0, len(values), MAX_ORDERED):
            for root in self._by_common_operations(values[start : start + MAX_ORDERED]):
                yield from self._search([root], self._done)
        yield from self._search(effects, self._done)

    def _search(self, roots: Sequence[int], done: bytearray) -> Iterator[int]:
        """Yield what roots need in depth-first order, and mark it as done."""
        for root in roots:
            if done[root]:
                continue
            done[root] = True
            # A stack of its own: chains of dependencies are longer than Python's limit of
            # recursion.
            stack = [(root, iter(self._dependencies[root]))]
            while stack:
                at, rest = stack[-1]
                following = next((j for j in rest if not done[j]), None)
                if following is None:
                    stack.pop()
                    yield at
                else:
                    done[following] = True
                    stack.append((following, iter(self._dependencies[following])))

    def _by_common_operations(self, roots: Sequence[int]) -> Iterator[int]:
        """Yield the root that shares most operations with what the one before it computed.

        Of several, that with the least left to compute comes first, then the first of the trace.
        """
        needed = [*self._search(roots, self._done[:])]
        places = {at: row for row, at in enumerate(needed)}
        # Whether each root needs each operation, from roots to what they depend on.
        needs = np.zeros((len(needed), len(roots)), bool)
        for k, root in enumerate(roots):
            if root in places:
                needs[places[root], k] = True
        for row in reversed(range(len(needed))):
            for at in self._dependencies[needed[row]]:
                if at in places:
                    needs[places[at]] |= needs[row]
        left = needs.sum(0)
        by_root = needs.T.copy()
        shared = np.zeros_like(left)
        waiting = np.ones(len(roots), bool)
        for _ in roots:
            best = int(np.lexsort((left, -shared, ~waiting))[0])
            waiting[best] = False
            new = np.flatnonzero(by_root[best])
            shared = needs[new].sum(0)
            left -= shared
            by_root[:, new] = False
            yield roots[best]


def _dependencies(
    groups: Sequence[Group], used: Sequence[list[str]], memory: Collection[str]
) -> list[list[int]]:
    """Return the instructions that have to come before each one.

    These are the definitions of its operands. For instructions that use the same buffer, the order
    is kept if one of them stores.
    """
    home = {group[-1].result: i for i, group in enumerate(groups) if group[-1].result}
    loads: dict[str, list[int]] = {}
    stores: dict[str, list[int]] = {}
    out = []
    for i, group in enumerate(groups):
        needs = [home[x] for x in used[i] if x in home]
        for buffer in used[i]:
            if buffer not in memory:
                continue
            # Read after write, and write after write.
            needs += stores.get(buffer, [])
            if group[-1].effect is Effect.READS:
                loads.setdefault(buffer, []).append(i)
            else:
                # Write after read: a load gets what was there before this store.
                needs += loads.pop(buffer, [])
                stores.setdefault(buffer, []).append(i)
        out.append(needs)
    return out
