"""Lowering rules of the functions of `brax.kernels.joined_trees`: one environment after another.

In each environment other trees are joined, so that lanes would share little of a factorization.
Here the rows of a tile are what instructions work on at once. The tiles are eliminated tree by
tree. The next one is always a tree with the fewest neighbours (minimum degree), which leaves few
new tiles.

Source: Davis (2006), Direct Methods for Sparse Linear Systems, chapters 4 and 7.
"""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from brax.kernels.codegen import ir
from brax.kernels.codegen.emitter import Emitter, code_of
from brax.kernels.codegen.ir import Type
from brax.kernels.codegen.loops import LastRead, buffer_array
from brax.kernels.codegen.lowering.arrays import ElementArray, element_shape
from brax.kernels.codegen.lowering.symmetric import (
    FunctionRules,
    RoutineWriter,
    call,
    changeable,
    in_memory,
)
from brax.kernels.joined_trees import ADDED_AT, SOLVED_JOINTLY
from brax.kernels.symmetric import triangle_entry, triangle_size

_WIDTH = 4
"""The length of a tile's rows is a multiple of this."""

_OF_KIND = (("%rows", False), ("%weights", False), ("%trees", True), ("%count", True))
"""Names of the arrays of each kind of contacts, and whether they hold whole numbers: J, D, trees,
and the number of chunks."""

_SETS = ("joined", "later", "rest")
"""Tables of sets of trees."""

_WORD = 64
"""Trees of a machine word, whose bits say which trees are joined."""


def added_at(
    emitter: Emitter,
    eqn: Any,
    free: LastRead,
    start: ElementArray,
    values: ElementArray,
    trees: ElementArray,
    count: ElementArray,
) -> list[ElementArray]:
    """Lower `brax.kernels.joined_trees.added_at`."""
    code = code_of(eqn.outvars[0].aval.dtype)
    sums = changeable(emitter, start, code, free)
    given = [in_memory(emitter, values, code)]
    given += [in_memory(emitter, x, "i4") for x in (trees, count)]
    call(emitter, _addition(emitter, code, (trees.shape[1], start.shape[1])), [sums, *given])
    return [buffer_array(sums, element_shape(eqn.outvars[0].aval.shape))]


def solved_jointly(
    emitter: Emitter,
    eqn: Any,
    free: LastRead,
    diagonal: ElementArray,
    right: ElementArray,
    alone: ElementArray,
    *parts: ElementArray,
) -> list[ElementArray]:
    """Lower `brax.kernels.joined_trees.solved_jointly`."""
    code = code_of(eqn.outvars[0].aval.dtype)
    n, places = right.shape[:2]
    kinds = [
        (weights.shape[2], triangle_size(weights.shape[1])) for weights in parts[1 :: len(_OF_KIND)]
    ]
    given = [in_memory(emitter, x, code) for x in (diagonal, right)]
    for x, (_, whole) in zip(parts, itertools.cycle(_OF_KIND), strict=False):
        given.append(in_memory(emitter, x, "i4" if whole else code))
    solution = changeable(emitter, alone, code, free)
    builder = _Solution(emitter, code, n, places, kinds)
    depth = emitter.current_depth
    scratch = emitter.buffer(code, False, depth, builder.numbers)
    indices = emitter.buffer("i8", False, depth, builder.integers)
    call(emitter, builder.text(), [*given, solution, scratch, indices])
    return [buffer_array(solution, right.shape)]


