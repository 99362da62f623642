"""Emitter: collects the LLVM instructions of a kernel, without duplicates.

A *value* is the name of an instruction's result, or a NumPy scalar that is known while the kernel
is translated; operations on known scalars are folded. A named value is *wide*, one number for each
lane of a vector register, or *uniform*, the same in all lanes. Each lane holds one environment.

The emitter keeps a list of instructions for each depth of loops. An instruction goes to the
smallest depth at which its operands are available. So loop-invariant values are hoisted out of
loops, and batch-invariant values are computed once for the whole batch. An instruction whose result
is available already is not emitted again (common subexpression elimination).
"""

import struct
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from brax.kernels.codegen import ir
from brax.kernels.codegen.ir import Effect, Group, Instruction, Type

Value = Any
"""The name of an instruction's result (a `str`), or a NumPy scalar."""

LLVM_TYPES = {
    **{"f4": "float", "f8": "double", "i4": "i32", "i8": "i64", "u4": "i32", "u8": "i64"},
    **{"i1": "i8", "i2": "i16", "u1": "i8", "u2": "i16"},
}
"""LLVM's scalar type for each type code: NumPy's kind and the size in bytes. LLVM's integers have
no sign, the instructions have. The code of truth values, `b1`, is `i1` in registers."""


class TooLong(Exception):
    """A kernel has more values than `Emitter.max_values`."""


class Unsupported(Exception):
    """A kernel has an operation that no lowering rule covers, so that XLA has to compile it."""

    where: str = ""
    """The source line that asks for the operation."""


def code_of(dtype: Any) -> str:
    """Return the type code of a dtype: its kind and its size in bytes, such as `f4`.

    Raises:
        Unsupported: if the code generator has no such type.
    """
    try:
        code = np.dtype(dtype).str[1:]
    except TypeError:  # JAX's extended types, such as that of random keys, are no NumPy types.
        code = ""
    # Half precision and complex numbers are left to XLA.
    if code not in LLVM_TYPES and code != "b1":
        raise Unsupported(f"numbers of type {dtype}")
    return code


def is_runtime_value(value: Value) -> bool:
    """Return whether a value is known only when the kernel runs."""
    return isinstance(value, str)


@dataclass(frozen=True, eq=False)
class Buffer:
    """An array of one type in memory, written once in each iteration of the loops around it.

    Two buffers are equal only if they are the same object.
    """

    name: str
    """LLVM's name of the address."""
    code: str
    """The type code of the elements."""
    wide: bool
    """True if each element has one number for each lane, side by side in memory."""
    depth: int
    """The number of loops around it."""
    batch_strided: bool = False
    """True if neighbours are `Emitter.stride` apart, as in a kernel's operand."""


class BufferElement:
    """An element of a buffer: a value that has to be loaded before an instruction can use it."""

    __slots__ = ("buffer", "index")

    def __init__(self, buffer: Buffer, index: int) -> None:
        """Name the element of a buffer at an index."""
        self.buffer, self.index = buffer, index


class Routine(NamedTuple):
    """A function of the module."""

    operands: tuple[tuple[str, Type], ...]
    """The names and types of its operands."""
    type: Type
    """The type of its result: of several, a structure."""
    body: Sequence[Instruction]
    """Its instructions."""


Key = tuple[Any, ...]
"""An expression, by which its value is found again: the operation first, the operands last."""


