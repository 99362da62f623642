"""Lowering rules of the functions of `brax.kernels.symmetric`: loops over memory.

Each is a function of the module, which works on the lower triangles of matrices in memory, for all
lanes at once. Entries that are zero in all lanes change nothing: the indices of the others are
listed first, and the loops run over the lists. This is the sparsity of the tree, whichever contacts
there are. Matrices of one size share a function.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 6.5; Golub and Van Loan (2013),
Matrix Computations, section 4.1.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from brax.kernels.codegen import ir
from brax.kernels.codegen.emitter import Buffer, Emitter, Routine, code_of
from brax.kernels.codegen.ir import Effect, Instruction, Type
from brax.kernels.codegen.loops import LastRead, buffer_array
from brax.kernels.codegen.lowering.arrays import ElementArray, element_shape
from brax.kernels.symmetric import (
    BACKWARD,
    ELIMINATED,
    FORWARD,
    MULTIPLIED,
    OUTER_SUMS,
    WITH_DIAGONAL,
    triangle_entry,
    triangle_size,
)

_SUMS = 4
"""Sums that a scalar product is split into."""

_PANEL = 4
"""Rows that are eliminated at once. With two rows before them at a time, six loads and two stores
serve eight products; a row alone needs two loads and a store for each."""

_OUTER_ROWS = 4, 2
"""Rows of a sum of outer products at once: with three terms, seven loads and four stores serve
twelve products; a row alone needs four loads and a store for three."""

_FACTORS = 4
"""Rows that are multiplied at once: six loads and a store serve eight products."""

_REGISTERS = {64: 32}
"""Number of a processor's vector registers by their bytes; 16 of any other size."""


def eliminated(
    emitter: Emitter, eqn: Any, free: LastRead, matrix: ElementArray
) -> list[ElementArray]:
    """Lower `brax.kernels.symmetric.eliminated`."""
    code = code_of(eqn.invars[0].aval.dtype)
    shapes = [element_shape(v.aval.shape) for v in eqn.outvars]
    n, copies, own = matrix.shape[0], matrix.shape[2], shapes[1][0]
    rows = changeable(emitter, matrix, code, free)
    inverse = new_buffer(emitter, shapes[1], code)
    call(emitter, _elimination(emitter, code, (n, n - own, copies)), [rows, inverse])
    whole = buffer_array(rows, shapes[0])
    out = [whole, buffer_array(inverse, shapes[1])]
    # Nobody may need what is left.
    if len(shapes) == 2:
        return out
    left = whole[: n - own, : n - own]
    zero = np.full((n - own, *matrix.shape[1:]), np.zeros((), code)[()], object)
    return [np.concatenate([zero, whole[n - own :]]), out[1], left]


def substituted_forward(
    emitter: Emitter,
    eqn: Any,
    free: LastRead,
    rows: ElementArray,
    inverse: ElementArray,
    load: ElementArray,
) -> list[ElementArray]:
    """Lower `brax.kernels.symmetric.substituted_forward`."""
    code = code_of(eqn.invars[0].aval.dtype)
    n, own, copies = load.shape[0], inverse.shape[1], load.shape[1]
    x = changeable(emitter, load, code, free)
    given = [in_memory(emitter, each, code) for each in (rows, inverse)]
    call(emitter, _forward_substitution(emitter, code, (n, n - own, copies)), [*given, x])
    out = buffer_array(x, load.shape)
    return [out[n - own :], out[None, : n - own]][: len(eqn.outvars)]


def substituted_backward(
    emitter: Emitter,
    eqn: Any,
    free: LastRead,
    rows: ElementArray,
    *parts: ElementArray,
) -> list[ElementArray]:
    """Lower `brax.kernels.symmetric.substituted_backward`."""
    code = code_of(eqn.invars[0].aval.dtype)
    path = np.concatenate(parts)
    n, own, copies = path.shape[0], parts[-1].shape[0], path.shape[1]
    x = changeable(emitter, path, code, free)
    given = in_memory(emitter, rows, code)
    call(emitter, _backward_substitution(emitter, code, (n, n - own, copies)), [given, x])
    return [buffer_array(x, path.shape)]


