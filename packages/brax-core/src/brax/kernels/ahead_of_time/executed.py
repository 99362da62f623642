"""Counts of the instructions that a thread of a GPU executes, from a kernel's PTX."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_LABEL = re.compile(r"(\$\w+):")
_INSTRUCTION = re.compile(r"(?:@!?(%p\d+)\s+)?([a-z][\w.:]*)\b([^;]*);")
_MAX_MOVES = 8

_MOVE = re.compile(r"mov\.[bsu](32|64)$")
_SUM = re.compile(r"add\.s(32|64)$")


class Instruction(NamedTuple):
    """An instruction of PTX."""

    condition: str
    """The register with the truth value on which it is executed; empty if it always is."""
    operation: str
    """Its name, with its types."""
    operands: tuple[str, ...]

    @property
    def target(self) -> str:
        """The label that it jumps to; empty if it is no jump."""
        return self.operands[-1] if self.operation.startswith("bra") else ""

    @property
    def ends(self) -> bool:
        """True if the next instruction may be another one than that below."""
        return self.operation.startswith(("bra", "ret", "exit"))


def executed(text: str) -> int:
    """Return how many instructions a thread of a module's kernels executes.

    A loop whose counter begins with a constant, changes by one and is compared with one runs as
    often as these say, also where a further test may end it before. Another loop counts once. Of
    branches all count.

    Args:
        text: PTX.
    """
    blocks = _blocks(text)
    following = _following(blocks)
    times = [1] * len(blocks)
    for loop in _loops(following):
        rounds = _rounds(blocks, loop)
        for i in loop:
            times[i] *= rounds
    reached = _reached(following, 0)
    return sum(times[i] * len(blocks[i].instructions) for i in reached)


class _Block(NamedTuple):
    """Instructions that are executed one after another."""

    label: str
    instructions: list[Instruction]


def _blocks(text: str) -> list[_Block]:
    """Return the basic blocks of PTX, in its order."""
    blocks = [_Block("", [])]
    for line in map(str.strip, text.splitlines()):
        if label := _LABEL.match(line):
            blocks.append(_Block(label[1], []))
        elif found := _INSTRUCTION.match(line):
            operands = tuple(x.strip() for x in found[3].split(",")) if found[3].strip() else ()
            blocks[-1].instructions.append(Instruction(found[1] or "", found[2], operands))
            if blocks[-1].instructions[-1].ends:
                blocks.append(_Block("", []))
    return blocks


def _following(blocks: Sequence[_Block]) -> list[list[int]]:
    """Return the blocks that may follow each one."""
    place = {block.label: i for i, block in enumerate(blocks) if block.label}
    out = []
    for i, block in enumerate(blocks):
        last = block.instructions[-1] if block.instructions else Instruction("", "", ())
        mine = [place[last.target]] if last.target else []
        goes_on = last.condition or not last.ends
        out.append(mine + ([i + 1] if goes_on and i + 1 < len(blocks) else []))
    return out


def _reached(following: Sequence[Iterable[int]], start: int, without: int = -1) -> set[int]:
    """Return the blocks that are reached from one, on ways that leave another one out."""
    found: set[int] = set()
    left = [start]
    while left:
        i = left.pop()
        if i not in found and i != without:
            found.add(i)
            left += following[i]
    return found


def _loops(following: Sequence[Sequence[int]]) -> list[set[int]]:
    """Return the blocks of each loop."""
    before: list[list[int]] = [[] for _ in following]
    for i, after in enumerate(following):
        for j in after:
            before[j].append(i)
    loops: dict[int, set[int]] = {}
    for i in _reached(following, 0):
        for entry in following[i]:
            # Jumps go back if every way to them leads through their target: those to loops.
            if i not in _reached(following, 0, without=entry):
                loops.setdefault(entry, {entry}).update(_reached(before, i, without=entry))
    return list(loops.values())


def _rounds(blocks: Sequence[_Block], loop: set[int]) -> int:
    """Return how often a loop runs by its counter, 1 if it has none."""
    inside = [x for i in loop for x in blocks[i].instructions]
    outside = [x for i, b in enumerate(blocks) if i not in loop for x in b.instructions]
    moves = {x.operands[0]: x.operands[1] for x in outside if _MOVE.match(x.operation)}

    def number(text: str) -> int | None:
        """Return the integer that an operand is where the loop begins, or None."""
        # A chain of moves from a constant is short; one in a loop outside may have no end.
        for _ in range(_MAX_MOVES):
            text = moves.get(text, text)
        return int(text) if re.fullmatch(r"-?\d+", text) else None

    ends = {x.condition for x in inside if x.target and x.condition}
    found = [1]
    for test in inside:
        if not test.operation.startswith("setp.") or test.operands[0] not in ends:
            continue
        compared, end = test.operands[1], number(test.operands[2])
        for change in inside:
            if not _SUM.match(change.operation) or compared not in change.operands[:2]:
                continue
            new, old, step = *change.operands[:2], number(change.operands[2])
            begin = number(old)
            if begin is not None and end is not None and step:
                # A test of the number before the change comes a round later.
                late = compared != new
                found.append(-(-abs(end - begin) // abs(step)) + late)
    return max(found)
