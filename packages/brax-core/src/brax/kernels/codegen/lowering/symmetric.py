"""Lowering rules of the functions of `brax.kernels.symmetric`: loops over memory.

Each is a function of the module, which works on the lower triangles of matrices in memory, for all
lanes at once. Rows that are zero in all lanes are passed over. A function takes the number of rows
and of copies, so that all matrices of a kernel share it.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 6.5; Golub and Van Loan (2013),
Matrix Computations, section 4.1.
"""

from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import LLVM_TYPES, Buffer, Emitter, code_of
from brax.kernels.codegen.loops import buffer_array
from brax.kernels.codegen.lowering.arrays import ElementArray, element_shape


def eliminated(emitter: Emitter, eqn: Any, matrix: ElementArray) -> list[ElementArray]:
    """Lower `brax.kernels.symmetric.eliminated`."""
    code = code_of(eqn.invars[0].aval.dtype)
    shapes = [element_shape(v.aval.shape) for v in eqn.outvars]
    n, copies, own = matrix.shape[0], matrix.shape[2], shapes[1][0]
    rows = copied(emitter, matrix, code)
    inverse = _buffer(emitter, shapes[1], code)
    _call(emitter, _elimination(emitter, code), [rows, inverse], [n, n - own, copies])
    whole = buffer_array(rows, shapes[0])
    out = [whole, buffer_array(inverse, shapes[1])]
    # Nobody may need what is left.
    if len(shapes) == 2:
        return out
    left = whole[: n - own, : n - own]
    zero = np.full((n - own, *matrix.shape[1:]), np.zeros((), code)[()], object)
    return [np.concatenate([zero, whole[n - own :]]), out[1], left]


def add_outer(
    emitter: Emitter, total: Buffer, x: Buffer, y: Buffer, at: Any, shape: tuple[int, ...]
) -> None:
    """Add the outer products of one chunk to a matrix in memory.

    Args:
        emitter: receives the call.
        total: the matrix.
        x: the vectors of all chunks.
        y: the other vectors.
        at: the number of the chunk.
        shape: rows, copies and terms of a chunk.
    """
    n, copies, terms = shape
    place = emitter.apply("mul", "i4", at, np.int32(terms * n * copies))
    function = _outer_products(emitter, total.code, terms)
    _call(emitter, function, [total, (x, place), (y, place)], [n, copies])


def _buffer(emitter: Emitter, shape: tuple[int, ...], code: str) -> Buffer:
    """Return a new buffer for an array, at the current depth."""
    size = int(np.prod(shape))
    return emitter.buffer(code, emitter.lanes > 1, emitter.current_depth, size)


def copied(emitter: Emitter, x: ElementArray, code: str) -> Buffer:
    """Return a buffer of its own with a copy of an array."""
    buffer = _buffer(emitter, x.shape, code)
    emitter.loops.copy(x, code, buffer)
    return buffer


def in_memory(emitter: Emitter, x: ElementArray, code: str) -> Buffer:
    """Return a buffer with an array's elements in order: its own if it is one, else a copy."""
    buffer = emitter.loops.whole_buffer(x)
    fits = buffer and buffer.wide == (emitter.lanes > 1) and not buffer.batch_strided
    return buffer if fits else copied(emitter, x, code)


def _call(emitter: Emitter, function: str, buffers: list[Any], numbers: list[int]) -> None:
    """Call a function of the module with addresses in buffers, and numbers."""
    lines, arguments = [], []
    for each in buffers:
        buffer, place = each if isinstance(each, tuple) else (each, None)
        name = buffer.name
        if place is not None:
            name = emitter.fresh_name("p")
            kind = emitter.type_of(buffer.code, buffer.wide)
            lines.append(f"{name} = getelementptr {kind}, ptr {buffer.name}, i32 {place}")
        arguments.append(f"ptr {name}")
    arguments += [f"i32 {n}" for n in numbers]
    lines.append(f"call void {function}({', '.join(arguments)})")
    emitter.emit_effect("\n".join(lines), loads=True)


