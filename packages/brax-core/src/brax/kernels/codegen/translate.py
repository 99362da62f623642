"""Translation: turns the jaxpr of a kernel into the text of an LLVM module.

`translate` is where a jaxpr becomes LLVM. It loads the operands, calls `control_flow.lower_jaxpr`,
which emits instructions for each equation by its lowering rule, stores the results, and puts the
instructions in order:

    define void @kernel(ptr in, ptr out, ptr next, ptr batch)
        instructions at depth 0: batch-invariant values
        loop over the parts of the batch, each of which `next` brings into memory
            loop over the part, one register of environments at a time
                instructions at depth 1, with loops of the kernel inside
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen import ffi, ir
from brax.kernels.codegen.broadcasts import at_their_uses
from brax.kernels.codegen.emitter import Buffer, Emitter, Routine, TooLong, Value, code_of
from brax.kernels.codegen.folding import Pattern, folded
from brax.kernels.codegen.ir import Effect, Group, Instruction, Type, text_of
from brax.kernels.codegen.loops import Loops, buffer_array
from brax.kernels.codegen.lowering.arrays import ElementArray, element_shape
from brax.kernels.codegen.lowering.control_flow import lower_jaxpr
from brax.kernels.codegen.outlining import memory_type, outlined
from brax.kernels.codegen.schedule import scheduled
from brax.kernels.codegen.stack import aligned, allocate_stack, allocation

MAX_WHOLE_LINES = 6000
"""Number of lines up to which a kernel with loops stays one function."""


def translate(
    closed: Any,
    batched: Sequence[bool],
    lanes: int,
    min_elements: int = 0,
    max_values: int = 0,
    max_lines: int = 0,
    known: Sequence[Pattern | None] = (),
    single_precision: bool = False,
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
        known: what is known of each operand's numbers; empty if nothing is known of any.
        single_precision: see `Emitter`.

    Returns:
        A module with `void kernel(ptr in, ptr out, ptr next, ptr batch)`: the arrays of the
        addresses of operands and results, whose last axis, of size `PART`, has the environments of
        a part of the batch; and a function that is called with `batch` before each part, and
        returns the number of its environments: at least `lanes`, or 0 at the end.

    Raises:
        Unsupported: if an operation has no lowering rule.
        TooLong: if there are more than `max_values` values, or `max_lines` instructions.
    """
    emitter = Emitter(lanes, ffi.PART, max_values, single_precision=single_precision)
    if min_elements:
        emitter.loops = Loops(emitter, min_elements)
    lower_kernel(emitter, closed, batched, functools.partial(_array_address, emitter), known)
    return _module(emitter, max_lines)


def lower_kernel(
    emitter: Emitter,
    closed: Any,
    batched: Sequence[bool],
    address: Callable[[str, int], str],
    known: Sequence[Pattern | None] = (),
) -> None:
    """Emit the instructions of a kernel: load the operands, compute, and store the results.

    Args:
        emitter: receives the instructions.
        closed: the closed jaxpr.
        batched: whether each operand has a batch.
        address: returns the address of operand (`in`) or result (`out`) number k.
        known: what is known of each operand's numbers; empty if nothing is known of any.

    Raises:
        Unsupported: if an operation has no lowering rule.
        TooLong: if there are too many values.
    """
    jaxpr = closed.jaxpr
    each = zip(jaxpr.invars, batched, known or (None,) * len(batched), strict=True)
    operands = [_operand(emitter, address("in", k), *given) for k, given in enumerate(each)]
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
    begin, end = _loop_head(emitter.lanes), _loop_end(emitter.lanes)
    memory = emitter.buffer_sizes.keys() | emitter.slots.keys()
    simplified = folded([*head, begin, *body], emitter.known, emitter.slots)
    groups, places, used = allocate_stack(
        [*scheduled(simplified, memory), end], emitter.buffer_sizes
    )
    loop = groups.index(begin)
    before, inside = (
        [i for group in part for i in group] for part in (groups[:loop], groups[loop + 1 : -1])
    )
    # Values are bounded while the kernel is lowered, instructions only here: one value may take
    # several of them.
    count = sum(len(x) for x in (before, inside, places, emitter.slots))
    # The lines that begin and end a routine count too.
    count += sum(len(routine.body) + 1 for routine in emitter.routines.values())
    if max_lines and count > max_lines:
        raise TooLong
    slots: list[str] = []
    functions: dict[str, Routine] = {}
    if emitter.loops and len(inside) > MAX_WHOLE_LINES:
        for name, (kind, n) in emitter.slots.items():
            places[name] = used
            used += aligned(n * memory_type(kind).bytes)
        before, inside, functions, used = outlined(before, inside, "tile", places, used)
        places = {}
    else:
        # Parts of a kernel load what they share from its memory anyway; with one lane nothing is
        # broadcast.
        for code in ("f4", "f8") if emitter.lanes > 1 else ():
            kind, table = emitter.type_of(code, True), f"%shared.{code}"
            before, inside, size = at_their_uses(before, inside, kind, table)
            if size:
                emitter.slots[table] = Type(kind.scalar), size
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
            "define void @kernel(ptr noalias %in, ptr noalias %out, ptr %next, ptr %batch) {",
            *slots,
            *allocated,
            *(f"{b} = getelementptr i8, ptr %stack, i64 {at}" for b, at in places.items()),
            "%place = alloca i64",
            *map(text_of, [*before, *begin, *inside, *end]),
            *freed,
            "ret void",
            "}",
            *routine_texts(functions | emitter.routines),
            *sorted(emitter.declarations),
            "declare ptr @malloc(i64)",
            "declare void @free(ptr)",
        ]
    )