class _Lanes(RoutineWriter):
    """The text of a function that works on one environment after another."""

    def __init__(
        self, emitter: Emitter, name: str, code: str, operands: str, sizes: tuple[int, ...]
    ) -> None:
        """Begin the function; see `RoutineWriter`."""
        super().__init__(emitter, name, code, operands, sizes)
        self.lane = "0"

    def each_lane(self) -> None:
        """Begin the loop over the lanes, which ends with the function."""
        if self.lanes > 1:
            [self.lane] = self.loop("0", str(self.lanes))

    def of_lane(self, base: str, index: str, kind: str = "") -> str:
        """Return the address of an element of this lane in an array of all lanes."""
        place = self.add(self.times(index, self.lanes), self.lane)
        return self.place(Type(kind or self.scalar), base, place)

    def number(self, address: str) -> str:
        """Load a number."""
        return self.load_as(Type(self.scalar), address)

    def put(self, x: str, address: str, kind: Type | None = None, alignment: int = 0) -> None:
        """Store a number, or a value of another type."""
        self.body.append(ir.store(x, kind or Type(self.scalar), address, alignment))

    def whole(self, base: str, index: str) -> str:
        """Load a whole number of this lane, such as that of a tree."""
        small = self.load_as(ir.I32, self.of_lane(base, index, "i32"))
        return self.let("sext", ir.I64, (small,), (ir.I32,))

    def number_of(self, operation: str, *operands: str, kind: Type | None = None) -> str:
        """Return the result of an operation on numbers, or on rows of them."""
        mine = kind or Type(self.scalar)
        return self.let(operation, mine, operands, (mine, *(None,) * (len(operands) - 1)))

    def fused_of(self, a: str, b: str, c: str, kind: Type | None = None) -> str:
        """Return a b + c of numbers or rows, rounded once."""
        mine = kind or Type(self.scalar)
        function = f"@llvm.fma.{f'v{mine.lanes}' if mine.lanes else ''}f{8 * self.bytes}"
        return self.let("call", mine, (function, a, b, c), (None, *(mine,) * 3))

    def chosen(self, condition: str, kind: Type, yes: str, no: str) -> str:
        """Return one of two values."""
        return self.let("select", kind, (condition, yes, no), (ir.I1, kind, kind))

    @contextmanager
    def where(self, condition: str) -> Iterator[None]:
        """Put what is emitted within into a branch."""
        self._count += 1
        label = f"b{self._count}"
        self.body += [ir.branch(condition, label, f"{label}.end"), ir.label(label)]
        self._block = label
        yield
        self.body += [ir.jump(f"{label}.end"), ir.label(f"{label}.end")]
        self._block = f"{label}.end"


def _addition(emitter: Emitter, code: str, sizes: tuple[int, int]) -> str:
    """Return the function that adds values where they belong."""
    sides, places = sizes
    f = _Lanes(emitter, ADDED_AT, code, "%s %v %t %c", sizes)
    f.each_lane()
    [k] = f.loop("0", f.times(f.whole("%c", "0"), sides))
    tree = f.whole("%t", k)
    with f.where(f.compare("icmp sge", tree, "0")):
        for p in range(places):
            at = f.of_lane("%s", f.add(f.times(tree, places), str(p)))
            value = f.number(f.of_lane("%v", f.add(f.times(k, places), str(p))))
            f.put(f.number_of("fadd", f.number(at), value), at)
    f.end_loop()
    return f.finish(emitter)


def _starts(sizes: Mapping[str, int]) -> tuple[dict[str, int], int]:
    """Return where each part of a memory begins, and the size of all."""
    ends = list(itertools.accumulate(sizes.values(), initial=0))
    return dict(zip(sizes, ends, strict=False)), ends[-1]


