"""Instruction scheduling: each instruction is moved down to its first use.

As JAX traces a function, many values are computed long before they are used. A processor has 16 or
32 vector registers, so the others would be spilled. With the scheduler, steps ran 1.06 to 1.3 times
as fast as in the order of the trace.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from brax.kernels.codegen.emitter import InstructionGroup

_VALUE_NAME = re.compile(r"%v\d+")
BUFFER_NAME = re.compile(r"%m\d+")
"""Pattern of the names of buffers and stack slots."""


def scheduled(body: Sequence[InstructionGroup]) -> Iterator[InstructionGroup]:
    """Yield each instruction just before its first use, and leave out unused ones.

    Args:
        body: the instructions. Those between two jumps, a basic block, may change their order.
    """
    used = [_VALUE_NAME.findall(line.text) for line in body]
    # A group mentions its own result too, so that a count of one means no use.
    uses = Counter(name for names in used for name in names)
    start = 0
    for end, line in enumerate(body):
        if line.jump:
            yield from _sink(body[start:end], used[start:end], uses)
            yield line
            start = end + 1
    yield from _sink(body[start:], used[start:], uses)


def _sink(
    lines: Sequence[InstructionGroup], used: Sequence[list[str]], uses: Counter[str]
) -> Iterator[InstructionGroup]:
    """Yield the instructions of one basic block, each after its dependencies.

    Args:
        lines: the instructions.
        used: the names of values in each.
        uses: how often each name occurs in the whole kernel.
    """
    here = Counter(name for names in used for name in names)
    dependencies = _dependencies(lines, used)
    done = [False] * len(lines)
    for i, line in enumerate(lines):
        # Roots are side effects and values that other blocks use. The rest is pulled in by need.
        if done[i] or (line.result and uses[line.result] == here[line.result]):
            continue
        done[i] = True
        # Depth-first search with a stack of its own: chains of dependencies are longer than
        # Python's limit of recursion.
        stack = [(i, iter(dependencies[i]))]
        while stack:
            at, rest = stack[-1]
            following = next((j for j in rest if not done[j]), None)
            if following is None:
                stack.pop()
                yield lines[at]
            else:
                done[following] = True
                stack.append((following, iter(dependencies[following])))


def _dependencies(lines: Sequence[InstructionGroup], used: Sequence[list[str]]) -> list[list[int]]:
    """Return the instructions that have to come before each one.

    These are the definitions of its operands. For instructions that use the same buffer, the order
    is kept if one of them stores.
    """
    home = {line.result: i for i, line in enumerate(lines) if line.result}
    loads: dict[str, list[int]] = {}
    stores: dict[str, list[int]] = {}
    out = []
    for i, line in enumerate(lines):
        needs = [home[name] for name in used[i] if home.get(name, i) != i]
        for buffer in BUFFER_NAME.findall(line.text):
            # Read after write, and write after write.
            needs += stores.get(buffer, [])
            if line.result:
                loads.setdefault(buffer, []).append(i)
            else:
                # Write after read: a load gets what was there before this store.
                needs += loads.pop(buffer, [])
                stores.setdefault(buffer, []).append(i)
        out.append(needs)
    return out
