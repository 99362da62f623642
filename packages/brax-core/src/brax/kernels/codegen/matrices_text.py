"""Text of functions that multiply matrices, for kernels that are not translated from a jaxpr.

A matrix is row-major and of single precision. Its columns are the lanes of vector registers, so
that no array is transposed.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from brax.kernels.codegen.ir import Type, broadcast, text_of

TILE_VECTORS, TILE_SUMS = 4, 8
"""Vectors along a row of the tile of a product that stays in registers, and vectors in all. With
eight sums, a chain of fused multiply-adds never waits for itself. 16 and 24 sums were no faster,
and processors without AVX-512 have 16 registers."""


class Matrix(NamedTuple):
    """A matrix in memory."""

    address: str
    """LLVM's name of the address of its first element."""
    row: int
    """The distance of neighbouring rows, in elements."""
    column: int = 1
    """The distance of neighbouring columns, in elements."""


Number = int | str
"""An integer of 64 bits: a number that is known, or LLVM's name of a value."""


class FunctionText:
    """The instructions of a function, as LLVM's text."""

    def __init__(self, lanes: int) -> None:
        """Start without instructions, for vectors of so many lanes."""
        self.lanes = lanes
        self.vector = f"<{lanes} x float>"
        """LLVM's type of a vector."""
        self.lines: list[str] = []
        """The instructions."""
        self._count = 0

    def let(self, text: str) -> str:
        """Add an instruction, and return the name of its result."""
        self._count += 1
        self.lines.append(f"%x{self._count} = {text}")
        return f"%x{self._count}"

    def add(self, x: Number, y: Number) -> Number:
        """Return a sum."""
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        return self.let(f"add i64 {x}, {y}")

    def multiply(self, x: Number, y: int) -> Number:
        """Return a product."""
        return x * y if isinstance(x, int) else self.let(f"mul i64 {x}, {y}")

    def address(self, base: str, index: Number) -> str:
        """Return the address of an element of an array of floats."""
        return self.let(f"getelementptr float, ptr {base}, i64 {index}")

    def place(self, of: Matrix, row: Number, column: Number) -> str:
        """Return the address of an element of a matrix."""
        index = self.add(self.multiply(row, of.row), self.multiply(column, of.column))
        return self.address(of.address, index)

    def load(self, place: str, count: int) -> str:
        """Load the first `count` lanes of a vector; the others are zero."""
        if count == self.lanes:
            return self.let(f"load {self.vector}, ptr {place}, align 4")
        return self.let(
            f"call {self.vector} @llvm.masked.load.v{self.lanes}f32.p0("
            f"ptr {place}, i32 4, {self._mask(count)}, {self.vector} zeroinitializer)"
        )

    def store(self, x: str, place: str, count: int) -> None:
        """Store the first `count` lanes of a vector."""
        if count == self.lanes:
            self.lines.append(f"store {self.vector} {x}, ptr {place}, align 4")
            return
        self.lines.append(
            f"call void @llvm.masked.store.v{self.lanes}f32.p0("
            f"{self.vector} {x}, ptr {place}, i32 4, {self._mask(count)})"
        )

    def _mask(self, count: int) -> str:
        """Return the mask of the first `count` lanes."""
        lanes = ", ".join(f"i1 {int(i < count)}" for i in range(self.lanes))
        return f"<{self.lanes} x i1> <{lanes}>"

    def broadcast(self, place: str) -> str:
        """Load a number into all lanes."""
        one = self.let(f"load float, ptr {place}, align 4")
        self.lines += map(text_of, broadcast(one, Type("float", self.lanes), f"{one}.all"))
        return f"{one}.all"

    def apply(self, operation: str, x: str, y: str) -> str:
        """Return the result of an operation on two vectors."""
        return self.let(f"{operation} {self.vector} {x}, {y}")

    def multiply_add(self, x: str, y: str, z: str) -> str:
        """Return x y + z, rounded once."""
        kind = self.vector
        return self.let(
            f"call {kind} @llvm.fma.v{self.lanes}f32({kind} {x}, {kind} {y}, {kind} {z})"
        )

    def sum_of_lanes(self, x: str) -> str:
        """Return the sum of a vector's lanes, by halves."""
        return self.let(
            f"call reassoc float @llvm.vector.reduce.fadd.v{self.lanes}f32("
            f"float -0.0, {self.vector} {x})"
        )

    def declarations(self) -> list[str]:
        """Return the declarations of the functions of LLVM that are called."""
        kind, mask, name = self.vector, f"<{self.lanes} x i1>", f"v{self.lanes}f32"
        return [
            f"declare {kind} @llvm.fma.{name}({kind}, {kind}, {kind})",
            f"declare {kind} @llvm.masked.load.{name}.p0(ptr, i32, {mask}, {kind})",
            f"declare void @llvm.masked.store.{name}.p0({kind}, ptr, i32, {mask})",
            f"declare float @llvm.vector.reduce.fadd.{name}(float, {kind})",
        ]

    def loop(
        self,
        count: int,
        body: Callable[[Number, Sequence[str]], Sequence[str]],
        carried: Sequence[str] = (),
    ) -> Sequence[str]:
        """Add a loop, which a single iteration does not need, and return what it carries last.

        Args:
            count: the number of iterations, at least one.
            body: takes the number of the iteration and the vectors that are carried; returns them
                for the next one.
            carried: the vectors before the first iteration.
        """
        if count == 1:
            return body(0, carried)
        self._count += 1
        label, counter = f"loop{self._count}", f"%i{self._count}"
        names = [f"{counter}.{k}" for k in range(len(carried))]
        before = ("br label %{0}in", "{0}in:", "br label %{0}", "{0}:")
        self.lines += [line.format(label) for line in before]
        # What the phi nodes carry is known only after the body.
        head = len(self.lines)
        following = body(counter, names)
        phis = [f"{counter} = phi i64 [ 0, %{label}in ], [ {counter}.next, %{label}on ]"]
        for name, first, later in zip(names, carried, following, strict=True):
            cases = f"[ {first}, %{label}in ], [ {later}, %{label}on ]"
            phis.append(f"{name} = phi {self.vector} {cases}")
        self.lines[head:head] = phis
        self.lines += [
            f"br label %{label}on",
            f"{label}on:",
            f"{counter}.next = add i64 {counter}, 1",
            f"{counter}.more = icmp slt i64 {counter}.next, {count}",
            f"br i1 {counter}.more, label %{label}, label %{label}end",
            f"{label}end:",
        ]
        return following

    def vectors(self, size: int) -> list[int]:
        """Return the number of lanes that each vector of a row of some length uses."""
        return [min(self.lanes, size - i) for i in range(0, size, self.lanes)]