def multiplied(
    emitter: Emitter, eqn: Any, free: LastRead, matrix: ElementArray, x: ElementArray
) -> list[ElementArray]:
    """Lower `brax.kernels.symmetric.multiplied`."""
    code, (n, copies, *_) = code_of(eqn.outvars[0].aval.dtype), x.shape
    given = [in_memory(emitter, each, code) for each in (matrix, x)]
    out = new_buffer(emitter, x.shape, code)
    call(emitter, _product(emitter, code, (n, copies)), [*given, out])
    return [buffer_array(out, x.shape)]


def with_diagonal(
    emitter: Emitter, eqn: Any, free: LastRead, matrix: ElementArray, added: ElementArray
) -> list[ElementArray]:
    """Lower `brax.kernels.symmetric.with_diagonal`: in place if nobody reads the matrix later."""
    code, (own, copies, *_) = code_of(eqn.outvars[0].aval.dtype), added.shape
    sizes, given = (len(matrix), len(matrix) - own, copies), in_memory(emitter, added, code)
    sum_ = _own(emitter, matrix, free)
    if sum_:
        call(emitter, _diagonal_sum(emitter, code, sizes), [sum_, given])
    else:
        sum_ = new_buffer(emitter, matrix.shape, code)
        function = _diagonal_sum(emitter, code, sizes, copy=True)
        call(emitter, function, [sum_, given, in_memory(emitter, matrix, code)])
    return [buffer_array(sum_, matrix.shape)]


def add_outer(
    emitter: Emitter,
    total: Buffer,
    rows: Buffer,
    weights: Buffer,
    at: Any,
    shape: tuple[int, int, int],
    entries: int,
) -> None:
    """Add JᵀDJ of one chunk to a matrix in memory.

    Args:
        emitter: receives the call.
        total: the matrix.
        rows: the Jacobian of all chunks.
        weights: D of all chunks.
        at: the number of the chunk.
        shape: rows of the matrix, copies, and terms of a chunk.
        entries: number of entries of a constraint's D.
    """
    n, copies, terms = shape
    constraints = terms // triangle_size(entries)
    places = [
        emitter.apply("mul", "i4", at, np.int32(size))
        for size in (terms * n * copies, entries * constraints * copies)
    ]
    function = _outer_products(emitter, total.code, shape, entries)
    call(emitter, function, [total, (rows, places[0]), (weights, places[1])])


def new_buffer(emitter: Emitter, shape: tuple[int, ...], code: str) -> Buffer:
    """Return a new buffer for an array, at the current depth."""
    size = int(np.prod(shape))
    return emitter.buffer(code, emitter.lanes > 1, emitter.current_depth, size)


def changeable(emitter: Emitter, x: ElementArray, code: str, free: LastRead) -> Buffer:
    """Return a buffer with an array's elements that may be changed: its own if free, else a copy.

    Args:
        emitter: receives the instructions.
        x: the array.
        code: the type code of its elements.
        free: returns the names of the buffers that nobody else reads from here on.
    """
    return _own(emitter, x, free) or _copied(emitter, x, code)


def _own(emitter: Emitter, x: ElementArray, free: LastRead) -> Buffer | None:
    """Return the buffer of an array that may be changed, None if there is none."""
    buffer = emitter.loops.changeable(x, free)
    if not buffer or buffer.wide != (emitter.lanes > 1):
        return None
    emitter.forget({buffer.name})
    # What is computed from it now must not be hoisted to where it was filled.
    return replace(buffer, depth=emitter.current_depth)


def _copied(emitter: Emitter, x: ElementArray, code: str) -> Buffer:
    """Return a buffer of its own with a copy of an array."""
    buffer = new_buffer(emitter, x.shape, code)
    emitter.loops.copy(x, code, buffer)
    return buffer


def in_memory(emitter: Emitter, x: ElementArray, code: str) -> Buffer:
    """Return a buffer with an array's elements in order: its own if it is one, else a copy."""
    buffer = emitter.loops.whole_buffer(x)
    fits = buffer and buffer.wide == (emitter.lanes > 1) and not buffer.batch_strided
    return buffer if fits else _copied(emitter, x, code)


def call(emitter: Emitter, function: str, buffers: list[Any]) -> None:
    """Call a function of the module with addresses in buffers."""
    group, arguments = [], []
    for each in buffers:
        buffer, place = each if isinstance(each, tuple) else (each, None)
        name = buffer.name
        if place is not None:
            name = emitter.fresh_name("p")
            kind = emitter.type_of(buffer.code, buffer.wide)
            group.append(ir.address(name, kind, buffer.name, place))
        arguments.append(name)
    types = None, *(ir.PTR,) * len(arguments)
    call = Instruction("call", (function, *arguments), types, effect=Effect.READS_AND_WRITES)
    emitter.emit_effect(*group, call)


