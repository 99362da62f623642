"""Broadcasts: a number that all lanes share is kept in memory as it is, and broadcast where used.

Broadcast before the loop over the batch, hundreds of such numbers, such as masses and lengths,
would be spilled as vectors. As numbers they take a sixteenth of the cache, and instructions of
AVX-512 broadcast an operand that they read from memory. With this and with the loops' values in
registers (see `target`), an ant's step in `spring` ran 1.12 times as fast.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from brax.kernels.codegen import ir
from brax.kernels.codegen.ir import Instruction, Type


class Broadcasts(NamedTuple):
    """A kernel whose loop over the batch reads shared numbers from a table."""

    before: list[Instruction]
    """Instructions before the loop, which fill the table."""
    body: list[Instruction]
    """Instructions of its body."""
    size: int
    """The number of numbers in the table."""


def at_their_uses(
    before: Sequence[Instruction], body: Sequence[Instruction], kind: Type, table: str
) -> Broadcasts:
    """Move broadcasts of one type into the loop over the batch, to their uses.

    LLVM would join equal loads of a basic block, keep the vector, and spill it. So each use in a
    block reads a copy of its own.

    Args:
        before: instructions before the loop.
        body: instructions of its body.
        kind: the type of the vectors.
        table: the name of the table's address.
    """
    shared = _shared(before, kind)
    reads, copies = _reads(body, shared)
    filling: list[Instruction] = []
    places: dict[str, int] = {}
    size = 0
    for name, n in copies.items():
        places[name] = size
        filling += _store_copies(shared[name], n, kind, f"{table}.in{size}", table, size)
        size += n
    inside: list[Instruction] = []
    for at, instruction in enumerate(body):
        new = {}
        for name, copy in reads.get(at, {}).items():
            new[name] = f"{name}.at{at}"
            inside += _load_copy(new[name], kind, table, places[name] + copy)
        operands = tuple(new.get(x, x) for x in instruction.operands)
        inside.append(instruction._replace(operands=operands) if new else instruction)
    return Broadcasts([*before, *filling], inside, size)


def _shared(before: Sequence[Instruction], kind: Type) -> dict[str, str]:
    """Return the number of each broadcast, by the name of the vector."""
    made = {i.result: i for i in before if i.result}
    return {
        name: made[i.operands[0]].operands[1]
        for name, i in made.items()
        if i.type == kind and ir.is_broadcast(i) and i.operands[0] in made
    }


def _reads(
    body: Sequence[Instruction], names: Collection[str]
) -> tuple[dict[int, dict[str, int]], Counter[str]]:
    """Return which copies of broadcasts each instruction reads, and how many each one needs."""
    reads: dict[int, dict[str, int]] = {}
    copies: Counter[str] = Counter()
    here: Counter[str] = Counter()
    for at, instruction in enumerate(body):
        if instruction.operation == "label":
            here.clear()
        # What a phi node reads has to be there at the end of another block.
        if instruction.operation != "phi":
            for name in dict.fromkeys(x for x in instruction.operands if x in names):
                reads.setdefault(at, {})[name] = here[name]
                here[name] += 1
                copies[name] = max(copies[name], here[name])
    return reads, copies


def _store_copies(
    number: str, n: int, kind: Type, name: str, table: str, at: int
) -> Iterator[Instruction]:
    """Yield the instructions that store copies of a number from a place of the table on.

    One store of them all keeps LLVM's time low, which grows with the square of their number.
    """
    one = Type(kind.scalar)
    yield ir.address(f"{name}.place", one, table, str(at))
    if n == 1:
        yield ir.store(number, one, f"{name}.place", one.bytes)
    else:
        some = Type(kind.scalar, n)
        yield from ir.broadcast(number, some, name)
        yield ir.store(name, some, f"{name}.place", one.bytes)


def _load_copy(name: str, kind: Type, table: str, at: int) -> Iterator[Instruction]:
    """Yield the instructions that load and broadcast a number from a place of the table."""
    one = Type(kind.scalar)
    yield ir.address(f"{name}.place", one, table, str(at))
    yield ir.load(f"{name}.number", one, f"{name}.place")
    yield from ir.broadcast(f"{name}.number", kind, name)