def routine_texts(routines: Mapping[str, Routine]) -> Iterator[str]:
    """Yield the text of each function, by its name, line by line."""
    for symbol, routine in routines.items():
        operands = ", ".join(f"{kind} {name}" for name, kind in routine.operands)
        yield f"define internal {routine.type} {symbol}({operands}) {{"
        yield from map(text_of, routine.body)
        yield "}"


def _loop_head(lanes: int) -> Group:
    """Return the heads of the loops over parts and over the registers of a part.

    `%first` is the environment of the first lane.
    """
    types = ir.I64, None
    return (
        ir.jump("part"),
        ir.label("part"),
        Instruction("call", ("%next", "%batch"), (None, ir.PTR), ir.I64, "%size"),
        Instruction("icmp sgt", ("%size", "0"), types, ir.I1, "%some"),
        ir.branch("%some", "begin", "finish"),
        ir.label("begin"),
        # The last lanes begin here. They may overlap those before them, which compute the same
        # numbers, so that no part of the batch needs code for fewer lanes.
        Instruction("sub", ("%size", str(lanes)), types, ir.I64, "%last"),
        ir.store("0", ir.I64, "%place"),
        ir.jump("tile"),
        ir.label("tile"),
        ir.load("%first", ir.I64, "%place", effect=Effect.CONTROL),
    )


def _loop_end(lanes: int) -> Group:
    """Return the ends of both loops."""
    types = ir.I64, None
    return (
        Instruction("icmp sge", ("%first", "%last"), types, ir.I1, "%done"),
        ir.branch("%done", "part", "more"),
        ir.label("more"),
        Instruction("add", ("%first", str(lanes)), types, ir.I64, "%step"),
        Instruction("icmp sgt", ("%step", "%last"), types, ir.I1, "%over"),
        Instruction(
            "select", ("%over", "%last", "%step"), (ir.I1, ir.I64, ir.I64), ir.I64, "%following"
        ),
        ir.store("%following", ir.I64, "%place"),
        ir.jump("tile"),
        ir.label("finish"),
    )


def _operand(
    emitter: Emitter, address: str, var: Any, batched: bool, known: Pattern | None
) -> ElementArray:
    """Return the elements of an operand: loaded, or left in memory if they are many."""
    code = code_of(var.aval.dtype)
    out = np.empty(element_shape(var.aval.shape), object)
    # Truth values are bytes in XLA's arrays and integers in buffers, so they are always loaded.
    if emitter.loops and emitter.loops.worth_looping(out) and code != "b1":
        wide = batched and emitter.lanes > 1
        return buffer_array(Buffer(address, code, wide, int(batched), batched), out.shape)
    for j, at in enumerate(np.ndindex(out.shape)):
        value = _load_operand(emitter, address, j, code, batched)
        out[at] = value
        if known is not None and (number := known[j]) is not None:
            emitter.known[str(value)] = number
    return out


def _array_address(emitter: Emitter, base: str, k: int) -> str:
    """Load the address of an operand (`in`) or a result (`out`) from the array of addresses."""
    # Emitted as pure instructions: nothing writes to these arrays, so one load serves all uses.
    return emitter.emit("load", ir.PTR, (emitter.address(ir.PTR, f"%{base}", k),), (ir.PTR,))


def _load_operand(emitter: Emitter, address: str, j: int, code: str, batched: bool) -> Value:
    """Load element `j` of an operand. Nothing writes operands, so the load may be scheduled."""
    wide = batched and emitter.lanes > 1
    number = _number_type(emitter, code)
    kind = number._replace(lanes=emitter.lanes if wide else 0)
    at = _element_address(emitter, address, j, number, batched)
    value = emitter.emit("load", kind, (at,), (ir.PTR,), emitter.alignment(number))
    if code != "b1":
        return value
    return emitter.emit("trunc", emitter.type_of("b1", wide), (value,), (kind,))


def _store_result(emitter: Emitter, address: str, j: int, code: str, value: Value) -> None:
    """Store element `j` of a result; each result has a batch."""
    # With one lane, for a batch of one, all values are scalars.
    wide = emitter.lanes > 1
    number, operand = _number_type(emitter, code), emitter.operand(value, code, wide)
    kind = number._replace(lanes=emitter.lanes if wide else 0)
    if code == "b1":
        operand = emitter.emit("zext", kind, (operand,), (emitter.type_of("b1", wide),))
    at = _element_address(emitter, address, j, number, True)
    emitter.emit_effect(ir.store(operand, kind, at, emitter.alignment(number)))


def _number_type(emitter: Emitter, code: str) -> Type:
    """Return LLVM's type of a number in XLA's arrays, where truth values are bytes."""
    return emitter.type_of(code, False) if code != "b1" else ir.I8


def _element_address(emitter: Emitter, base: str, j: int, kind: Type, batched: bool) -> str:
    """Return the address of element `j` for the environment of the first lane."""
    if not batched:
        return emitter.address(kind, base, j)
    # The batch is the last axis: element j of environment `first` is at j × stride + first.
    row = np.int64(j * emitter.stride)
    return emitter.address(kind, base, emitter.apply("add", "i8", row, "%first"))