class _List(NamedTuple):
    """A list of indices in memory."""

    address: str
    """Address of the first."""
    length: str
    """Number of indices."""


class RoutineWriter:
    """A function of the module, written instruction by instruction.

    Integers have 64 bits, as addresses do. LLVM only selects instructions for them, so values that
    loops carry are phi nodes, and factors of one are left out.
    """

    def __init__(
        self, emitter: Emitter, name: str, code: str, operands: str, sizes: tuple[int, ...]
    ) -> None:
        """Begin the function; its operands are addresses, and sizes are part of its text."""
        self.lanes, self.kind = emitter.lanes, emitter.type_of(code, emitter.lanes > 1)
        wide = bool(self.kind.lanes)
        self.scalar = self.kind.scalar
        self.bytes = Type(self.scalar).bytes
        self.suffix = emitter.suffix_of(code, wide)
        self.symbol = "@" + ".".join(map(str, (name, code, emitter.lanes, *sizes)))
        self.zero = "zeroinitializer" if wide else "0.0"
        self.one = f"splat ({self.scalar} 1.0)" if wide else "1.0"
        self.operands = tuple((each, ir.PTR) for each in operands.split())
        self.body = [ir.label("entry")]
        self.n, self.copies = sizes[0], sizes[-1]
        self._block, self._count = "entry", 0
        self._loops: list[tuple[str, int, int]] = []

    def let(
        self,
        operation: str,
        kind: Type,
        operands: tuple[str, ...],
        types: tuple[Type | None, ...],
    ) -> str:
        """Add an instruction, and return its result; see `Emitter.emit`."""
        self._count += 1
        name = f"%t{self._count}"
        self.body.append(Instruction(operation, operands, types, kind, name))
        return name

    def apply(self, operation: str, *operands: str) -> str:
        """Return the result of an operation on numbers."""
        return self.let(operation, self.kind, operands, (self.kind, *(None,) * (len(operands) - 1)))

    def integer(self, operation: str, a: str, b: str, kind: Type = ir.I64) -> str:
        """Return the result of an operation on two integers."""
        return self.let(operation, kind, (a, b), (kind, None))

    def compare(self, operation: str, a: str, b: str, kind: Type = ir.I64) -> str:
        """Return the truth value of a comparison of two integers."""
        return self.let(operation, kind._replace(scalar="i1"), (a, b), (kind, None))

    def add(self, a: str, b: str) -> str:
        """Return the sum of two integers."""
        if "0" in (a, b):
            return b if a == "0" else a
        return self.integer("add", a, b)

    def times(self, a: str, factor: int) -> str:
        """Return an integer times a known factor."""
        return a if factor == 1 or a == "0" else self.integer("mul", a, str(factor))

    def smaller(self, a: str, b: str) -> str:
        """Return the smaller of two integers."""
        less = self.compare("icmp slt", a, b)
        return self.let("select", ir.I64, (less, a, b), (ir.I1, ir.I64, ir.I64))

    def row(self, base: str, i: str, copy: str) -> Callable[[str], str]:
        """Return a function from columns to addresses in a row of a copy of a matrix."""
        return self.column(self.at(base, self.times(i, self.n * self.copies)), copy)

    def column(self, base: str, copy: str) -> Callable[[str], str]:
        """Return a function from indices to addresses in a copy of a vector."""
        first = self.at(base, copy)
        return lambda i: self.at(first, self.times(i, self.copies))

    def at(self, base: str, index: str) -> str:
        """Return the address of an element."""
        return base if index == "0" else self.place(self.kind, base, index)

    def place(self, element: Type, base: str, index: str) -> str:
        """Return the address of an element of a type."""
        place = ir.address("", element, base, index, ir.I64)
        return self.let(place.operation, place.type, place.operands, place.types)

    def load(self, address: str) -> str:
        """Load an element."""
        return self.load_as(self.kind, address)

    def load_as(self, kind: Type, address: str, alignment: int = 0) -> str:
        """Load a value of a type, with an alignment that is not the type's."""
        name = self.let("load", kind, (address,), (ir.PTR,))
        self.body[-1] = self.body[-1]._replace(alignment=alignment)
        return name

    def store(self, x: str, address: str) -> None:
        """Store an element."""
        self.body.append(ir.store(x, self.kind, address))

    def fused(self, a: str, b: str, c: str) -> str:
        """Return a b + c, rounded once."""
        function = f"@llvm.fma.{self.suffix}"
        return self.let("call", self.kind, (function, a, b, c), (None, *(self.kind,) * 3))

    def some(self, values: list[str]) -> str:
        """Return whether any of the values differs from zero in any lane; NaN does."""
        # Their bits are joined and compared once. Without its sign, minus zero is zero.
        whole = self.kind._replace(scalar=f"i{8 * self.bytes}")
        zero, one = (f"splat ({whole.scalar} {x})" if whole.lanes else str(x) for x in (0, 1))
        found = zero
        for x in values:
            here = self.let("bitcast", whole, (x,), (self.kind,))
            found = self.integer("or", found, here, whole)
        found = self.compare("icmp ne", self.integer("shl", found, one, whole), zero, whole)
        if not whole.lanes:
            return found
        function = f"@llvm.vector.reduce.or.v{self.lanes}i1"
        return self.let("call", ir.I1, (function, found), (None, whole._replace(scalar="i1")))

    def loop(
        self, first: str, end: str, step: int = 1, carried: tuple[tuple[Type, str], ...] = ()
    ) -> list[str]:
        """Begin a loop of a counter from `first` while it is below `end`, or not below for -1.

        Returns:
            The counter, and the values that the loop carries, given by their types and first
            values. They hold what they have at the loop's end after it.
        """
        self._count += 1
        label, begin = f"l{self._count}", len(self.body)
        values = [f"%{label}.v{k}" for k in range(len(carried) + 1)]
        compare = "slt" if step > 0 else "sge"
        self.body += [ir.jump(f"{label}.head"), ir.label(f"{label}.head")]
        for value, (kind, start) in zip(values, ((ir.I64, first), *carried), strict=True):
            # The loop's end adds what comes from its last block.
            self.body.append(ir.phi(value, kind, (start, self._block)))
        more, types = f"%{label}.more", (ir.I64, None)
        self.body += [
            Instruction(f"icmp {compare}", (values[0], end), types, ir.I1, more),
            ir.branch(more, f"{label}.body", f"{label}.end"),
            ir.label(f"{label}.body"),
        ]
        self._loops.append((label, begin + 2, step))
        self._block = f"{label}.body"
        return values

    def end_loop(self, *after: str) -> None:
        """End a loop; the values that it carries become the given ones."""
        label, first, step = self._loops.pop()
        after = (self.integer("add", f"%{label}.v0", str(step)), *after)
        for k, value in enumerate(after, first):
            node = self.body[k]
            self.body[k] = node._replace(
                operands=(*node.operands, value), labels=(*node.labels, self._block)
            )
        self.body += [ir.jump(f"{label}.head"), ir.label(f"{label}.end")]
        self._block = f"{label}.end"

    def list_nonzero(self, end: str, entries: Callable[[str], list[str]]) -> _List:
        """List the indices below `end` of which some entry differs from zero in some lane."""
        address = "%list"
        i, count = self.loop("0", end, carried=((ir.I64, "0"),))
        # Every index is written; one that is not counted is written over by the next.
        item = self.place(ir.I64, address, count)
        self.body.append(ir.store(i, ir.I64, item))
        some = self.some(entries(i))
        self.end_loop(self.add(count, self.let("zext", ir.I64, (some,), (ir.I1,))))
        return _List(address, count)

    def item(self, of: _List, place: str) -> str:
        """Return an index of a list."""
        return self.load_as(ir.I64, self.place(ir.I64, of.address, place))

    def each_copy(self) -> str:
        """Begin the loop over the copies of matrices, and return which it is."""
        # Memory for the list of indices is reserved before any loop.
        room = Instruction("alloca", (f"[{self.n} x i64]",), (None,), ir.PTR, "%list")
        self.body.append(room)
        return self.loop("0", str(self.copies))[0] if self.copies > 1 else "0"

    def finish(self, emitter: Emitter) -> str:
        """End the loops that are open and the function, add it to the module; return its symbol."""
        while self._loops:
            self.end_loop()
        self.body.append(ir.RETURN)
        kind = self.kind
        emitter.declare_function(f"@llvm.fma.{self.suffix}", kind, kind, kind, kind)
        if kind.lanes:
            mask, function = emitter.type_of("b1", True), f"@llvm.vector.reduce.or.v{kind.lanes}i1"
            emitter.declare_function(function, ir.I1, mask)
        emitter.routines[self.symbol] = Routine(self.operands, ir.VOID, self.body)
        return self.symbol


