"""Translation: turns the jaxpr of a kernel into the text of an LLVM module.

`translate` is where a jaxpr becomes LLVM. It loads the operands, calls `control_flow.lower_jaxpr`,
which emits instructions for each equation by its lowering rule, stores the results, and puts the
instructions in order:

    define void @kernel(ptr in, ptr out, i64 size)
        instructions at depth 0: batch-invariant values
        loop over the batch, one register of environments at a time
            instructions at depth 1, with loops of the kernel inside
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import (
    LLVM_TYPES,
    Buffer,
    Emitter,
    InstructionGroup,
    TooLong,
    Value,
    code_of,
)
from brax.kernels.codegen.loops import Loops, buffer_array
from brax.kernels.codegen.lowering.arrays import ElementArray, element_shape
from brax.kernels.codegen.lowering.control_flow import lower_jaxpr
from brax.kernels.codegen.outlining import bytes_of, outlined
from brax.kernels.codegen.schedule import scheduled
from brax.kernels.codegen.stack import STACK_ALIGNMENT, allocate_stack, allocation

MAX_WHOLE_LINES = 6000
"""Number of lines up to which a kernel with loops stays one function."""


def translate(
    closed: Any,
    batched: Sequence[bool],
    lanes: int,
    min_elements: int = 0,
    max_values: int = 0,
    max_lines: int = 0,
) -> str:
    """Translate a kernel to an LLVM module.

    Args:
        closed: the closed jaxpr, traced with a batch of size `BATCH_MARK`.
        batched: whether each operand has a batch; the others are the same in all environments.
        lanes: environments that an instruction works on.
        min_elements: the smallest number of elements of an array that is kept in memory; 0 to
            unroll all operations.
        max_values: the largest number of values; 0 for no limit.
        max_lines: the largest number of instructions; 0 for no limit.

    Returns:
        A module with `void kernel(ptr in, ptr out, i64 size)`: addresses of the operands and of
        the results, whose last axis is the batch, and the size of the batch, at least `lanes`.

    Raises:
        Unsupported: if an operation has no lowering rule.
        TooLong: if there are more than `max_values` values, or `max_lines` instructions.
    """
    emitter = Emitter(lanes, max_values)
    if min_elements:
        emitter.loops = Loops(emitter, min_elements)
    lower_kernel(emitter, closed, batched, functools.partial(_array_address, emitter))
    return _module(emitter, max_lines)


def lower_kernel(
    emitter: Emitter,
    closed: Any,
    batched: Sequence[bool],
    address: Callable[[str, int], str],
) -> None:
    """Emit the instructions of a kernel: load the operands, compute, and store the results.

    Args:
        emitter: receives the instructions.
        closed: the closed jaxpr.
        batched: whether each operand has a batch.
        address: returns the address of operand (`in`) or result (`out`) number k.

    Raises:
        Unsupported: if an operation has no lowering rule.
        TooLong: if there are too many values.
    """
    jaxpr = closed.jaxpr
    both = enumerate(zip(jaxpr.invars, batched, strict=True))
    operands = [_operand(emitter, address("in", k), var, mine) for k, (var, mine) in both]
    results = lower_jaxpr(emitter, jaxpr, closed.consts, operands)
    # Results are stored element by element, so those in memory are loaded first.
    if emitter.loops:
        results = [emitter.loops.loaded(x) for x in results]
        emitter.loops.close_all()
    for k, (var, x) in enumerate(zip(jaxpr.outvars, results, strict=True)):
        at, code = address("out", k), code_of(var.aval.dtype)
        for j, value in enumerate(x.reshape(-1)):
            _store_result(emitter, at, j, code, value)


def _module(emitter: Emitter, max_lines: int) -> str:
    """Return the text of the module, with the instructions scheduled and buffers allocated.

    Raises:
        TooLong: if it has too many instructions; those that go between its parts do not count.
    """
    head, body = emitter.blocks
    # Batch-invariant values are scheduled together with the rest. Since they are, an ant's step in
    # `spring` compiles in 0.6 of the time.
    end = _batch_loop_end(emitter.lanes)
    groups, places, used = allocate_stack(
        [*scheduled([*head, _BATCH_LOOP_HEAD, *body]), end], emitter.buffer_sizes
    )
    loop = groups.index(_BATCH_LOOP_HEAD)
    before, lines = (
        "\n".join(g.text for g in part).splitlines()
        for part in (groups[:loop], groups[loop + 1 : -1])
    )
    # Values are bounded while the kernel is lowered, instructions only here: one value may take
    # several lines.
    routines = [text for _, _, text in emitter.routines.values()]
    count = sum(len(x) for x in (before, lines, places, emitter.slots))
    if max_lines and count + sum(text.count("\n") for text in routines) > max_lines:
        raise TooLong
    slots: list[str] = []
    functions: list[str] = []
    if emitter.loops and len(lines) > MAX_WHOLE_LINES:
        for name, (kind, n) in emitter.slots.items():
            places[name] = used
            used += -(-n * bytes_of(kind) // STACK_ALIGNMENT) * STACK_ALIGNMENT
        before, lines, functions, used = outlined(before, lines, "tile", places, used)
        places = {}
    else:
        # 64 bytes are the widest register and a cache line, so that no vector load is split.
        slots = [
            f"{name} = alloca {kind}, i32 {n}, align 64"
            for name, (kind, n) in emitter.slots.items()
        ]
    allocated, freed = allocation(used)
    constants = emitter.constants.items()
    return "\n".join(
        [
            *(f"{name} = private unnamed_addr constant {x}" for x, name in constants),
            # noalias: the arrays of addresses are the handler's own, and nothing else writes there.
            "define void @kernel(ptr noalias %in, ptr noalias %out, i64 %size) {",
            *slots,
            *allocated,
            *(f"{b} = getelementptr i8, ptr %stack, i64 {at}" for b, at in places.items()),
            "%place = alloca i64",
            # The last lanes begin here. They may overlap those before them, which compute the
            # same numbers, so that no part of the batch needs code for fewer lanes.
            f"%last = sub i64 %size, {emitter.lanes}",
            "store i64 0, ptr %place",
            *before,
            _BATCH_LOOP_HEAD.text,
            *lines,
            end.text,
            *freed,
            "ret void",
            "}",
            *functions,
            *routines,
            *sorted(emitter.declarations),
            "declare ptr @malloc(i64)",
            "declare void @free(ptr)",
        ]
    )


_BATCH_LOOP_HEAD = InstructionGroup(
    "br label %tile\ntile:\n%first = load i64, ptr %place", jump=True
)
"""The head of the loop over the batch; `%first` is the environment of the first lane."""


def _batch_loop_end(lanes: int) -> InstructionGroup:
    """Return the end of the loop over the batch."""
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


def _operand(emitter: Emitter, address: str, var: Any, batched: bool) -> ElementArray:
    """Return the elements of an operand: loaded, or left in memory if they are many."""
    code = code_of(var.aval.dtype)
    out = np.empty(element_shape(var.aval.shape), object)
    # Truth values are bytes in XLA's arrays and integers in buffers, so they are always loaded.
    if emitter.loops and emitter.loops.worth_looping(out) and code != "b1":
        wide = batched and emitter.lanes > 1
        return buffer_array(Buffer(address, code, wide, int(batched), batched), out.shape)
    for j, at in enumerate(np.ndindex(out.shape)):
        out[at] = _load_operand(emitter, address, j, code, batched)
    return out


def _array_address(emitter: Emitter, base: str, k: int) -> str:
    """Load the address of an operand (`in`) or a result (`out`) from the array of addresses."""
    # Emitted as pure instructions: nothing writes to these arrays, so one load serves all uses.
    entry = emitter.emit(f"getelementptr ptr, ptr %{base}, i64 {k}", False, ())
    return emitter.emit(f"load ptr, ptr {entry}", False, ())


def _load_operand(emitter: Emitter, address: str, j: int, code: str, batched: bool) -> Value:
    """Load element `j` of an operand. Nothing writes operands, so the load may be scheduled."""
    wide = batched and emitter.lanes > 1
    kind = emitter.type_of(code, wide) if code != "b1" else _byte_type(emitter, wide)
    at = _element_address(emitter, address, j, code, batched)
    end = emitter.alignment(LLVM_TYPES.get(code, "i8"))
    value = emitter.emit(f"load {kind}, ptr {at}, align {end}", wide, (at,))
    if code != "b1":
        return value
    return emitter.emit(f"trunc {kind} {value} to {emitter.type_of('b1', wide)}", wide, (value,))


def _store_result(emitter: Emitter, address: str, j: int, code: str, value: Value) -> None:
    """Store element `j` of a result; each result has a batch."""
    # With one lane, for a batch of one, all values are scalars.
    wide = emitter.lanes > 1
    kind, operand = emitter.type_of(code, wide), emitter.operand(value, code, wide)
    if code == "b1":
        operand = emitter.emit(
            f"zext {kind} {operand} to {_byte_type(emitter, wide)}", wide, (value,), 1
        )
        kind = _byte_type(emitter, wide)
    at = _element_address(emitter, address, j, code, True)
    end = emitter.alignment(LLVM_TYPES.get(code, "i8"))
    emitter.emit_effect(f"store {kind} {operand}, ptr {at}, align {end}")


def _byte_type(emitter: Emitter, wide: bool) -> str:
    """Return LLVM's type of truth values in XLA's arrays."""
    return f"<{emitter.lanes} x i8>" if wide else "i8"


def _element_address(emitter: Emitter, address: str, j: int, code: str, batched: bool) -> str:
    """Return the address of element `j` for the environment of the first lane."""
    kind = emitter.type_of(code, False) if code != "b1" else "i8"
    if not batched:
        return emitter.emit(f"getelementptr {kind}, ptr {address}, i64 {j}", False, (address,))
    # The batch is the last axis: element j of environment `first` is at j × size + first. Depth 1
    # says that the sum is computed within the loop over the batch.
    row = emitter.emit(f"mul i64 %size, {j}", False, ())
    at = emitter.emit(f"add i64 {row}, %first", False, (row,), 1)
    return emitter.emit(f"getelementptr {kind}, ptr {address}, i64 {at}", False, (address, at))