class _Solution:
    """The function that solves for one environment after another.

    Memory for numbers has the tiles of trees with contacts, those of joined trees in the order in
    which they came up, the rows of the tree that is eliminated, right-hand sides, and L of each
    tree. Memory for integers has bits of the trees that each is joined to, the place of the tile
    of two trees, and the order of elimination.
    """

    def __init__(
        self, emitter: Emitter, code: str, n: int, places: int, kinds: list[tuple[int, int]]
    ) -> None:
        """Keep the sizes.

        Args:
            emitter: receives the function.
            code: the type code of the numbers.
            n: number of trees.
            places: degrees of freedom of a tree.
            kinds: for each kind of contacts, the constraints of a chunk, and their directions.
        """
        self.emitter, self.code, self.n, self.places, self.kinds = emitter, code, n, places, kinds
        self.width = -(-places // _WIDTH) * _WIDTH
        self.tile = places * self.width
        pairs = n * (n - 1) // 2
        sizes = {
            "diagonal": n * self.tile,
            "pairs": pairs * self.tile,
            "panel": n * self.tile,
            "load": n * self.width,
            "scaled": n * self.width,
            "solution": n * self.width,
            "lower": n * places * places,
        }
        self.places_of, self.numbers = _starts(sizes)
        tables = {
            "joined": n,
            "later": n,
            "order": n,
            "neighbours": n,
            "tiles": n,
            "count": 1,
            "rest": 1,
            "place": n * n,
        }
        # Sets of trees are integers of as many bits as there are trees, in whole words.
        self.words = -(-n // _WORD)
        self.tables, self.integers = _starts(
            {name: size * self._words_of(name) for name, size in tables.items()}
        )
        self.bits = Type(f"i{_WORD * self.words}")

    def text(self) -> str:
        """Emit the function, and return its symbol."""
        parts = " ".join(f"{name}{k}" for k in range(len(self.kinds)) for name, _ in _OF_KIND)
        sizes = (self.n, self.places, *itertools.chain.from_iterable(self.kinds))
        f = _Lanes(self.emitter, SOLVED_JOINTLY, self.code, f"%d %r {parts} %x %s %i", sizes)
        self.f = f
        self.row, number = Type(f.scalar, self.width), Type(f.scalar)
        for kind, end in ((number, ""), (self.row, f"v{self.width}")):
            name = f"@llvm.fma.{end}f{8 * f.bytes}"
            self.emitter.declare_function(name, kind, kind, kind, kind)
        self.emitter.declare_function(f"@llvm.ctpop.{self.bits}", self.bits, self.bits)
        self.emitter.declare_function(f"@llvm.cttz.{self.bits}", self.bits, self.bits, ir.I1)
        f.each_lane()
        self.keep_set("0", "rest")
        f.put("0", self.at_integer("count"), ir.I64)
        for k, (constraints, directions) in enumerate(self.kinds):
            self._add_contacts(k, constraints, directions)
        touched = self.size(self.set_of("rest"))
        self._eliminate_all(touched)
        self._substitute(touched)
        return f.finish(self.emitter)

    # Addresses.

    def at(self, table: str, index: str = "0") -> str:
        """Return the address of a number of a part of the memory."""
        place = self.f.add(index, str(self.places_of[table]))
        return self.f.place(Type(self.f.scalar), "%s", place)

    def _words_of(self, table: str) -> int:
        """Return the words of an entry of a table, which is a set of trees or one integer."""
        return self.words if table in _SETS else 1

    def at_integer(self, table: str, index: str = "0") -> str:
        """Return the address of an integer, or of a set of trees."""
        place = self.f.times(index, self._words_of(table))
        place = self.f.add(place, str(self.tables[table]))
        return self.f.place(ir.I64, "%i", place)

    def integer(self, table: str, index: str = "0") -> str:
        """Load an integer."""
        return self.f.load_as(ir.I64, self.at_integer(table, index))

    def next(self, base: str, numbers: int) -> str:
        """Return an address so many numbers further on."""
        return self.f.place(Type(self.f.scalar), base, str(numbers))

    # Rows of tiles.

    def load_row(self, address: str) -> str:
        """Load a row."""
        return self.f.load_as(self.row, address, self.f.bytes)

    def store_row(self, x: str, address: str) -> None:
        """Store a row."""
        self.f.put(x, address, self.row, self.f.bytes)

    def load_tile(self, base: str) -> list[str]:
        """Load the rows of a tile."""
        return [self.load_row(self.next(base, p * self.width)) for p in range(self.places)]

    def store_tile(self, tile: list[str], base: str) -> None:
        """Store the rows of a tile."""
        for p, row in enumerate(tile):
            self.store_row(row, self.next(base, p * self.width))

    def _inserted(self, row: str, x: str, p: int) -> str:
        types = self.row, Type(self.f.scalar), ir.I32
        return self.f.let("insertelement", self.row, (row, x, str(p)), types)

    def row_of(self, numbers: list[str]) -> str:
        """Return a row of numbers, zero beyond them."""
        row = "zeroinitializer"
        for p, x in enumerate(numbers):
            row = self._inserted(row, x, p)
        return row

    def entry(self, row: str, p: int) -> str:
        """Return a number of a row."""
        kind = Type(self.f.scalar)
        return self.f.let("extractelement", kind, (row, str(p)), (self.row, ir.I32))

    def spread(self, x: str) -> str:
        """Return a row of one number."""
        return self.spread_entry(self._inserted("poison", x, 0), 0)

    def spread_entry(self, row: str, p: int) -> str:
        """Return a row of the number at a place of another row."""
        types = self.row, self.row, Type("i32", self.width)
        operands = row, "poison", f"splat (i32 {p})"
        return self.f.let("shufflevector", self.row, operands, types)

    def fused(self, a: str, b: str, c: str) -> str:
        """Return a b + c of rows, rounded once."""
        return self.f.fused_of(a, b, c, self.row)

    # Sets of trees.

    def set_of(self, table: str, index: str = "0") -> str:
        """Load a set of trees."""
        return self.f.load_as(self.bits, self.at_integer(table, index), 8)

    def keep_set(self, x: str, table: str, index: str = "0") -> None:
        """Store a set of trees."""
        self.f.put(x, self.at_integer(table, index), self.bits, 8)

    def sets(self, operation: str, a: str, b: str) -> str:
        """Return the result of an operation on the bits of two sets."""
        return self.f.integer(operation, a, b, self.bits)

    def bit(self, tree: str) -> str:
        """Return the set of one tree."""
        wide = tree if self.words == 1 else self.f.let("zext", self.bits, (tree,), (ir.I64,))
        return self.sets("shl", "1", wide)

    def _narrow(self, x: str) -> str:
        return x if self.words == 1 else self.f.let("trunc", ir.I64, (x,), (self.bits,))

    def size(self, trees: str) -> str:
        """Return how many trees a set has."""
        function = f"@llvm.ctpop.{self.bits}"
        return self._narrow(self.f.let("call", self.bits, (function, trees), (None, self.bits)))

    def first(self, trees: str) -> str:
        """Return the first tree of a set that is not empty."""
        operands, types = (f"@llvm.cttz.{self.bits}", trees, "true"), (None, self.bits, ir.I1)
        return self._narrow(self.f.let("call", self.bits, operands, types))

    def without_first(self, trees: str) -> str:
        """Return a set without its first tree."""
        return self.sets("and", trees, self.sets("add", trees, "-1"))

    def lacks(self, trees: str, bit: str) -> str:
        """Return whether a set lacks a tree, given as a set."""
        return self.f.compare("icmp eq", self.sets("and", trees, bit), "0", self.bits)

    # The stages.

    def _touch(self, tree: str) -> None:
        """Copy the tile and the right-hand side of a tree at its first contact."""
        f, places, width = self.f, self.places, self.width
        touched, bit = self.set_of("rest"), self.bit(tree)
        with f.where(self.lacks(touched, bit)):
            self.keep_set(self.sets("or", touched, bit), "rest")
            self.keep_set("0", "joined", tree)
            tile, first = self.at("diagonal", f.times(tree, self.tile)), f.times(tree, places)
            for p in range(places):
                start = f.times(f.add(first, str(p)), places)
                row = [f.number(f.of_lane("%d", f.add(start, str(q)))) for q in range(p + 1)]
                self.store_row(self.row_of(row), self.next(tile, p * width))
            load = [f.number(f.of_lane("%r", f.add(first, str(p)))) for p in range(places)]
            self.store_row(self.row_of(load), self.at("load", f.times(tree, width)))

    def _add_contacts(self, k: int, constraints: int, directions: int) -> None:
        """Add JᵀDJ of one kind of contacts to the tiles."""
        f, places = self.f, self.places
        [c] = f.loop("0", f.whole(f"%count{k}", "0"))
        [s] = f.loop("0", str(constraints))
        first = f.add(f.times(c, 2 * constraints), s)
        a, b = f.whole(f"%trees{k}", first), f.whole(f"%trees{k}", f.add(first, str(constraints)))
        # The sign of both together is negative if both are.
        with f.where(f.compare("icmp sge", f.integer("and", a, b), "0")):
            entries = directions * (directions + 1) // 2
            here = f.add(f.times(c, entries * constraints), s)
            weights = [
                f.number(f.of_lane(f"%weights{k}", f.add(here, str(e * constraints))))
                for e in range(entries)
            ]
            acts = "false"
            for w in weights:
                some = f.compare("fcmp une", w, "0.0", Type(f.scalar))  # true for NaN
                acts = f.integer("or", acts, some, ir.I1)
            # A contact that is about to open has no D, and costs no more.
            with f.where(acts):
                j = [
                    [
                        self.row_of(
                            [
                                self._entry(k, c, s, side * places + p, d, directions, constraints)
                                for p in range(places)
                            ]
                        )
                        for d in range(directions)
                    ]
                    for side in range(2)
                ]
                self._add_contact((a, b), j, weights)
        f.end_loop()
        f.end_loop()

    def _entry(
        self, k: int, c: str, s: str, place: int, d: int, directions: int, constraints: int
    ) -> str:
        """Load an entry of the Jacobian of a contact."""
        f, terms = self.f, directions * constraints
        row = f.add(f.times(c, 2 * self.places * terms), str(place * terms + d * constraints))
        return f.number(f.of_lane(f"%rows{k}", f.add(row, s)))

    def _add_contact(self, trees: tuple[str, str], j: list[list[str]], weights: list[str]) -> None:
        """Add JᵀDJ of one contact, given the rows of J on both sides and D."""
        f, directions = self.f, len(j[0])
        spread = [self.spread(w) for w in weights]
        weighted = []
        for side in j:
            mine = []
            for a in range(directions):
                row = f.number_of("fmul", spread[triangle_entry(a, 0)], side[0], kind=self.row)
                for b in range(1, directions):
                    row = self.fused(spread[triangle_entry(a, b)], side[b], row)
                mine.append(row)
            weighted.append(mine)
        for tree, left, right in zip(trees, weighted, j, strict=True):
            with f.where(f.compare("icmp sge", tree, "0")):
                self._touch(tree)
                self._add_product(self.at("diagonal", f.times(tree, self.tile)), left, right)
        first, second = trees
        with f.where(f.compare("icmp sge", f.integer("or", first, second), "0")):
            # The rows of a tile belong to the later tree.
            later = f.compare("icmp sgt", first, second)
            tile = self._tile(
                f.chosen(later, ir.I64, first, second), f.chosen(later, ir.I64, second, first)
            )
            left = [f.chosen(later, self.row, x, y) for x, y in zip(*weighted, strict=True)]
            right = [f.chosen(later, self.row, y, x) for x, y in zip(*j, strict=True)]
            self._add_product(tile, left, right)

    def _add_product(self, tile: str, left: list[str], right: list[str]) -> None:
        """Add the sum of products of two rows to a tile."""
        rows = self.load_tile(tile)
        for x, y in zip(left, right, strict=True):
            rows = [self.fused(self.spread_entry(x, p), y, row) for p, row in enumerate(rows)]
        self.store_tile(rows, tile)

    def _tile(self, later: str, earlier: str) -> str:
        """Return the address of the tile of two trees, one of zeros if they are not joined yet."""
        f = self.f
        joined, bit = self.set_of("joined", later), self.bit(earlier)
        place = self.at_integer("place", f.add(f.times(later, self.n), earlier))
        with f.where(self.lacks(joined, bit)):
            count = self.integer("count")
            f.put(f.add(count, "1"), self.at_integer("count"), ir.I64)
            f.put(count, place, ir.I64)
            self.keep_set(self.sets("or", joined, bit), "joined", later)
            other = self.sets("or", self.set_of("joined", earlier), self.bit(later))
            self.keep_set(other, "joined", earlier)
            tile = self.at("pairs", f.times(count, self.tile))
            self.store_tile(["zeroinitializer"] * self.places, tile)
        return self.at("pairs", f.times(f.load_as(ir.I64, place), self.tile))

    def _place(self, above: str, tree: str, other: str) -> str:
        """Return the place of the tile of two joined trees; `above` if the other is the later."""
        f = self.f
        high = f.chosen(above, ir.I64, other, tree)
        low = f.chosen(above, ir.I64, tree, other)
        return self.integer("place", f.add(f.times(high, self.n), low))

    def _eliminate_all(self, count: str) -> None:
        """Eliminate tree by tree; each time one of those with the fewest neighbours."""
        f = self.f
        [k] = f.loop("0", count)
        rest = self.set_of("rest")
        # The loop passes over the trees that are left.
        trees, best, fewest = f.loop(
            "0", self.size(rest), 1, ((self.bits, rest), (ir.I64, "0"), (ir.I64, str(self.n)))
        )[1:]
        mine = self.first(trees)
        joined = self.sets("and", self.set_of("joined", mine), rest)
        degree = self.size(joined)
        better = f.compare("icmp slt", degree, fewest)
        f.end_loop(
            self.without_first(trees),
            f.chosen(better, ir.I64, mine, best),
            f.chosen(better, ir.I64, degree, fewest),
        )
        f.put(best, self.at_integer("order", k), ir.I64)
        rest = self.sets("xor", rest, self.bit(best))
        self.keep_set(rest, "rest")
        later = self.sets("and", self.set_of("joined", best), rest)
        self.keep_set(later, "later", best)
        self._eliminate(best, later)
        f.end_loop()

    def _eliminate(self, tree: str, later: str) -> None:
        """Eliminate a tree from those that are joined to it and come later."""
        f, places = self.f, self.places
        lower, inverses = self._factorize(tree)
        # L y = right-hand side, and D⁻¹ y.
        load = self.at("load", f.times(tree, self.width))
        y: list[str] = []
        for p in range(places):
            x = f.number(self.next(load, p))
            for q in range(p):
                x = f.fused_of(f.number_of("fneg", lower[p][q]), y[q], x)
            y.append(x)
        scaled = [f.number_of("fmul", a, b) for a, b in zip(y, inverses, strict=True)]
        self.store_row(self.row_of(scaled), self.at("scaled", f.times(tree, self.width)))
        minus = [[self.spread(f.number_of("fneg", x)) for x in row] for row in lower]
        spread = [self.spread(x) for x in inverses]
        less = [self.spread(f.number_of("fneg", x)) for x in scaled]
        m, others = f.loop("0", self.size(later), 1, ((self.bits, later),))
        other = self.first(others)
        above = f.compare("icmp sgt", other, tree)
        place = self._place(above, tree, other)
        tile = self.at("pairs", f.times(place, self.tile))
        # The rows of the tile shall be those of the tree that is eliminated.
        with f.where(above):
            self._transpose(tile)
        rows: list[str] = []
        for p, row in enumerate(self.load_tile(tile)):
            for q in range(p):
                row = self.fused(minus[p][q], rows[q], row)
            rows.append(row)
        self.store_tile(rows, self.at("panel", f.times(m, self.tile)))
        self.store_tile(
            [
                f.number_of("fmul", row, x, kind=self.row)
                for row, x in zip(rows, spread, strict=True)
            ],
            tile,
        )
        theirs = self.at("load", f.times(other, self.width))
        sum_ = self.load_row(theirs)
        for row, x in zip(rows, less, strict=True):
            sum_ = self.fused(row, x, sum_)
        self.store_row(sum_, theirs)
        f.put(other, self.at_integer("neighbours", m), ir.I64)
        f.put(place, self.at_integer("tiles", m), ir.I64)
        f.end_loop(self.without_first(others))
        self._subtract(self.size(later))

    def _factorize(self, tree: str) -> tuple[list[list[str]], list[str]]:
        """Factorize a tree's own tile as LDLᵀ; return L below its diagonal, and D⁻¹."""
        f, places = self.f, self.places
        tile = self.at("diagonal", f.times(tree, self.tile))
        a = [
            [f.number(self.next(tile, p * self.width + q)) for q in range(p + 1)]
            for p in range(places)
        ]
        inverses = []
        for k in range(places):
            inverses.append(f.number_of("fdiv", "1.0", a[k][k]))
            column = {p: a[p][k] for p in range(k + 1, places)}
            for p in range(k + 1, places):
                a[p][k] = f.number_of("fmul", column[p], inverses[k])
                minus = f.number_of("fneg", a[p][k])
                for q in range(k + 1, p + 1):
                    a[p][q] = f.fused_of(minus, column[q], a[p][q])
        kept = self.at("lower", f.times(tree, places * places))
        for p in range(places):
            for q in range(p):
                f.put(a[p][q], self.next(kept, p * places + q))
        return [row[:-1] for row in a], inverses

    def _transpose(self, tile: str) -> None:
        """Transpose a tile in place."""
        f = self.f
        columns = [
            [f.number(self.next(tile, q * self.width + p)) for q in range(self.places)]
            for p in range(self.places)
        ]
        self.store_tile([self.row_of(column) for column in columns], tile)

    def _subtract(self, count: str) -> None:
        """Subtract the products of the eliminated rows from the tiles of each two neighbours."""
        f = self.f
        [m] = f.loop("0", count)
        later = self.integer("neighbours", m)
        panel = self.at("panel", f.times(m, self.tile))
        mine = self.at("pairs", f.times(self.integer("tiles", m), self.tile))
        self._subtract_product(self.at("diagonal", f.times(later, self.tile)), panel, mine)
        [k] = f.loop("0", m)
        earlier = self.integer("neighbours", k)
        other = self.at("pairs", f.times(self.integer("tiles", k), self.tile))
        self._subtract_product(self._tile(later, earlier), panel, other)
        f.end_loop()
        f.end_loop()

    def _subtract_product(self, tile: str, panel: str, scaled: str) -> None:
        """Subtract the transpose of one tile times another."""
        f = self.f
        rows = self.load_tile(tile)
        for p, right in enumerate(self.load_tile(scaled)):
            less = f.number_of("fneg", right, kind=self.row)
            rows = [
                self.fused(self.spread(f.number(self.next(panel, p * self.width + i))), less, row)
                for i, row in enumerate(rows)
            ]
        self.store_tile(rows, tile)

    def _sum(self, row: str) -> str:
        """Return the sum of a row's numbers, in pairs."""
        f = self.f
        parts = [self.entry(row, p) for p in range(self.places)]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            odd = parts[-1:] if len(parts) % 2 else []
            parts = [f.number_of("fadd", x, y) for x, y in pairs] + odd
        return parts[0]

    def _substitute(self, count: str) -> None:
        """Substitute from the tree that was eliminated last to the first."""
        f, places = self.f, self.places
        [k] = f.loop(f.add(count, "-1"), "0", -1)
        tree = self.integer("order", k)
        later = self.set_of("later", tree)
        zeros = ((self.row, "zeroinitializer"),) * places
        _, others, *sums = f.loop("0", self.size(later), 1, ((self.bits, later), *zeros))
        other = self.first(others)
        place = self._place(f.compare("icmp sgt", other, tree), tree, other)
        found = self.load_row(self.at("solution", f.times(other, self.width)))
        tile = self.load_tile(self.at("pairs", f.times(place, self.tile)))
        more = [self.fused(row, found, sum_) for row, sum_ in zip(tile, sums, strict=True)]
        f.end_loop(self.without_first(others), *more)
        scaled = self.at("scaled", f.times(tree, self.width))
        kept = self.at("lower", f.times(tree, places * places))
        x: dict[int, str] = {}
        for p in reversed(range(places)):
            whole = self._sum(sums[p])
            x[p] = f.number_of("fsub", f.number(self.next(scaled, p)), whole)
            for q in range(p + 1, places):
                factor = f.number_of("fneg", f.number(self.next(kept, q * places + p)))
                x[p] = f.fused_of(factor, x[q], x[p])
        numbers = [x[p] for p in range(places)]
        self.store_row(self.row_of(numbers), self.at("solution", f.times(tree, self.width)))
        for p, number in enumerate(numbers):
            f.put(number, f.of_lane("%x", f.add(f.times(tree, places), str(p))))
        f.end_loop()


_KINDS = "kq1d kec ku 1", "lq1f lgh lv 1", "mq1i mjr mw 1"
"""The axes of the arrays of each kind of contacts."""

RULES: FunctionRules = {
    ADDED_AT: (added_at, ("tp ksp ks 1 -> tp",)),
    SOLVED_JOINTLY: (
        solved_jointly,
        tuple(f"tpp tp tp {' '.join(_KINDS[:n])} -> tp" for n in range(1, len(_KINDS) + 1)),
    ),
}
"""The rules of this module."""