def _elimination(emitter: Emitter, code: str, sizes: tuple[int, int, int]) -> str:
    """Return the function that eliminates rows in place, the last first."""
    n, above, _ = sizes
    f = RoutineWriter(emitter, ELIMINATED, code, "%a %d", sizes)
    c = f.each_copy()
    rest = (n - above) % _PANEL
    if rest:
        _eliminate_panel(f, c, str(n - 1), rest, above)
    if n - above >= _PANEL:
        [i] = f.loop(str(n - 1 - rest), str(above), -_PANEL)
        _eliminate_panel(f, c, i, _PANEL, above)
        f.end_loop()
    return f.finish(emitter)


def _eliminate_panel(f: RoutineWriter, c: str, last: str, width: int, above: int) -> None:
    """Eliminate neighbouring rows at once: each number before them is loaded and stored once.

    Args:
        f: the function.
        c: which copy of the matrix.
        last: the number of the last row.
        width: the number of rows.
        above: number of rows that are never eliminated.
    """
    places = [f.add(last, str(-r)) for r in range(width)]
    rows = [f.row("%a", place, c) for place in places]
    # Row r of the panel is counted from the last; `own` is its triangle, by rows and columns.
    own = {(r, s): f.load(rows[r](places[s])) for r in range(width) for s in range(r, width)}
    inverses, factors = [], {}
    for r in range(width):
        inverses.append(f.apply("fdiv", f.one, own[r, r]))
        f.store(inverses[r], f.column("%d", c)(f.add(places[r], str(-above))))
        for s in range(r + 1, width):
            scaled = f.apply("fmul", own[r, s], inverses[r])
            f.store(scaled, rows[r](places[s]))
            factors[r, s] = f.apply("fneg", scaled)
            for t in range(s, width):
                own[s, t] = f.fused(factors[r, s], own[r, t], own[s, t])
    listed = f.list_nonzero(places[-1], lambda k: [f.load(row(k)) for row in rows])
    # The rows of the panel are eliminated from each other.
    if width > 1:
        [m] = f.loop("0", listed.length)
        k = f.item(listed, m)
        entries = [f.load(row(k)) for row in rows]
        for s in range(1, width):
            for r in range(s):
                entries[s] = f.fused(factors[r, s], entries[r], entries[s])
            f.store(entries[s], rows[s](k))
        f.end_loop()
    _subtract_panel(f, c, rows, inverses, listed)
    # The rows of L are scaled; what was at their diagonal and behind it is left.
    [m] = f.loop("0", listed.length)
    k = f.item(listed, m)
    for row, inverse in zip(rows, inverses, strict=True):
        f.store(f.apply("fmul", f.load(row(k)), inverse), row(k))
    f.end_loop()