class Emitter:
    """The instructions of one kernel, while its jaxpr is lowered."""

    def __init__(
        self,
        lanes: int,
        stride: int = 0,
        max_values: int = 0,
        for_gpu: bool = False,
        single_precision: bool = False,
    ) -> None:
        """Start without instructions.

        Args:
            lanes: environments that one instruction works on.
            stride: the distance of neighbours in an operand that has a batch, in elements; 0 if
                there is none.
            max_values: the largest number of values; 0 for no limit.
            for_gpu: whether the kernel is for a GPU, which has no C library.
            single_precision: whether to compute elementary functions of single precision in it.
        """
        self.lanes, self.stride = lanes, stride
        self.max_values, self.for_gpu = max_values, for_gpu
        self.single_precision = single_precision
        self.slots: dict[str, tuple[Type, int]] = {}
        """The type of the numbers of each stack slot, and how many there are, by its name."""
        self.blocks: list[list[Group]] = [[], []]
        """The instructions at each depth: before the loop over the batch (0), in it (1), and in
        loops of the kernel (from 2)."""
        self.declarations: set[str] = set()
        """Declarations of external functions that are called."""
        self.routines: dict[str, Routine] = {}
        """The module's own functions, by their names."""
        # The loop over the batch counts %first.
        self.wide: dict[str, bool] = {"%first": False}
        self._depth: dict[str, int] = {"%first": 1}
        self.available: list[dict[Key, str]] = [{}, {}]
        """For each depth, the available expressions: values by what computes them."""
        self.joined_buffers: list[dict[Key, Buffer]] = [{}, {}]
        """For each depth, buffers into which elements of several arrays were copied. A key is the
        names of their buffers, and the elements: a value, or the name of its buffer and its
        index."""
        self.buffer_sizes: dict[str, int] = {}
        """The size of each buffer in bytes, by its name."""
        self.constants: dict[str, str] = {}
        """Names of the module's constant arrays, by their text."""
        self.loops: Any = None
        """The `loops.Loops` of a kernel with large arrays in memory; None if all is unrolled."""
        self.known: dict[str, float] = {}
        """The numbers that `folding` knows of an operand's elements, by the names of the values."""
        self._once: list[bool] = []
        """For each loop of the kernel around the next instruction, whether it is a branch."""
        self._factors: dict[str, tuple[Value, Value]] = {}
        self._count = 0
        self._types: dict[tuple[str, bool], Type] = {}

    def type_of(self, code: str, wide: bool) -> Type:
        """Return LLVM's type of a value."""
        found = self._types.get((code, wide))
        if found is None:
            found = Type(LLVM_TYPES.get(code, "i1"), self.lanes if wide else 0)
            self._types[code, wide] = found
        return found

    def suffix_of(self, code: str, wide: bool) -> str:
        """Return the end of an LLVM intrinsic's name for a type, such as `v8f32`."""
        bits = f"{'f' if code[0] == 'f' else 'i'}{8 * int(code[1])}"
        return f"v{self.lanes}{bits}" if wide else bits

    def fresh_name(self, prefix: str) -> str:
        """Return a name that no other value has.

        Raises:
            TooLong: if there are more values than allowed.
        """
        # Names of addresses count too: an upper bound of the values.
        self._count += 1
        if self.max_values and self._count > self.max_values:
            raise TooLong
        return f"%{prefix}{self._count}"

    def emit(
        self,
        operation: str,
        kind: Type,
        operands: tuple[str, ...],
        types: tuple[Type | None, ...],
        alignment: int = 0,
    ) -> str:
        """Emit an instruction without side effects at the depth of its operands, once.

        Args:
            operation: LLVM's name of it.
            kind: the type of the result.
            operands: the operands as LLVM writes them.
            types: the type of each operand, see `Instruction.types`.
            alignment: the alignment of an address, in bytes, where it is not that of the type.

        Returns:
            The name of the result.
        """
        # Loop-invariant code motion: the deepest operand decides where the instruction belongs.
        # Literals, types and functions are available everywhere.
        depth = 0
        for x in operands:
            depth = max(depth, self._depth.get(x, 0))
        available, key = self.available[depth], (operation, kind, types, operands)
        if key in available:
            return available[key]
        # A call may take long. Before a branch it would run whether the branch is taken or not.
        if operation == "call" and self.runs_once(depth):
            depth = self.current_depth
            available = self.available[depth]
            if key in available:
                return available[key]
        name = self.fresh_name("v")
        self.wide[name] = bool(kind.lanes)
        self._depth[name] = depth
        instruction = Instruction(operation, operands, types, kind, name, alignment=alignment)
        self.blocks[depth].append((instruction,))
        available[key] = name
        return name

    def address(self, element: Type, base: str, index: int | str) -> str:
        """Emit the computation of an element's address, by an index of type `i8`."""
        operands = str(element), base, str(index)
        return self.emit("getelementptr", ir.PTR, operands, (None, ir.PTR, ir.I64))

    def emit_effect(self, *group: Instruction) -> None:
        """Emit instructions that stay together, with a side effect, at the current depth."""
        # Open loops compute what the effect may depend on, so they have to end before it.
        self._close_loops()
        self.blocks[-1].append(group)

    def load(self, place: str, code: str, wide: bool, index: Value = 0) -> str:
        """Load a value from a stack slot at the current depth; a store may have changed it."""
        self._close_loops()
        return self._load(place, code, wide, index, len(self.blocks) - 1)

    def _load(self, place: str, code: str, wide: bool, index: Value, depth: int) -> str:
        """Load an element of a stack slot at a depth, and return its name."""
        name, kind, at = self.fresh_name("v"), self.type_of(code, wide), self.fresh_name("p")
        self.wide[name], self._depth[name] = wide, depth
        # Address and load are one group, of which the buffer is an operand: liveness is read there.
        self.blocks[depth].append(
            (ir.address(at, kind, place, str(index)), ir.load(name, kind, at))
        )
        return name

    def stack_slot(self, code: str, wide: bool, count: int = 1) -> str:
        """Allocate a stack slot for some numbers of one type, and return its name."""
        name = self.fresh_name("m")
        self.slots[name] = self.type_of(code, wide), count
        return name

    def store(self, x: Value, code: str, wide: bool, place: str, index: Value = 0) -> None:
        """Store a value in a stack slot at the current depth."""
        self._close_loops()
        self._store(x, code, wide, place, index, len(self.blocks) - 1)

    def _store(self, x: Value, code: str, wide: bool, place: str, index: Value, depth: int) -> None:
        """Store a value in a stack slot at a depth."""
        kind, operands = self.type_of(code, wide), self.operand(x, code, wide)
        at = self.fresh_name("p")
        self.blocks[depth].append(
            (ir.address(at, kind, place, str(index)), ir.store(operands, kind, at))
        )

    def element(self, values: Sequence[Value], index: Value, code: str) -> Value:
        """Return one of several values by an index that all lanes share.

        Args:
            values: the values to choose from.
            index: of type `i4`, and in range.
            code: the type code of the values.
        """
        if not is_runtime_value(index):
            return values[int(index)]
        # Without this, broadcast arrays would become tables of one value.
        if all(x is values[0] for x in values):
            return values[0]
        wide = self.widest(*values)
        # The table is filled once, as far out of the loops as its values are available; only the
        # load depends on the index.
        depth = max((self._depth[x] for x in values if is_runtime_value(x)), default=0)
        texts = tuple(str(x) if is_runtime_value(x) else literal(x, code) for x in values)
        available, key = self.available[depth], ("table", code, texts)
        if key not in available:
            available[key] = self.stack_slot(code, wide, len(values))
            for i, x in enumerate(values):
                self._store(x, code, wide, available[key], i, depth)
        table = available[key]
        depth = max(depth, self._depth[index])
        available, place = self.available[depth], ("element", (table, index))
        if place not in available:
            available[place] = self._load(table, code, wide, index, depth)
        return available[place]

    def _close_loops(self) -> None:
        """End the loops over large arrays that are still open."""
        if self.loops:
            self.loops.close_all()

    @property
    def current_depth(self) -> int:
        """The number of loops around the next instruction with a side effect."""
        return len(self.blocks) - 1

    def enter_loop(self, once: bool = False) -> None:
        """Begin the body of a loop, which is a branch if it runs at most once."""
        self._close_loops()
        self._once.append(once)
        self.blocks.append([])
        self.available.append({})
        self.joined_buffers.append({})

    def leave_loop(self) -> None:
        """End the body of a loop, whose instructions follow those before it."""
        self._close_loops()
        # Values of the body do not dominate what follows, so they are no longer available.
        self.available.pop()
        self.joined_buffers.pop()
        self._once.pop()
        body = self.blocks.pop()
        self.blocks[-1] += body

    def runs_once(self, depth: int) -> bool:
        """Return whether what is emitted now runs at most once for each time at a depth."""
        return depth > 0 and all(self._once[depth - 1 :])

    def forget(self, buffers: AbstractSet[str]) -> None:
        """Forget what was read from buffers, by their names, since they have been overwritten."""
        for available in self.available:
            for key in [key for key in available if not buffers.isdisjoint(key[-1])]:
                del available[key]
        for joined in self.joined_buffers:
            for key in [key for key in joined if not buffers.isdisjoint(key[0])]:
                del joined[key]

    def new_value(self, wide: bool, depth: int) -> str:
        """Return the name of a value that the caller defines, such as a loop counter."""
        # Nothing is emitted: the text that defines the name is the caller's.
        name = self.fresh_name("v")
        self.wide[name], self._depth[name] = wide, depth
        return name

    def declare(self, name: str) -> str:
        """Return a name that is no instruction's, such as that of a parameter."""
        self.wide[name], self._depth[name] = False, 0
        return name

    def parameter(self, name: str) -> str:
        """Return the name of a wide value that is new in each iteration over the batch."""
        self.wide[name], self._depth[name] = True, 1
        return name

    def declare_function(self, name: str, result: Type, *operands: Type) -> None:
        """Declare an external function."""
        self.declarations.add(f"declare {result} {name}({', '.join(map(str, operands))})")

    def alignment(self, kind: Type) -> int:
        """Return the alignment of a number of an LLVM type in an operand or a result, in bytes."""
        # A CPU's kernel may begin anywhere in XLA's arrays. A GPU's threads are numbered from the
        # start of an array, and would load what is not aligned byte by byte.
        return kind.bytes if self.for_gpu else 1

    def depth(self, x: Value) -> int:
        """Return the number of loops around a value's definition."""
        if isinstance(x, BufferElement):
            return x.buffer.depth
        return self._depth[x] if is_runtime_value(x) else 0

    def buffer(self, code: str, wide: bool, depth: int, count: int) -> Buffer:
        """Return a new buffer for some numbers of one type; `stack` gives it memory later."""
        name = self.fresh_name("m")
        self.buffer_sizes[name] = count * self.type_of(_stored_code(code), wide).bytes
        return Buffer(name, code, wide, depth)

    def part(self, buffer: Buffer, at: Value, size: int) -> Buffer:
        """Return part number `at` of a buffer in parts of a size, at the current depth.

        Nothing may write to the buffer in the loop around, since no order is kept with what is read
        from the part.
        """
        name, kind = self.fresh_name("m"), self.type_of(_stored_code(buffer.code), buffer.wide)
        start = self.apply("mul", "i4", at, np.int32(size))
        place = ir.address(name, kind, buffer.name, str(start))
        # It counts as a read, which keeps the buffer's memory.
        self.emit_effect(place._replace(effect=Effect.READS))
        return Buffer(name, buffer.code, buffer.wide, self.current_depth)

    def constant_buffer(self, values: Sequence[Any], code: str) -> Buffer:
        """Return a buffer of known numbers, which is a constant of the module."""
        kind = LLVM_TYPES[_stored_code(code)]
        numbers = ", ".join(f"{kind} {literal(x, _stored_code(code))}" for x in values)
        text = f"[{len(values)} x {kind}] [{numbers}]"
        # Equal tables share one constant.
        name = self.constants.setdefault(text, f"@known{len(self.constants)}")
        return Buffer(name, code, False, 0)

    def operand_in_memory(self, numbers: Any, code: str) -> str:
        """Return the address of a constant of the module: known numbers, laid out as an operand."""
        # Truth values are bytes in XLA's arrays.
        kind = LLVM_TYPES.get(code, "i8")
        text = ", ".join(
            f"{kind} {literal(x, code if code != 'b1' else 'i1')}" for x in np.ravel(numbers)
        )
        constant = f"[{np.size(numbers)} x {kind}] [{text}]"
        name = self.constants.setdefault(constant, f"@known{len(self.constants)}")
        return self.declare(name)

    def load_element(self, buffer: Buffer, index: Value) -> str:
        """Load an element of a buffer, by an index of type `i4` that may differ between lanes."""
        code = _stored_code(buffer.code)
        if self.widest(index):
            x = self._gather(buffer, code, str(index))
        else:
            kind, size, alignment = self.type_of(code, buffer.wide), ir.I32, 0
            step = kind
            if buffer.batch_strided:
                # The product of batch and elements may not fit into 32 bits.
                index, size = self._batch_offset(index, False), ir.I64
                step = self.type_of(code, False)
                alignment = self.alignment(step)
            place = ir.address("", step, buffer.name, str(index), size)
            x = self._load_once(place, ir.load("", kind, "", alignment), buffer, index)
        return x if buffer.code != "b1" else self.compare("icmp ne", code, x, np.int32(0))

    def _load_once(
        self, place: Instruction, read: Instruction, buffer: Buffer, index: Value
    ) -> str:
        """Emit a load that no earlier load has made, together with its address.

        A buffer is written once, so a second load of the same element gives the same number.

        Args:
            place: computes the address; without a result.
            read: the load, without a result, and without its operand that is the address.
            buffer: the buffer.
            index: the index of the element.
        """
        depth = max(buffer.depth, self.depth(index))
        available, key = self.available[depth], (read, place.types, place.operands)
        if key not in available:
            at, x = self.fresh_name("p"), self.new_value(buffer.wide or self.widest(index), depth)
            operands = tuple(name or at for name in read.operands)
            # The buffer is an operand of the load's group, from which its liveness is found.
            self.blocks[depth].append(
                (place._replace(result=at), read._replace(result=x, operands=operands))
            )
            available[key] = x
        return available[key]

    def _batch_offset(self, index: Value, wide: bool) -> str:
        """Return where an operand's element is for the first lane, as an `i8` count of elements."""
        if is_runtime_value(index):
            kinds = self.type_of("i4", wide), self.type_of("i8", wide)
            index = self.emit("sext", kinds[1], (index,), kinds[:1])
        else:
            index = np.int64(index)
        # The batch is the last axis: element `index` of environment `first`.
        row = self.apply("mul", "i8", index, np.int64(self.stride))
        return self.apply("add", "i8", row, "%first")

    def _gather(self, buffer: Buffer, code: str, index: str) -> str:
        """Load an element of a buffer at an index of each lane's own."""
        n, size = self.lanes, "i4"
        if buffer.batch_strided:
            index, size = self._batch_offset(index, True), "i8"
        elif buffer.wide:
            index = self.apply("mul", "i4", index, np.int32(n))
        if buffer.wide:
            index = self._of_each_lane(index, size)
        number = self.type_of(code, False)
        place = ir.address("", number, buffer.name, index, self.type_of(size, True))
        result, mask = self.type_of(code, True), self.type_of("b1", True)
        function = f"@llvm.masked.gather.{self.suffix_of(code, True)}.v{n}p0"
        self.declare_function(function, result, place.type, ir.I32, mask, result)
        read = Instruction(
            "call",
            (function, "", str(number.bytes), "splat (i1 true)", "poison"),
            (None, place.type, ir.I32, mask, result),
            result,
            effect=Effect.READS,
        )
        return self._load_once(place, read, buffer, index)

    def _of_each_lane(self, index: Value, code: str) -> str:
        """Return the index of each lane's own number, from that of the first lane's."""
        # The lanes of an element lie side by side: lane i has the i-th number from there on.
        kind = self.type_of(code, True)
        lanes = ", ".join(f"{LLVM_TYPES[code]} {i}" for i in range(self.lanes))
        return self.emit("add", kind, (index, f"<{lanes}>"), (kind, None))

    def store_element(self, buffer: Buffer, index: Value, x: Value) -> Group:
        """Return the store of a number in a buffer; the caller places it in the right loop."""
        code, operand = _stored_code(buffer.code), self.operand(x, buffer.code, buffer.wide)
        kind = self.type_of(code, buffer.wide)
        # Truth values are stored as 0 and -1, and compared with zero when they are loaded.
        if buffer.code == "b1":
            operand = self.emit("sext", kind, (operand,), (self.type_of("b1", buffer.wide),))
        at = self.fresh_name("p")
        return ir.address(at, kind, buffer.name, str(index)), ir.store(operand, kind, at)

    def store_where(self, buffer: Buffer, index: Value, x: Value, where: Value) -> None:
        """Store a number where a truth value holds, in each lane at an index of its own."""
        kind = self.type_of(buffer.code, buffer.wide)
        if not buffer.wide:
            # Without a mask something is stored in any case: at the first place, what is there.
            index = self.select(where, index, np.int32(0), "i4")
            at, old, new = (self.fresh_name("v") for _ in range(3))
            pair = self.operand(x, buffer.code, False), old
            self.emit_effect(
                ir.address(at, kind, buffer.name, str(index)),
                ir.load(old, kind, at),
                Instruction("select", (str(where), *pair), (ir.I1, kind, kind), kind, new),
                ir.store(new, kind, at),
            )
            return
        n, number = self.lanes, self.type_of(buffer.code, False)
        index = self._of_each_lane(self.apply("mul", "i4", index, np.int32(n)), "i4")
        function = f"@llvm.masked.scatter.{self.suffix_of(buffer.code, True)}.v{n}p0"
        at = self.fresh_name("v")
        place = ir.address(at, number, buffer.name, index, self.type_of("i4", True))
        mask = self.type_of("b1", True)
        self.declare_function(function, ir.VOID, kind, place.type, ir.I32, mask)
        given = self.operand(x, buffer.code, True), self.operand(where, "b1", True)
        write = Instruction(
            "call",
            (function, given[0], at, str(number.bytes), given[1]),
            (None, kind, place.type, ir.I32, mask),
            effect=Effect.WRITES,
        )
        self.emit_effect(place, write)

    def widest(self, *values: Value) -> bool:
        """Return whether any of the values is wide."""
        return any(self.wide[x] for x in values if is_runtime_value(x))

    def operand(self, x: Value, code: str, wide: bool) -> str:
        """Return a value as the text of an operand, broadcast to the lanes if it has to be wide."""
        if not is_runtime_value(x):
            text = literal(x, code)
            return f"splat ({LLVM_TYPES.get(code, 'i1')} {text})" if wide else text
        # A wide value never has to become uniform.
        if self.wide[x] == wide:
            return str(x)
        first, whole = ir.broadcast(str(x), self.type_of(code, True), "")
        name = self.emit(first.operation, first.type, first.operands, first.types)
        return self.emit(whole.operation, whole.type, (name, *whole.operands[1:]), whole.types)

    def apply(self, instruction: str, code: str, *values: Value) -> str:
        """Emit an instruction whose operands all have one type."""
        # One wide operand makes the result wide; uniform ones are broadcast.
        wide = self.widest(*values)
        kind = self.type_of(code, wide)
        return self._apply(instruction, kind, kind, [self.operand(x, code, wide) for x in values])

    def _apply(self, operation: str, result: Type, kind: Type, operands: Sequence[str]) -> str:
        """Emit an instruction whose operands all have one type, which is written once."""
        types = kind, *(None,) * (len(operands) - 1)
        return self.emit(operation, result, tuple(operands), types)

    def intrinsic(self, name: str, code: str, *values: Value) -> str:
        """Emit a call of an LLVM intrinsic on numbers of one type, which acts on all lanes."""
        wide = self.widest(*values)
        kind = self.type_of(code, wide)
        function = f"@llvm.{name}.{self.suffix_of(code, wide)}"
        self.declare_function(function, kind, *(kind,) * len(values))
        return self._call(function, kind, kind, [self.operand(x, code, wide) for x in values])

    def _call(self, function: str, result: Type, kind: Type, operands: Sequence[str]) -> str:
        """Emit a call of a function without side effects, whose operands all have one type."""
        types = None, *(kind,) * len(operands)
        return self.emit("call", result, (function, *operands), types)

    def library_call(self, name: str, code: str, *values: Value) -> str:
        """Emit calls of a function of C's mathematics library, for one lane after another."""
        scalar = self.type_of(code, False)
        symbol = f"@{name}{'f' if code == 'f4' else ''}"
        self.declare_function(symbol, scalar, *(scalar,) * len(values))

        # C's library has no vector functions: the lanes are extracted, called, inserted again.
        def by_lane(emitter: Emitter, *operands: str) -> tuple[Value]:
            if not emitter.widest(*operands):
                return (emitter._call(symbol, scalar, scalar, operands),)
            kind, result = emitter.type_of(code, True), "poison"
            for lane in range(emitter.lanes):
                at = str(lane)
                types = kind, ir.I32
                scalars = [emitter.emit("extractelement", scalar, (x, at), types) for x in operands]
                one = emitter._call(symbol, scalar, scalar, scalars)
                given = result, one, at
                result = emitter.emit("insertelement", kind, given, (kind, scalar, ir.I32))
            return (result,)

        return self.routine(name, code, by_lane, *values)[0]

    def routine(
        self, name: str, code: str, build: Callable[..., tuple[Value, ...]], *values: Value
    ) -> list[str]:
        """Call a function of the module that is emitted once.

        Args:
            name: the function's name.
            code: the type code of its operands and results.
            build: takes an emitter and the names of the operands, emits the body, and returns the
                results.
            values: the operands of this call.

        Returns:
            The results of the call.
        """
        wide = self.widest(*values)
        kind = self.type_of(code, wide)
        symbol = f"@brax.{name}.{code}{f'.{self.lanes}' if wide else ''}"
        # Inlined at every use, sines took most of LLVM's time for a step of `generalized`.
        if symbol not in self.routines:
            # The body is a function of its own, so it has its own names and no loops.
            inner = Emitter(self.lanes, for_gpu=self.for_gpu)
            names = [f"%x{i}" for i in range(len(values))]
            for x in names:
                inner.wide[x], inner._depth[x] = wide, 0
            results = [inner.operand(x, code, wide) for x in build(inner, *names)]
            struct = kind._replace(members=len(results))
            # A function of LLVM has one result: a structure of all of them.
            value = "poison"
            for i, x in enumerate(results):
                value = inner.emit("insertvalue", struct, (value, x, str(i)), (struct, kind, None))
            body = [i for group in inner.blocks[0] for i in group]
            end = Instruction("ret", (value,), (struct,), effect=Effect.CONTROL)
            operands = tuple((x, kind) for x in names)
            self.routines[symbol] = Routine(operands, struct, [*body, end])
            self.declarations |= inner.declarations
            self.routines |= inner.routines
        struct = self.routines[symbol].type
        call = self._call(symbol, struct, kind, [self.operand(x, code, wide) for x in values])
        return [
            self.emit("extractvalue", kind, (call, str(i)), (struct, None))
            for i in range(struct.members)
        ]

    def compare(self, predicate: str, code: str, x: Value, y: Value) -> str:
        """Emit a comparison of two numbers: `fcmp` or `icmp` with a predicate."""
        wide = self.widest(x, y)
        operands = [self.operand(each, code, wide) for each in (x, y)]
        return self._apply(predicate, self.type_of("b1", wide), self.type_of(code, wide), operands)

    def any_lane(self, x: Value) -> str:
        """Return whether a truth value holds in any of the lanes, as a uniform value."""
        # A uniform value is its own reduction.
        if not self.widest(x):
            return self.operand(x, "b1", False)
        kind, function = self.type_of("b1", True), f"@llvm.vector.reduce.or.v{self.lanes}i1"
        self.declare_function(function, ir.I1, kind)
        return self._call(function, ir.I1, kind, [x])

    def select(self, which: Value, yes: Value, no: Value, code: str) -> Value:
        """Return `yes` where a truth value holds and `no` elsewhere."""
        # A known condition, or equal cases, need no instruction.
        if not is_runtime_value(which):
            return yes if which else no
        if yes is no or (is_runtime_value(yes) and is_runtime_value(no) and yes == no):
            return yes
        wide = self.widest(which, yes, no)
        kind = self.type_of(code, wide)
        # LLVM takes a scalar condition for wide values as well: it is not broadcast.
        wide_condition = wide and self.wide[which]
        types = self.type_of("b1", wide_condition), kind, kind
        mask = self.operand(which, "b1", wide_condition)
        pair = self.operand(yes, code, wide), self.operand(no, code, wide)
        return self.emit("select", kind, (mask, *pair), types)

    def convert(self, instruction: str, x: Value, before: str, after: str) -> str:
        """Emit a conversion instruction from one type to another."""
        wide = self.wide[x]
        kinds = self.type_of(before, wide), self.type_of(after, wide)
        return self.emit(instruction, kinds[1], (x,), kinds[:1])

    def saturating_cast(self, name: str, x: Value, before: str, after: str) -> str:
        """Convert a float to the nearest integer towards zero that its type has."""
        wide = self.wide[x]
        kinds = self.type_of(before, wide), self.type_of(after, wide)
        lanes = f"v{self.lanes}" if wide else ""
        # XLA saturates too; the plain instruction is undefined for numbers out of range.
        ends = f"{lanes}i{8 * int(after[1])}.{lanes}f{8 * int(before[1])}"
        function = f"@llvm.{name}.sat.{ends}"
        self.declare_function(function, kinds[1], kinds[0])
        return self._call(function, kinds[1], kinds[0], [x])

    def multiply(self, code: str, x: Value, y: Value) -> Value:
        """Return the product of two floats, and remember its factors for `add` and `subtract`."""
        # Exact for all numbers, unlike a product with zero, which may be NaN.
        for a, b in ((x, y), (y, x)):
            if not is_runtime_value(a) and a == 1:
                return b
        name = self.apply("fmul", code, x, y)
        # A product that is only used in fused operations is dropped by the schedule.
        self._factors[name] = x, y
        return name

    def add(self, code: str, x: Value, y: Value) -> Value:
        """Return the sum of two floats; a sum with a product is a fused multiply-add.

        The fused operation is chosen here, by the shape of the expression. So the rounding does
        not depend on the number of lanes or on LLVM's optimization level.
        """
        # A sum with zero is exact, but for the sign of a zero.
        for a, b in ((x, y), (y, x)):
            if not is_runtime_value(a) and a == 0:
                return b
        # If both are products, the second one is fused: sums are accumulated from the left.
        for product, other in ((y, x), (x, y)):
            if is_runtime_value(product) and product in self._factors:
                return self.intrinsic("fma", code, *self._factors[product], other)
        return self.apply("fadd", code, x, y)

    def subtract(self, code: str, x: Value, y: Value) -> Value:
        """Return the difference of two floats, fused as in `add`."""
        if not is_runtime_value(y) and y == 0:
            return x
        if is_runtime_value(y) and y in self._factors:
            a, b = self._factors[y]
            # x - ab = (-a) b + x, rounded once.
            return self.intrinsic("fma", code, self.negative(code, a), b, x)
        if is_runtime_value(x) and x in self._factors:
            return self.intrinsic("fma", code, *self._factors[x], self.negative(code, y))
        return self.apply("fsub", code, x, y)

    def negative(self, code: str, x: Value) -> Value:
        """Return a float with the opposite sign."""
        return self.apply("fneg", code, x) if is_runtime_value(x) else -x


def _stored_code(code: str) -> str:
    """Return the type code with which numbers of a type are kept in memory."""
    # A vector of i1 has no lane that can be addressed, so truth values are kept as integers.
    return "i4" if code == "b1" else code


def literal(x: Any, code: str) -> str:
    """Return a known number as LLVM writes it."""
    if code == "b1":
        return "true" if x else "false"
    if code[0] != "f":
        return str(int(x))
    # LLVM reads a float of either size as the 64 bits of a double in hexadecimal.
    exact = float(np.float32(x)) if code == "f4" else float(x)
    return f"0x{struct.unpack('<Q', struct.pack('<d', exact))[0]:016X}"