def product(
    text: FunctionText,
    left: Matrix,
    right: Matrix,
    shape: tuple[int, int, int],
    finish: Callable[[Number, Number, str, int], None],
    start: Callable[[Number, int], str] = lambda column, count: "zeroinitializer",
) -> None:
    """Multiply an (m, k) matrix by a (k, n) matrix, tile by tile.

    A sum over k stays in a register, in the order of k.

    Args:
        text: receives the instructions.
        left: the left factor.
        right: the right factor; its columns are neighbours in memory.
        shape: m, n and k.
        finish: takes row and column of the first of some results, their vector, and their number.
        start: takes the first column of some results and their number; returns their vector before
            the first product is added.
    """
    m, n, k = shape

    def tile(row: Number, height: int, column: Number, counts: Sequence[int]) -> None:
        columns = [text.add(column, i * text.lanes) for i in range(len(counts))]
        first = [start(c, count) for c, count in zip(columns, counts, strict=True)] * height
        corner = text.place(left, row, 0)

        def add(i: Number, sums: Sequence[str]) -> Sequence[str]:
            of_column = text.address(corner, text.multiply(i, left.column))
            of_row = text.place(right, i, column)
            line = [
                text.load(text.address(of_row, j * text.lanes), count)
                for j, count in enumerate(counts)
            ]
            out = []
            for h in range(height):
                # Constant distances are part of the load, so one address serves all rows.
                factor = text.broadcast(text.address(of_column, h * left.row))
                mine = sums[h * len(counts) : (h + 1) * len(counts)]
                out += [text.multiply_add(factor, y, s) for y, s in zip(line, mine, strict=True)]
            return out

        sums = text.loop(k, add, first)
        for i, x in enumerate(sums):
            h, j = divmod(i, len(counts))
            finish(text.add(row, h), columns[j], x, counts[j])

    def strip(column: Number, counts: Sequence[int]) -> None:
        height = min(m, TILE_SUMS // len(counts))

        def full(i: Number, _: Sequence[str]) -> Sequence[str]:
            tile(text.multiply(i, height), height, column, counts)
            return ()

        text.loop(m // height, full)
        if m % height:
            tile(m - m % height, m % height, column, counts)

    width = TILE_VECTORS * text.lanes

    def wide(i: Number, _: Sequence[str]) -> Sequence[str]:
        strip(text.multiply(i, width), [text.lanes] * TILE_VECTORS)
        return ()

    if n >= width:
        text.loop(n // width, wide)
    if n % width:
        strip(n - n % width, text.vectors(n % width))


def column_product(
    text: FunctionText,
    left: Matrix,
    right: str,
    shape: tuple[int, int],
    finish: Callable[[Number, str], None],
) -> None:
    """Multiply an (m, k) matrix by a vector; the lanes are along k, which is summed at the end.

    With `product`, all lanes but one of each register would be idle.

    Args:
        text: receives the instructions.
        left: the matrix, whose columns are neighbours in memory.
        right: the address of the vector.
        shape: m and k.
        finish: takes a row and its result, a scalar.
    """
    rows, length = shape
    height = math.gcd(rows, TILE_SUMS)
    counts = text.vectors(length)

    def some(i: Number, _: Sequence[str]) -> Sequence[str]:
        first = text.multiply(i, height)
        for h in range(height):
            row, total = text.add(first, h), "zeroinitializer"
            for j, count in enumerate(counts):
                at = j * text.lanes
                x = text.load(text.place(left, row, at), count)
                y = text.load(text.address(right, at), count)
                total = text.multiply_add(x, y, total)
            finish(row, text.sum_of_lanes(total))
        return ()

    text.loop(rows // height, some)