def _subtract_panel(
    f: RoutineWriter,
    c: str,
    rows: list[Callable[[str], str]],
    inverses: list[str],
    listed: _List,
) -> None:
    """Subtract the products of a panel's rows from the rows before it, two rows at once."""
    # Both indices of what is subtracted are in the list. If its length is odd, its last row is both
    # of two: the same numbers are then loaded, and stored, twice.
    [p] = f.loop("0", listed.length, 2)
    ends = f.add(p, "1"), f.add(listed.length, "-1")
    pair = [f.item(listed, p), f.item(listed, f.smaller(*ends))]
    scaled = [
        [
            f.apply("fneg", f.apply("fmul", f.load(row(j)), inverse))
            for row, inverse in zip(rows, inverses, strict=True)
        ]
        for j in pair
    ]
    others = [f.row("%a", j, c) for j in pair]
    # The first of the two goes one column beyond its diagonal, where nobody reads.
    [q] = f.loop("0", f.smaller(f.add(p, "2"), listed.length))
    k = f.item(listed, q)
    entries = [f.load(row(k)) for row in rows]
    addresses = [other(k) for other in others]
    sums = [f.load(address) for address in addresses]
    for factors, sum_, address in zip(scaled, sums, addresses, strict=True):
        for factor, entry in zip(factors, entries, strict=True):
            sum_ = f.fused(factor, entry, sum_)
        f.store(sum_, address)
    f.end_loop()
    f.end_loop()


