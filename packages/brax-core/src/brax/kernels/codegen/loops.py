"""Loops over the elements of large arrays, which are kept in memory.

Where a kernel is long, its large arrays are not taken apart into registers: a `Cell` stands for a
number in memory, moves about as any other element does, and operations on many become a loop.
Operations on as many elements of the same depth share one, as long as each needs of the others
only the element whose turn it is.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import (
    Cell,
    Emitter,
    InstructionGroup,
    MemoryPlace,
    Value,
    is_runtime_value,
)
from brax.kernels.codegen.lowering import scalars
from brax.kernels.codegen.lowering.arrays import ElementArray

_ZERO = np.int32(0)

MAX_UNROLLED_TERMS = 8
"""Terms of a sum that are written out."""


@dataclass
class _Body:
    """The instructions of one round of a loop."""

    base: int
    """How deep the loop is."""
    counters: list[tuple[Value, int]]
    """What counts, and to what; the last is innermost, and counts along the last axis."""
    lines: list[InstructionGroup] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    own: dict[MemoryPlace, str] = field(default_factory=dict)
    """What it has computed in this round."""


@dataclass
class _Source:
    """An operand: the same value everywhere, or numbers of one place."""

    value: Value = None
    place: MemoryPlace | None = None
    at: Any = None
    """Where each element is in the place."""


class Loops:
    """The loops of a kernel."""

    def __init__(self, asm: Emitter, least: int) -> None:
        """None yet.

        Args:
            asm: where they are written.
            least: elements that are worth a loop.
        """
        self.least = least
        self._asm = asm
        self._open: dict[tuple[int, int], _Body] = {}

    def worth(self, *arrays: ElementArray) -> bool:
        """Return whether an operation on some arrays is to be a loop."""
        return max((a.size for a in arrays), default=0) >= self.least

    def fetched(self, array: ElementArray) -> ElementArray:
        """An array without cells: each is loaded."""
        if not any(isinstance(x, Cell) for x in array.reshape(-1)):
            return array
        out = np.empty(array.size, object)
        for i, x in enumerate(array.reshape(-1)):
            out[i] = self.fetch(x)
        return out.reshape(array.shape)

    def fetch(self, x: Value) -> Value:
        """A value that is no cell."""
        if not isinstance(x, Cell):
            return x
        self._finish(x.place)
        return self._asm.at(x.place, np.int32(x.index))

    def settle(self) -> None:
        """Ends the loops that are being written."""
        for key in list(self._open):
            self._close(key)

    def each(
        self,
        fun: Callable[..., Value],
        arrays: Sequence[ElementArray],
        given: Sequence[str],
        code: str,
        least: int = 0,
    ) -> ElementArray:
        """Applies a function to the elements of arrays that are broadcast against each other."""
        return self.several(lambda *x: [fun(*x)], arrays, given, [code], least)[0]

    def several(
        self,
        fun: Callable[..., Sequence[Value]],
        arrays: Sequence[ElementArray],
        given: Sequence[str],
        codes: Sequence[str],
        least: int = 0,
    ) -> list[ElementArray]:
        """As `each`, for a function of several results.

        Args:
            fun: of one value for each array; gives some values.
            arrays: they are broadcast against each other.
            given: their types.
            codes: types of the results.
            least: the depth of what else the function reads.
        """
        wide = np.broadcast_arrays(*arrays)
        shape = wide[0].shape
        sources = [self._source(a, code) for a, code in zip(wide, given, strict=True)]
        depth = max(least, self._depth(sources))
        body = self._group(math.prod(shape), depth, sources)
        with self._within(body.base, body):
            results = fun(*(self._read(body, s) for s in sources))
            return [
                self._kept(body, x, shape, code) for x, code in zip(results, codes, strict=True)
            ]

    def fold(
        self,
        start: Callable[..., Sequence[Value]],
        step: Callable[..., Sequence[Value]],
        arrays: Sequence[ElementArray],
        given: Sequence[str],
        codes: Sequence[str],
        series: bool = False,
    ) -> list[ElementArray]:
        """Goes through the last axis of some arrays.

        Args:
            start: of the first elements; gives what is handed on.
            step: of an element's number, `i4`, what is handed on, and the elements; gives the next.
            arrays: they are broadcast against each other.
            given: their types.
            codes: types of what is handed on.
            series: whether to keep what is handed on of all elements.

        Returns:
            What is handed on last, without the last axis, or, as a series, with it.
        """
        asm = self._asm
        whole = np.broadcast_arrays(*arrays)
        *outer, length = whole[0].shape
        if length == 1:
            out = self.several(start, [a[..., 0] for a in whole], given, codes)
            return [x[..., None] for x in out] if series else out
        sources = [self._source(a, code) for a, code in zip(whole, given, strict=True)]
        for s in sources:
            if s.place:
                self._finish(s.place)
        base, count = self._depth(sources), math.prod(outer)
        label, k, r = asm.fresh("fold")[1:], self._counter(base + 1), self._counter(base + 2)
        first = _Body(base, [(k, count), (np.int32(0), 1)])
        body = _Body(base + 1, [(k, count), (r, length)])
        with self._within(base, first, body):
            held = start(*(self._read(first, _first(s)) for s in sources))
            values = [self._read(body, s) for s in sources]
            wide = asm.widest(*held, *values)
            names = [asm.register(wide, base + 2) for _ in held]
            after = step(r, *names, *values)
            begins = [asm.operand(x, c, wide) for x, c in zip(held, codes, strict=True)]
            ends = [asm.operand(x, c, wide) for x, c in zip(after, codes, strict=True)]
            room = count * length if series else count
            places = [asm.room(c, wide, base, room) for c in codes]
            last = []
            if series:
                row = asm.apply("mul", "i4", k, np.int32(length))
                here = asm.apply("add", "i4", row, r)
                for place, x, y in zip(places, begins, ends, strict=True):
                    first.lines.append(asm.storing(place, row, x))
                    body.lines.append(asm.storing(place, here, y))
            else:
                last = [asm.storing(p, k, x) for p, x in zip(places, ends, strict=True)]
        carried = "".join(
            f"\n{name} = phi {asm.type_of(c, wide)} [ {x}, %{label}in ], [ {y}, %{label}on ]"
            for name, c, x, y in zip(names, codes, begins, ends, strict=True)
        )
        outside = asm.fresh("loop")[1:]
        asm.blocks[base] += [
            _begin(outside, k),
            *first.lines,
            _begin(label, r, 1, carried),
            *body.lines,
            _end(label, r, length),
            *last,
            _end(outside, k, count),
        ]
        shape = (*outer, length) if series else tuple(outer)
        return [cells(place, shape) for place in places]

    def copy(
        self, array: ElementArray, code: str, place: MemoryPlace, start: Value = _ZERO
    ) -> None:
        """Writes an array into a place, element after element from an index on, here."""
        self._copy(array, code, place, start, self._asm.here)

    def _copy(
        self, array: ElementArray, code: str, place: MemoryPlace, start: Value, base: int
    ) -> None:
        asm = self._asm
        source = self._source(array, code)
        if source.place:
            self._finish(source.place)
        body = _Body(base, [(self._counter(base + 1), array.size)])
        with self._within(base, body):
            value = self._read(body, source)
            at = scalars.add(asm, "i4", start, body.counters[0][0])
            body.lines.append(asm.storing(place, at, value))
        self._write(body)

    def wide(self, values: Iterable[Value]) -> bool:
        """Return whether there are numbers of each lane's own among some."""
        lanes = (x.place.wide if isinstance(x, Cell) else self._asm.widest(x) for x in values)
        return any(lanes)

    def gather(
        self,
        x: ElementArray,
        kind: str,
        at: Any,
        moves: Sequence[tuple[ElementArray, str, int, int]],
    ) -> ElementArray:
        """Elements of an array, some of whose indices are found as the kernel runs.

        Args:
            x: the array.
            kind: its type.
            at: where each of the results is in the flat array if those indices are zero.
            moves: those indices, for each result or the same for all, with their type, the largest
                there may be, and how far apart in the flat array two are that differ by one.
        """
        asm, flat = self._asm, x.reshape(-1)
        source = self._source(flat, kind)
        if source.place is None:
            return np.full(at.shape, source.value, object)
        place, scale = source.place, source.at[1] - source.at[0]
        if (source.at != source.at[0] + scale * np.arange(x.size)).any():
            place, scale = self._table(flat.tolist(), kind), 1
        start = source.at[0] if place is source.place else 0
        self._finish(place)

        def find(here: Value, *found: Value) -> list[Value]:
            for value, (_, code, most, apart) in zip(found, moves, strict=True):
                index = scalars.convert(asm, value, code, "i4")
                index = scalars.largest(asm, "i4", index, np.int32(0))
                index = scalars.smallest(asm, "i4", index, np.int32(most))
                index = scalars.multiply(asm, "i4", index, np.int32(apart * scale))
                here = scalars.add(asm, "i4", here, index)
            return [asm.at(place, here)]

        numbers = np.empty(at.size, object)
        numbers[:] = list((start + scale * at.reshape(-1)).astype(np.int32))
        arrays = [numbers.reshape(at.shape), *(index for index, *_ in moves)]
        codes = ["i4", *(code for _, code, *_ in moves)]
        return self.several(find, arrays, codes, [kind], place.depth)[0]

    def _source(self, array: ElementArray, code: str) -> _Source:
        """What an operand is."""
        values = array.reshape(-1).tolist()
        first = values[0]
        if isinstance(first, Cell):
            if all(x is first for x in values):
                return _Source(value=self.fetch(first))
            place = first.place
            if all(isinstance(x, Cell) and x.place is place for x in values):
                at = np.fromiter((x.index for x in values), int, len(values))
                return _Source(place=place, at=at.reshape(array.shape))
        elif is_runtime_value(first):
            if all(is_runtime_value(x) and x == first for x in values):
                return _Source(value=first)
        elif not any(is_runtime_value(x) or isinstance(x, Cell) for x in values):
            if len({np.asarray(x).tobytes() for x in values}) == 1:
                return _Source(value=first)
            return _Source(place=self._asm.table(values, code), at=_order(array.shape))
        different, at = _once_each(values)
        return _Source(place=self._table(different, code), at=at.reshape(array.shape))

    def _table(self, values: Sequence[Value], code: str) -> MemoryPlace:
        """A place with values from several."""
        asm = self._asm
        key = "table " + " ".join(
            f"{x.place.name}[{x.index}]" if isinstance(x, Cell) else str(x) for x in values
        )
        for place in dict.fromkeys(x.place for x in values if isinstance(x, Cell)):
            self._finish(place)
        wide, depth = self.wide(values), max(map(asm.depth, values))
        if key in asm.tables[depth]:
            return asm.tables[depth][key]
        place = asm.tables[depth][key] = asm.room(code, wide, depth, len(values))
        for start, stop in _runs(values):
            if stop - start > MAX_UNROLLED_TERMS:
                part = np.empty(stop - start, object)
                part[:] = values[start:stop]
                self._copy(part, code, place, np.int32(start), depth)
                continue
            for i in range(start, stop):
                x = self.fetch(values[i])
                asm.blocks[depth].append(asm.storing(place, np.int32(i), x))
        return place

    def _depth(self, sources: Sequence[_Source]) -> int:
        return max(s.place.depth if s.place else self._asm.depth(s.value) for s in sources)

    def _counter(self, depth: int) -> str:
        return self._asm.register(False, depth)

    def _group(self, size: int, base: int, sources: Sequence[_Source]) -> _Body:
        """The loop of so many rounds at a depth, after those that an operation waits for."""
        key = size, base
        for s in sources:
            if s.place is not None:
                mine = self._open.get(key)
                fits = mine and s.place in mine.own and (s.at == _order(s.at.shape)).all()
                if not fits:
                    self._finish(s.place)
        if key not in self._open:
            self._open[key] = _Body(base, [(self._counter(base + 1), size)])
        return self._open[key]

    def _finish(self, place: MemoryPlace) -> None:
        """Ends the loop that computes what is in a place."""
        for key, body in list(self._open.items()):
            if place in body.own:
                self._close(key)

    def _close(self, key: tuple[int, int]) -> None:
        self._write(self._open.pop(key))

    def _write(self, body: _Body) -> None:
        """Adds a loop, if it has an effect."""
        if any(not line.name for line in body.lines):
            ((counter, size),) = body.counters
            label = self._asm.fresh("loop")[1:]
            lines = [_begin(label, counter), *body.lines, _end(label, counter, size)]
            self._asm.blocks[body.base] += lines

    @contextmanager
    def _within(self, base: int, *bodies: _Body) -> Iterator[None]:
        """Writes into loops at a depth, one in another."""
        asm = self._asm
        outer = asm.blocks, asm.known
        asm.blocks = [*asm.blocks[: base + 1], *(b.lines for b in bodies)]
        asm.known = [*asm.known[: base + 1], *(b.known for b in bodies)]
        try:
            yield
        finally:
            asm.blocks, asm.known = outer

    def _read(self, body: _Body, source: _Source) -> Value:
        """An operand's element, in a round."""
        if source.place is None:
            return source.value
        if source.place in body.own:
            return body.own[source.place]
        return self._asm.at(source.place, self._index(body, source.at))

    def _index(self, body: _Body, at: Any) -> Value:
        """Where in a place the element of a round is."""
        asm = self._asm
        (last, length), outer = body.counters[-1], body.counters[:-1]
        steps = _steps(at)
        if steps is None:
            round_ = last
            if outer:
                row = scalars.multiply(asm, "i4", outer[0][0], np.int32(length))
                round_ = scalars.add(asm, "i4", row, last)
            table = asm.table(list(at.reshape(-1).astype(np.int32)), "i4")
            return asm.at(table, round_)
        axes = list(zip(at.shape, steps, strict=True))
        split = len(axes) - 1 if outer else 0
        terms = self._terms(outer[0][0], axes[:split]) if outer else []
        index: Value = np.int32(at.flat[0])
        for term in [*terms, *self._terms(last, axes[split:])]:
            index = scalars.add(asm, "i4", index, term)
        return index

    def _terms(self, counter: Value, axes: Sequence[tuple[int, int]]) -> list[Value]:
        """How far each axis takes, where a counter goes through all, the last one fastest.

        Args:
            counter: it.
            axes: their sizes, and how far one step along them is.
        """
        asm, inner, out = self._asm, 1, []
        merged = _merged(axes)
        for i, (size, step) in reversed(list(enumerate(merged))):
            if step:
                place = asm.apply("udiv", "i4", counter, np.int32(inner)) if inner > 1 else counter
                place = asm.apply("urem", "i4", place, np.int32(size)) if i else place
                out.append(scalars.multiply(asm, "i4", place, np.int32(step)))
            inner *= size
        return out

    def _kept(self, body: _Body, x: Value, shape: tuple[int, ...], code: str) -> ElementArray:
        """The results of all rounds."""
        asm = self._asm
        if not is_runtime_value(x) or asm.depth(x) <= body.base:
            return np.full(shape, x, object)
        place = asm.room(code, asm.widest(x), body.base, math.prod(shape))
        body.lines.append(asm.storing(place, body.counters[0][0], x))
        body.own[place] = x
        return cells(place, shape)


