"""Translation of a kernel: from the operations that JAX traced to a function in LLVM's language."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import Emitter, InstructionGroup, MemoryPlace, Value, code_of
from brax.kernels.codegen.loops import Loops, cells
from brax.kernels.codegen.lowering.arrays import one
from brax.kernels.codegen.lowering.control_flow import evaluate
from brax.kernels.codegen.schedule import scheduled
from brax.kernels.codegen.stack import allocate_stack


def translate(closed: Any, own: Sequence[bool], lanes: int, least: int = 0, most: int = 0) -> str:
    """Writes a kernel in LLVM's language.

    Args:
        closed: the operations, traced with a batch of size `BATCH_MARK`.
        own: which operands have a batch; those of the others are the same in all environments.
        lanes: environments that an instruction works on.
        least: elements of an array that are worth a loop; 0 for none, all written out.
        most: values that there may be; 0 for any number.

    Returns:
        A module with `void kernel(ptr in, ptr out, i64 size)`: addresses of the operands and
        results, whose last axis is the batch of `size` environments, at least as many as lanes.

    Raises:
        Unsupported: if an operation is not translated.
        TooLong: if there are more values.
    """
    asm = Emitter(lanes, most)
    if least:
        asm.loops = Loops(asm, least)
    jaxpr = closed.jaxpr
    given = []
    for k, (var, mine) in enumerate(zip(jaxpr.invars, own, strict=True)):
        place, code = _address(asm, "in", k), code_of(var.aval.dtype)
        out = np.empty(one(var.aval.shape), object)
        if asm.loops and asm.loops.worth(out) and code != "b1":
            wide = mine and lanes > 1
            given.append(cells(MemoryPlace(place, code, wide, int(mine), mine), out.shape))
            continue
        for j, at in enumerate(np.ndindex(out.shape)):
            out[at] = _read(asm, place, j, code, mine)
        given.append(out)
    results = evaluate(asm, jaxpr, closed.consts, given)
    if asm.loops:
        results = [asm.loops.fetched(x) for x in results]
        asm.loops.settle()
    for k, (var, x) in enumerate(zip(jaxpr.outvars, results, strict=True)):
        place, code = _address(asm, "out", k), code_of(var.aval.dtype)
        for j, value in enumerate(x.reshape(-1)):
            _write(asm, place, j, code, value)
    head, body = asm.blocks
    lines = [*scheduled([*head, _TILE, *body]), _next(lanes)]
    lines, before, after = allocate_stack(lines, asm.places)
    return "\n".join(
        [
            *(f"{name} = private unnamed_addr constant {x}" for x, name in asm.constants.items()),
            "define void @kernel(ptr noalias %in, ptr noalias %out, i64 %size) {",
            *asm.start,
            *before,
            "%place = alloca i64",
            # The last tile begins here: it may overlap the one before it.
            f"%last = sub i64 %size, {lanes}",
            "store i64 0, ptr %place",
            *(line.text for line in lines),
            *after,
            "ret void",
            "}",
            *(text for _, _, text in asm.routines.values()),
            *sorted(asm.declared),
            "declare ptr @malloc(i64)",
            "declare void @free(ptr)",
        ]
    )


_TILE = InstructionGroup("br label %tile\ntile:\n%first = load i64, ptr %place", jump=True)
"""The beginning of the loop over the batch."""


def _next(lanes: int) -> InstructionGroup:
    """The end of the loop over the batch."""
    lines = [
        "%done = icmp sge i64 %first, %last",
        "br i1 %done, label %finish, label %more",
        "more:",
        f"%step = add i64 %first, {lanes}",
        "%over = icmp sgt i64 %step, %last",
        "%next = select i1 %over, i64 %last, i64 %step",
        "store i64 %next, ptr %place",
        "br label %tile",
        "finish:",
    ]
    return InstructionGroup("\n".join(lines), jump=True)


def _address(asm: Emitter, base: str, k: int) -> str:
    place = asm.emit(f"getelementptr ptr, ptr %{base}, i64 {k}", False, ())
    return asm.emit(f"load ptr, ptr {place}", False, ())


def _read(asm: Emitter, place: str, j: int, code: str, own: bool) -> Value:
    """An element of an operand, which is not changed by anything."""
    wide = own and asm.lanes > 1
    kind = asm.type_of(code, wide) if code != "b1" else _bytes(asm, wide)
    at = _place(asm, place, j, code, own)
    value = asm.emit(f"load {kind}, ptr {at}, align 1", wide, (at,))
    if code != "b1":
        return value
    return asm.emit(f"trunc {kind} {value} to {asm.type_of('b1', wide)}", wide, (value,))


def _write(asm: Emitter, place: str, j: int, code: str, value: Value) -> None:
    wide = asm.lanes > 1
    kind, given = asm.type_of(code, wide), asm.operand(value, code, wide)
    if code == "b1":
        given = asm.emit(f"zext {kind} {given} to {_bytes(asm, wide)}", wide, (value,), 1)
        kind = _bytes(asm, wide)
    asm.act(f"store {kind} {given}, ptr {_place(asm, place, j, code, True)}, align 1")


def _bytes(asm: Emitter, wide: bool) -> str:
    return f"<{asm.lanes} x i8>" if wide else "i8"


def _place(asm: Emitter, place: str, j: int, code: str, own: bool) -> str:
    """Where an element is of the first of the lanes."""
    kind = asm.type_of(code, False) if code != "b1" else "i8"
    if not own:
        return asm.emit(f"getelementptr {kind}, ptr {place}, i64 {j}", False, (place,))
    row = asm.emit(f"mul i64 %size, {j}", False, ())
    at = asm.emit(f"add i64 {row}, %first", False, (row,), 1)
    return asm.emit(f"getelementptr {kind}, ptr {place}, i64 {at}", False, (place, at))