def _outer_products(emitter: Emitter, code: str, shape: tuple[int, int, int], entries: int) -> str:
    """Return the function that adds JᵀDJ to the lower triangle of a matrix."""
    n, copies, terms = shape
    directions = triangle_size(entries)
    constraints = terms // directions
    name = f"{OUTER_SUMS}.{terms}.{directions}"
    f = RoutineWriter(emitter, name, code, "%a %j %d", (n, copies))
    c = f.each_copy()

    def of_row(row: str) -> list[str]:
        """Return the entries of all terms in a row, which lie side by side."""
        first = f.at("%j", f.times(f.add(f.times(row, copies), c), terms))
        return [f.load(f.at(first, str(t))) for t in range(terms)]

    def weight(a: int, b: int, s: int) -> str:
        """Return an entry of the D of a constraint."""
        place = (triangle_entry(a, b) * constraints + s) * copies
        return f.load(f.at("%d", f.add(str(place), c)))

    # The sum is symmetric: where all terms of J are zero, its row is zero and its column too.
    listed = f.list_nonzero(str(n), of_row)
    # Rows share what is loaded, as many as find room in the registers. Where fewer are left, the
    # last one stands for several. All go as far as the last one's diagonal.
    room = _REGISTERS.get(f.lanes * f.bytes, 16)
    width = next((n for n in _OUTER_ROWS if n * (terms + 2) <= room), 1)
    [p] = f.loop("0", listed.length, width)
    last = f.add(listed.length, "-1")
    places = [p, *(f.smaller(f.add(p, str(i)), last) for i in range(1, width))]
    pair = [f.item(listed, place) for place in places]
    mine, rows = [of_row(i) for i in pair], [f.row("%a", i, c) for i in pair]
    left: list[list[str]] = [[] for _ in pair]
    for a, s in np.ndindex(directions, constraints):
        for terms_of_row, products in zip(mine, left, strict=True):
            sum_ = f.apply("fmul", weight(a, 0, s), terms_of_row[s])
            for b in range(1, directions):
                sum_ = f.fused(weight(a, b, s), terms_of_row[b * constraints + s], sum_)
            products.append(sum_)
    [q] = f.loop("0", f.smaller(f.add(p, str(width)), listed.length))
    k = f.item(listed, q)
    addresses = [row(k) for row in rows]
    sums, others = [f.load(address) for address in addresses], of_row(k)
    for products, sum_, address in zip(left, sums, addresses, strict=True):
        for x, y in zip(products, others, strict=True):
            sum_ = f.fused(x, y, sum_)
        f.store(sum_, address)
    f.end_loop()
    f.end_loop()
    return f.finish(emitter)


def _product(emitter: Emitter, code: str, sizes: tuple[int, int]) -> str:
    """Return the function that multiplies by a matrix of which the lower triangle is given."""
    n, _ = sizes
    f = RoutineWriter(emitter, MULTIPLIED, code, "%a %x %y", sizes)
    c = f.each_copy()
    rest = n % _FACTORS
    if rest:
        _multiply_rows(f, c, "0", rest)
    if n >= _FACTORS:
        [i] = f.loop(str(rest), str(n), _FACTORS)
        _multiply_rows(f, c, i, _FACTORS)
        f.end_loop()
    return f.finish(emitter)


def _multiply_rows(f: RoutineWriter, c: str, first: str, width: int) -> None:
    """Add what the lower triangle has in neighbouring rows, and its mirror image, to the product.

    Args:
        f: the function.
        c: which copy of the matrix.
        first: the number of the first row.
        width: the number of rows.
    """
    x, y = f.column("%x", c), f.column("%y", c)
    places = [f.add(first, str(r)) for r in range(width)]
    rows, mine = [f.row("%a", place, c) for place in places], [f.load(x(p)) for p in places]
    sums = [f.zero] * width
    if first != "0":
        j, *sums = f.loop("0", first, 1, ((f.kind, f.zero),) * width)
        entries = [f.load(row(j)) for row in rows]
        # The product has what is above the diagonal by the mirror image of these entries.
        other, address = f.load(x(j)), y(j)
        above = f.load(address)
        for entry, factor in zip(entries, mine, strict=True):
            above = f.fused(entry, factor, above)
        f.store(above, address)
        f.end_loop(*(f.fused(e, other, s) for e, s in zip(entries, sums, strict=True)))
    own = {(r, s): f.load(rows[r](places[s])) for r in range(width) for s in range(r + 1)}
    for r, sum_ in enumerate(sums):
        for s in range(width):
            sum_ = f.fused(own[max(r, s), min(r, s)], mine[s], sum_)
        f.store(sum_, y(places[r]))


