"""The order of a kernel's instructions."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from brax.kernels.codegen.emitter import InstructionGroup

_VALUE_NAME = re.compile(r"%v\d+")
PLACE_NAME = re.compile(r"%m\d+")
"""Name of a place on the stack."""


def scheduled(body: Sequence[InstructionGroup]) -> Iterator[InstructionGroup]:
    """Puts each instruction just before the first that needs it, and leaves out what none needs.

    As JAX traces them, many numbers are computed long before they are used, and a processor has few
    registers to keep them in.

    Args:
        body: instructions; between two jumps they may change places.
    """
    used = [_VALUE_NAME.findall(line.text) for line in body]
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
    """Some instructions without jumps.

    Args:
        lines: the instructions.
        used: which values are in each.
        uses: how often each value is in instructions anywhere.
    """
    here = Counter(name for names in used for name in names)
    before = _before(lines, used)
    done = [False] * len(lines)
    for i, line in enumerate(lines):
        if done[i] or (line.name and uses[line.name] == here[line.name]):
            continue
        done[i] = True
        stack = [(i, iter(before[i]))]
        while stack:
            at, rest = stack[-1]
            following = next((j for j in rest if not done[j]), None)
            if following is None:
                stack.pop()
                yield lines[at]
            else:
                done[following] = True
                stack.append((following, iter(before[following])))


def _before(lines: Sequence[InstructionGroup], used: Sequence[list[str]]) -> list[list[int]]:
    """Which instructions have to come before each: those of its operands, and those that use the
    same place in memory, if one of both stores."""
    home = {line.name: i for i, line in enumerate(lines) if line.name}
    loads: dict[str, list[int]] = {}
    stores: dict[str, list[int]] = {}
    out = []
    for i, line in enumerate(lines):
        needs = [home[name] for name in used[i] if home.get(name, i) != i]
        for place in PLACE_NAME.findall(line.text):
            needs += stores.get(place, [])
            if line.name:
                loads.setdefault(place, []).append(i)
            else:
                needs += loads.pop(place, [])
                stores.setdefault(place, []).append(i)
        out.append(needs)
    return out