def _order(shape: tuple[int, ...]) -> Any:
    return np.arange(math.prod(shape)).reshape(shape)


def cells(place: MemoryPlace, shape: tuple[int, ...]) -> ElementArray:
    """What is in a place, as an array."""
    out = np.empty(math.prod(shape), object)
    for i in range(out.size):
        out[i] = Cell(place, i)
    return out.reshape(shape)


def _first(source: _Source) -> _Source:
    """An operand's first elements along its last axis."""
    if source.place is None:
        return source
    return _Source(place=source.place, at=source.at[..., :1])


def _steps(at: Any) -> list[int] | None:
    """How far apart the numbers are along each axis, if they are evenly."""
    steps, grid = [], at.flat[0]
    for axis, size in enumerate(at.shape):
        step = int(np.take(at, 1, axis).flat[0] - at.flat[0]) if size > 1 else 0
        along = [-1 if i == axis else 1 for i in range(at.ndim)]
        grid = grid + step * np.arange(size).reshape(along)
        steps.append(step)
    return steps if (grid == at).all() else None


def _merged(dims: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Axes that are gone through as one."""
    out: list[tuple[int, int]] = []
    for size, step in dims:
        if size == 1:
            continue
        if out and out[-1][1] == size * step:
            out[-1] = out[-1][0] * size, step
        else:
            out.append((size, step))
    return out


def _once_each(values: Sequence[Value]) -> tuple[list[Value], Any]:
    """The different ones of some values, and which of those each is."""
    places: dict[Any, int] = {}
    different: list[Value] = []
    at: list[int] = []
    for x in values:
        if isinstance(x, Cell):
            key: Any = x.place.name, x.index
        else:
            key = x if is_runtime_value(x) else np.asarray(x).tobytes()
        if key not in places:
            places[key] = len(different)
            different.append(x)
        at.append(places[key])
    return different, np.asarray(at)


def _runs(values: Sequence[Value]) -> Iterator[tuple[int, int]]:
    """Where values are evenly spaced in one place, or are the same known number."""
    start, step = 0, None
    for i in range(1, len(values) + 1):
        apart = None if i == len(values) else _apart(values[i - 1], values[i])
        if apart is None or (step is not None and apart != step):
            yield start, i
            start, step = i, None
        else:
            step = apart


def _apart(x: Value, y: Value) -> int | None:
    """How far apart two values are in one place, or that they are the same known number."""
    if isinstance(x, Cell) and isinstance(y, Cell):
        return y.index - x.index if x.place is y.place else None
    same = not (
        is_runtime_value(x) or is_runtime_value(y) or isinstance(x, Cell) or isinstance(y, Cell)
    )
    return 0 if same and np.asarray(x).tobytes() == np.asarray(y).tobytes() else None


def _begin(label: str, counter: str, first: int = 0, more: str = "") -> InstructionGroup:
    phi = f"{counter} = phi i32 [ {first}, %{label}in ], [ {counter}.next, %{label}on ]"
    text = f"br label %{label}in\n{label}in:\nbr label %{label}\n{label}:\n{phi}{more}"
    return InstructionGroup(text, jump=True)


def _end(label: str, counter: str, size: int) -> InstructionGroup:
    return InstructionGroup(
        f"br label %{label}on\n{label}on:\n{counter}.next = add i32 {counter}, 1\n"
        f"{counter}.more = icmp slt i32 {counter}.next, {size}\n"
        f"br i1 {counter}.more, label %{label}, label %{label}end\n{label}end:",
        jump=True,
    )