def _diagonal_sum(
    emitter: Emitter, code: str, sizes: tuple[int, int, int], copy: bool = False
) -> str:
    """Return the function that adds to the last entries of a matrix's diagonal.

    It works in place, or on a copy of the lower triangle.
    """
    n, above, _ = sizes
    name, operands = f"{WITH_DIAGONAL}{'.copy' * copy}", f"%a %d{' %from' * copy}"
    f = RoutineWriter(emitter, name, code, operands, sizes)
    c = f.each_copy()
    if copy:
        [i] = f.loop("0", str(n))
        source, row = f.row("%from", i, c), f.row("%a", i, c)
        [j] = f.loop("0", f.add(i, "1"))
        f.store(f.load(source(j)), row(j))
        f.end_loop()
        f.end_loop()
    [i] = f.loop(str(above), str(n))
    address = f.row("%a", i, c)(i)
    added = f.load(f.column("%d", c)(f.add(i, str(-above))))
    f.store(f.apply("fadd", f.load(address), added), address)
    f.end_loop()
    return f.finish(emitter)


def _forward_substitution(emitter: Emitter, code: str, sizes: tuple[int, int, int]) -> str:
    """Return the function that substitutes in place, the last row first."""
    n, above, _ = sizes
    f = RoutineWriter(emitter, FORWARD, code, "%l %d %x", sizes)
    c = f.each_copy()
    x, d = f.column("%x", c), f.column("%d", c)
    [i] = f.loop(str(n - 1), str(above), -1)
    row, own = f.row("%l", i, c), x(i)
    here = f.load(own)
    f.store(f.apply("fmul", here, f.load(d(f.add(i, str(-above))))), own)
    less = f.apply("fneg", here)
    [j] = f.loop("0", i)
    address = x(j)
    f.store(f.fused(less, f.load(row(j)), f.load(address)), address)
    f.end_loop()
    f.end_loop()
    return f.finish(emitter)


def _backward_substitution(emitter: Emitter, code: str, sizes: tuple[int, int, int]) -> str:
    """Return the function that substitutes in place, the first row first."""
    n, above, _ = sizes
    f = RoutineWriter(emitter, BACKWARD, code, "%l %x", sizes)
    c = f.each_copy()
    x = f.column("%x", c)
    [i] = f.loop(str(above), str(n))
    row = f.row("%l", i, c)
    # Sums of their own do not wait for each other.
    end = f.integer("and", i, str(-_SUMS))
    j, *sums = f.loop("0", end, _SUMS, ((f.kind, f.zero),) * _SUMS)
    places = [f.add(j, str(k)) for k in range(_SUMS)]
    f.end_loop(
        *(
            f.fused(f.load(row(at)), f.load(x(at)), sum_)
            for at, sum_ in zip(places, sums, strict=True)
        )
    )
    r, rest = f.loop(end, i, 1, ((f.kind, sums[0]),))
    f.end_loop(f.fused(f.load(row(r)), f.load(x(r)), rest))
    total = f.load(x(i))
    for sum_ in (rest, *sums[1:]):
        total = f.apply("fsub", total, sum_)
    f.store(total, x(i))
    f.end_loop()
    return f.finish(emitter)


FunctionRules = dict[str, tuple[Callable[..., list[ElementArray]], tuple[str, ...]]]
"""For each name of a function its rule, and the signatures that the rule is for.

A signature names the axes but the batch's, of each operand and after the arrow of each result. Axes
of one letter have the same size; `1` is a size of one.
"""

RULES: FunctionRules = {
    # Nobody may need the last result.
    ELIMINATED: (eliminated, ("nnc -> nnc oc", "nnc -> nnc oc aac")),
    FORWARD: (substituted_forward, ("nnc 1oc nc -> oc", "nnc 1oc nc -> oc 1ac")),
    BACKWARD: (substituted_backward, ("nnc nc -> nc", "nnc ac oc -> nc")),
    MULTIPLIED: (multiplied, ("nnc nc -> nc",)),
    WITH_DIAGONAL: (with_diagonal, ("nnc oc -> nnc",)),
}
"""The rules of this module."""
