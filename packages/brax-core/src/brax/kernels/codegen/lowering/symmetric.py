"""Lowering rules of the functions of `brax.kernels.symmetric`: loops over memory.

Each is a function of the module, which works on the lower triangles of matrices in memory, for all
lanes at once. Entries that are zero in all lanes change nothing: the indices of the others are
listed first, and the loops run over the lists. This is the sparsity of the tree, whichever contacts
there are. Matrices of one size share a function.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 6.5; Golub and Van Loan (2013),
Matrix Computations, section 4.1.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import LLVM_TYPES, Buffer, Emitter, code_of
from brax.kernels.codegen.loops import buffer_array
from brax.kernels.codegen.lowering.arrays import ElementArray, element_shape
from brax.kernels.symmetric import BACKWARD, ELIMINATED, FORWARD, OUTER_SUMS

_SUMS = 4
"""Sums that a scalar product is split into."""


def eliminated(emitter: Emitter, eqn: Any, matrix: ElementArray) -> list[ElementArray]:
    """Lower `brax.kernels.symmetric.eliminated`."""
    code = code_of(eqn.invars[0].aval.dtype)
    shapes = [element_shape(v.aval.shape) for v in eqn.outvars]
    n, copies, own = matrix.shape[0], matrix.shape[2], shapes[1][0]
    rows = copied(emitter, matrix, code)
    inverse = _buffer(emitter, shapes[1], code)
    _call(emitter, _elimination(emitter, code, (n, n - own, copies)), [rows, inverse])
    whole = buffer_array(rows, shapes[0])
    out = [whole, buffer_array(inverse, shapes[1])]
    # Nobody may need what is left.
    if len(shapes) == 2:
        return out
    left = whole[: n - own, : n - own]
    zero = np.full((n - own, *matrix.shape[1:]), np.zeros((), code)[()], object)
    return [np.concatenate([zero, whole[n - own :]]), out[1], left]


def substituted_forward(
    emitter: Emitter, eqn: Any, rows: ElementArray, inverse: ElementArray, load: ElementArray
) -> list[ElementArray]:
    """Lower `brax.kernels.symmetric.substituted_forward`."""
    code = code_of(eqn.invars[0].aval.dtype)
    n, own, copies = load.shape[0], inverse.shape[0], load.shape[1]
    x = copied(emitter, load, code)
    given = [in_memory(emitter, each, code) for each in (rows, inverse)]
    _call(emitter, _forward_substitution(emitter, code, (n, n - own, copies)), [*given, x])
    out = buffer_array(x, load.shape)
    return [out[n - own :], out[: n - own]][: len(eqn.outvars)]


def substituted_backward(
    emitter: Emitter, eqn: Any, rows: ElementArray, *parts: ElementArray
) -> list[ElementArray]:
    """Lower `brax.kernels.symmetric.substituted_backward`."""
    code = code_of(eqn.invars[0].aval.dtype)
    path = np.concatenate(parts)
    n, own, copies = path.shape[0], parts[-1].shape[0], path.shape[1]
    x = copied(emitter, path, code)
    given = in_memory(emitter, rows, code)
    _call(emitter, _backward_substitution(emitter, code, (n, n - own, copies)), [given, x])
    return [buffer_array(x, path.shape)]


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
    function = _outer_products(emitter, total.code, shape)
    _call(emitter, function, [total, (x, place), (y, place)])


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


def _call(emitter: Emitter, function: str, buffers: list[Any]) -> None:
    """Call a function of the module with addresses in buffers."""
    lines, arguments = [], []
    for each in buffers:
        buffer, place = each if isinstance(each, tuple) else (each, None)
        name = buffer.name
        if place is not None:
            name = emitter.fresh_name("p")
            kind = emitter.type_of(buffer.code, buffer.wide)
            lines.append(f"{name} = getelementptr {kind}, ptr {buffer.name}, i32 {place}")
        arguments.append(f"ptr {name}")
    lines.append(f"call void {function}({', '.join(arguments)})")
    emitter.emit_effect("\n".join(lines), loads=True)


class _List:
    """A list of indices in memory."""

    def __init__(self, address: str) -> None:
        """Name the list, which is filled later."""
        self._address, self.count = address, "0"

    def item(self, f: "_Function", place: str) -> str:
        """Return the address of an item."""
        return f.let(f"getelementptr i32, ptr {self._address}, i32 {place}")

    def get(self, f: "_Function", place: str) -> str:
        """Return an item."""
        return f.let(f"load i32, ptr {self.item(f, place)}")


class _Function:
    """The text of a function of the module, written line by line."""

    def __init__(
        self, emitter: Emitter, name: str, code: str, operands: str, sizes: tuple[int, ...]
    ) -> None:
        """Begin the function; its operands are addresses, and sizes are part of its text."""
        wide = emitter.lanes > 1
        self.lanes, self.scalar = emitter.lanes, LLVM_TYPES[code]
        self.kind = emitter.type_of(code, wide)
        self.bits = f"v{emitter.lanes}f{8 * int(code[1])}" if wide else f"f{8 * int(code[1])}"
        self.symbol = ".".join(map(str, ("@brax", name, code, emitter.lanes, *sizes)))
        self.zero = "zeroinitializer" if wide else "0.0"
        self.one = f"splat ({self.scalar} 1.0)" if wide else "1.0"
        arguments = ", ".join(f"ptr {each}" for each in operands.split())
        self.lines = [f"define internal void {self.symbol}({arguments}) {{", "entry:"]
        self.n, self.copies = sizes[0], sizes[-1]
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

    def row(self, base: str, i: str, copy: str) -> Callable[[str], str]:
        """Return a function from columns to addresses in a row of a copy of a matrix."""
        first = self.let(f"mul i32 {i}, {self.n}")
        column = self.column(base, copy)
        return lambda j: column(self.let(f"add i32 {first}, {j}"))

    def column(self, base: str, copy: str) -> Callable[[str], str]:
        """Return a function from indices to addresses in a copy of a vector."""
        return lambda i: self.at(
            base, self.let(f"add i32 {self.let(f'mul i32 {i}, {self.copies}')}, {copy}")
        )

    def variable(self, name: str) -> str:
        """Reserve memory for an element, before any loop."""
        self.lines.append(f"{name} = alloca {self.kind}")
        return name

    def declare_list(self, label: str) -> None:
        """Reserve memory for a list of indices of rows, before any loop."""
        self.lines.append(f"%{label}.list = alloca i32, i32 {self.n}")
        self.lines.append(f"%{label}.count = alloca i32")

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

    def add(self, x: str, to: str) -> None:
        """Add to a 32-bit number in memory."""
        now = self.let(f"load i32, ptr {to}")
        self.lines.append(f"store i32 {self.let(f'add i32 {now}, {x}')}, ptr {to}")

    def list_nonzero(self, label: str, end: str, entries: Callable[[str], list[str]]) -> _List:
        """List the indices below `end` of which some entry differs from zero in some lane."""
        found, count = _List(f"%{label}.list"), f"%{label}.count"
        self.lines.append(f"store i32 0, ptr {count}")
        i = self.loop(label, "0", end)
        # Every index is written; one that is not counted is written over by the next.
        number = self.let(f"load i32, ptr {count}")
        self.lines.append(f"store i32 {i}, ptr {found.item(self, number)}")
        some = self.some(entries(i))
        self.add(self.let(f"zext i1 {some} to i32"), count)
        self.end_loop(label)
        found.count = self.let(f"load i32, ptr {count}")
        return found

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


def _elimination(emitter: Emitter, code: str, sizes: tuple[int, int, int]) -> str:
    """Return the function that eliminates rows in place, the last first."""
    n, above, copies = sizes
    f = _Function(emitter, ELIMINATED, code, "%a %d", sizes)
    f.declare_list("j")
    c = f.loop("c", "0", str(copies))
    i = f.loop("i", str(n - 1), str(above), -1)
    row = f.row("%a", i, c)
    inverse = f.let(f"fdiv {f.kind} {f.one}, {f.load(row(i))}")
    f.store(inverse, f.column("%d", c)(f.let(f"sub i32 {i}, {above}")))
    listed = f.list_nonzero("j", i, lambda j: [f.load(row(j))])
    # Both indices of what is subtracted are in the list.
    p = f.loop("p", "0", listed.count)
    j = listed.get(f, p)
    scaled = f.let(f"fneg {f.kind} {f.let(f'fmul {f.kind} {f.load(row(j))}, {inverse}')}")
    other, end = f.row("%a", j, c), f.let(f"add i32 {p}, 1")
    q = f.loop("q", "0", end)
    k = listed.get(f, q)
    address = other(k)
    f.store(f.fused(scaled, f.load(row(k)), f.load(address)), address)
    f.end_loop("q")
    f.end_loop("p")
    # The row of L: scaled before the diagonal, zero from there on.
    m = f.loop("m", "0", listed.count)
    address = row(listed.get(f, m))
    f.store(f.let(f"fmul {f.kind} {f.load(address)}, {inverse}"), address)
    f.end_loop("m")
    z = f.loop("z", i, str(n))
    f.store(f.zero, row(z))
    f.end_loop("z")
    f.end_loop("i", -1)
    f.end_loop("c")
    return f.finish(emitter)


def _outer_products(emitter: Emitter, code: str, sizes: tuple[int, int, int]) -> str:
    """Return the function that adds outer products to the lower triangle of a matrix."""
    n, copies, terms = sizes
    f = _Function(emitter, f"{OUTER_SUMS}.{terms}", code, "%a %x %y", (n, copies))
    f.declare_list("l")
    c = f.loop("c", "0", str(copies))

    def entries(base: str, row: str) -> list[str]:
        """Return the entries of all terms in a row, which lie side by side."""
        place = f.let(f"add i32 {f.let(f'mul i32 {row}, {copies}')}, {c}")
        first = f.at(base, f.let(f"mul i32 {place}, {terms}"))
        return [f.load(f.at(first, str(t))) for t in range(terms)]

    # The sum is symmetric: where all terms of y are zero, its row is zero and its column too.
    listed = f.list_nonzero("l", str(n), lambda i: entries("%y", i))
    p = f.loop("p", "0", listed.count)
    i = listed.get(f, p)
    left, row, end = entries("%x", i), f.row("%a", i, c), f.let(f"add i32 {p}, 1")
    q = f.loop("q", "0", end)
    k = listed.get(f, q)
    address = row(k)
    sum_ = f.load(address)
    for x, y in zip(left, entries("%y", k), strict=True):
        sum_ = f.fused(x, y, sum_)
    f.store(sum_, address)
    f.end_loop("q")
    f.end_loop("p")
    f.end_loop("c")
    return f.finish(emitter)


def _forward_substitution(emitter: Emitter, code: str, sizes: tuple[int, int, int]) -> str:
    """Return the function that substitutes in place, the last row first."""
    n, above, copies = sizes
    f = _Function(emitter, FORWARD, code, "%l %d %x", sizes)
    c = f.loop("c", "0", str(copies))
    i = f.loop("i", str(n - 1), str(above), -1)
    row, x, d = f.row("%l", i, c), f.column("%x", c), f.column("%d", c)
    here = f.load(x(i))
    f.store(f.let(f"fmul {f.kind} {here}, {f.load(d(f.let(f'sub i32 {i}, {above}')))}"), x(i))
    less = f.let(f"fneg {f.kind} {here}")
    j = f.loop("j", "0", i)
    f.store(f.fused(less, f.load(row(j)), f.load(x(j))), x(j))
    f.end_loop("j")
    f.end_loop("i", -1)
    f.end_loop("c")
    return f.finish(emitter)


def _backward_substitution(emitter: Emitter, code: str, sizes: tuple[int, int, int]) -> str:
    """Return the function that substitutes in place, the first row first."""
    n, above, copies = sizes
    f = _Function(emitter, BACKWARD, code, "%l %x", sizes)
    sums = [f.variable(f"%sum{k}") for k in range(_SUMS)]
    c = f.loop("c", "0", str(copies))
    i = f.loop("i", str(above), str(n))
    row, x = f.row("%l", i, c), f.column("%x", c)
    for sum_ in sums:
        f.store(f.zero, sum_)
    # Sums of their own do not wait for each other.
    end = f.let(f"and i32 {i}, {-_SUMS}")
    j = f.loop("j", "0", end, _SUMS)
    for k, sum_ in enumerate(sums):
        at = f.let(f"add i32 {j}, {k}")
        f.store(f.fused(f.load(row(at)), f.load(x(at)), f.load(sum_)), sum_)
    f.end_loop("j", _SUMS)
    r = f.loop("r", end, i)
    f.store(f.fused(f.load(row(r)), f.load(x(r)), f.load(sums[0])), sums[0])
    f.end_loop("r")
    total = f.load(x(i))
    for sum_ in sums:
        total = f.let(f"fsub {f.kind} {total}, {f.load(sum_)}")
    f.store(total, x(i))
    f.end_loop("i")
    f.end_loop("c")
    return f.finish(emitter)