class _Function:
    """The text of a function of the module, written line by line."""

    def __init__(self, emitter: Emitter, name: str, code: str, operands: str) -> None:
        """Begin the function."""
        wide = emitter.lanes > 1
        self.lanes, self.scalar = emitter.lanes, LLVM_TYPES[code]
        self.kind = emitter.type_of(code, wide)
        self.bits = f"v{emitter.lanes}f{8 * int(code[1])}" if wide else f"f{8 * int(code[1])}"
        self.symbol = f"@brax.{name}.{code}.{emitter.lanes}"
        self.lines = [f"define internal void {self.symbol}({operands}) {{", "entry:"]
        self._block, self._count = "entry", 0

    def name(self) -> str:
        """Return a new name."""
        self._count += 1
        return f"%t{self._count}"

    def let(self, text: str) -> str:
        """Add an instruction, and return its result."""
        name = self.name()
        self.lines.append(f"{name} = {text}")
        return name

    def index(self, *terms: tuple[str, str]) -> str:
        """Return the sum of products of two 32-bit numbers."""
        out = "0"
        for a, b in terms:
            product = self.let(f"mul i32 {a}, {b}")
            out = product if out == "0" else self.let(f"add i32 {out}, {product}")
        return out

    def at(self, base: str, index: str) -> str:
        """Return the address of an element."""
        return self.let(f"getelementptr {self.kind}, ptr {base}, i32 {index}")

    def load(self, address: str) -> str:
        """Load an element."""
        return self.let(f"load {self.kind}, ptr {address}")

    def store(self, x: str, address: str) -> None:
        """Store an element."""
        self.lines.append(f"store {self.kind} {x}, ptr {address}")

    def fused(self, a: str, b: str, c: str) -> str:
        """Return a b + c, with a single rounding where the machine has it."""
        kind = self.kind
        return self.let(
            f"call {kind} @llvm.fmuladd.{self.bits}({kind} {a}, {kind} {b}, {kind} {c})"
        )

    def some(self, values: list[str]) -> str:
        """Return whether any of the values differs from zero in any lane; NaN does."""
        mask = f"<{self.lanes} x i1>" if self.lanes > 1 else "i1"
        found = ""
        for x in values:
            here = self.let(f"fcmp une {self.kind} {x}, zeroinitializer")
            found = self.let(f"or {mask} {found}, {here}") if found else here
        if self.lanes == 1:
            return found
        return self.let(f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({mask} {found})")

    def loop(self, label: str, first: str, end: str, step: int = 1) -> str:
        """Begin a loop of a counter from `first` while it is below `end`, or not below for -1."""
        i, before = f"%{label}", self._block
        compare = "slt" if step > 0 else "sge"
        self.lines += [
            f"br label %{label}.head",
            f"{label}.head:",
            f"{i} = phi i32 [ {first}, %{before} ], [ {i}.next, %{label}.step ]",
            f"{i}.more = icmp {compare} i32 {i}, {end}",
            f"br i1 {i}.more, label %{label}.body, label %{label}.end",
            f"{label}.body:",
        ]
        self._block = f"{label}.body"
        return i

    def skip(self, label: str, unless: str) -> None:
        """Go on with the next iteration of a loop unless a truth value holds."""
        block = self.name()[1:]
        self.lines += [f"br i1 {unless}, label %{block}, label %{label}.step", f"{block}:"]
        self._block = block

    def end_loop(self, label: str, step: int = 1) -> None:
        """End a loop."""
        self.lines += [
            f"br label %{label}.step",
            f"{label}.step:",
            f"%{label}.next = add i32 %{label}, {step}",
            f"br label %{label}.head",
            f"{label}.end:",
        ]
        self._block = f"{label}.end"

    def finish(self, emitter: Emitter) -> str:
        """End the function, add it to the module, and return its symbol."""
        self.lines += ["ret void", "}"]
        kind, mask = self.kind, f"<{self.lanes} x i1>"
        emitter.declarations.add(
            f"declare {kind} @llvm.fmuladd.{self.bits}({kind}, {kind}, {kind})"
        )
        if self.lanes > 1:
            emitter.declarations.add(f"declare i1 @llvm.vector.reduce.or.v{self.lanes}i1({mask})")
        emitter.routines[self.symbol] = "void", 0, "\n".join(self.lines)
        return self.symbol


def _elimination(emitter: Emitter, code: str) -> str:
    """Return the function that eliminates rows in place, the last first."""
    f = _Function(emitter, "eliminated", code, "ptr %a, ptr %d, i32 %n, i32 %above, i32 %copies")
    one = "1.0"
    if f.lanes > 1:
        one = f"splat ({f.scalar} 1.0)"
    c = f.loop("c", "0", "%copies")
    last = f.let("sub i32 %n, 1")
    i = f.loop("i", last, "%above", -1)
    row = f.let(f"mul i32 {i}, %n")

    def entry(of_row: str, column: str) -> str:
        """Return the address of an entry of this copy, given the row's first."""
        place = f.let(f"add i32 {of_row}, {column}")
        return f.at("%a", f.let(f"add i32 {f.let(f'mul i32 {place}, %copies')}, {c}"))

    inverse = f.let(f"fdiv {f.kind} {one}, {f.load(entry(row, i))}")
    own = f.let(f"sub i32 {i}, %above")
    f.store(inverse, f.at("%d", f.let(f"add i32 {f.let(f'mul i32 {own}, %copies')}, {c}")))
    j = f.loop("j", "0", i)
    there = f.load(entry(row, j))
    # An entry that is zero in all lanes changes nothing: this is the sparsity of the tree.
    f.skip("j", f.some([there]))
    scaled = f.let(f"fneg {f.kind} {f.let(f'fmul {f.kind} {there}, {inverse}')}")
    other, end = f.let(f"mul i32 {j}, %n"), f.let(f"add i32 {j}, 1")
    k = f.loop("k", "0", end)
    address = entry(other, k)
    f.store(f.fused(scaled, f.load(entry(row, k)), f.load(address)), address)
    f.end_loop("k")
    f.end_loop("j")
    # The row of L: scaled before the diagonal, zero from there on.
    m = f.loop("m", "0", i)
    address = entry(row, m)
    f.store(f.let(f"fmul {f.kind} {f.load(address)}, {inverse}"), address)
    f.end_loop("m")
    z = f.loop("z", i, "%n")
    f.store("zeroinitializer" if f.lanes > 1 else "0.0", entry(row, z))
    f.end_loop("z")
    f.end_loop("i", -1)
    f.end_loop("c")
    return f.finish(emitter)


def _outer_products(emitter: Emitter, code: str, terms: int) -> str:
    """Return the function that adds outer products to the lower triangle of a matrix."""
    f = _Function(
        emitter, f"outer_sums.{terms}", code, "ptr %a, ptr %x, ptr %y, i32 %n, i32 %copies"
    )
    c = f.loop("c", "0", "%copies")

    def entries(base: str, row: str) -> list[str]:
        """Return the entries of all terms in a row, which lie side by side."""
        place = f.let(f"add i32 {f.let(f'mul i32 {row}, %copies')}, {c}")
        first = f.at(base, f.let(f"mul i32 {place}, {terms}"))
        return [f.load(f.at(first, str(t))) for t in range(terms)]

    p = f.loop("p", "0", "%n")
    left = entries("%x", p)
    f.skip("p", f.some(left))
    row, end = f.let(f"mul i32 {p}, %n"), f.let(f"add i32 {p}, 1")
    q = f.loop("q", "0", end)
    place = f.let(f"mul i32 {f.let(f'add i32 {row}, {q}')}, %copies")
    address = f.at("%a", f.let(f"add i32 {place}, {c}"))
    sum_ = f.load(address)
    for x, y in zip(left, entries("%y", q), strict=True):
        sum_ = f.fused(x, y, sum_)
    f.store(sum_, address)
    f.end_loop("q")
    f.end_loop("p")
    f.end_loop("c")
    return f.finish(emitter)
