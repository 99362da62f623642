"""Loops over the elements of large arrays, which are kept in buffers in memory.

In a long kernel the elements of large arrays are not values of their own: a `BufferElement` stands
for a number in memory. It is moved about like any other element, so that reshapes, slices and
transposes still cost nothing, and an operation on many of them becomes a loop.

Operations on equally many elements at the same depth share one loop (loop fusion), as long as each
reads, of what the loop computes, only the element of the current iteration. Such a loop stays open
until something else has to read its results.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from brax.kernels.codegen import ir
from brax.kernels.codegen.emitter import (
    Buffer,
    BufferElement,
    Emitter,
    Key,
    Value,
    is_runtime_value,
)
from brax.kernels.codegen.ir import Group, Instruction
from brax.kernels.codegen.lowering import scalars
from brax.kernels.codegen.lowering.arrays import ElementArray, broadcast

LastRead = Callable[[], AbstractSet[str]]
"""Returns the names of the buffers that nobody reads after the equation that is lowered."""

_ZERO = np.int32(0)

MAX_UNROLLED_TERMS = 8
"""Largest number of terms of a sum, and of elements of a copy, that are unrolled."""


@dataclass
class _LoopBody:
    """The instructions of one iteration of a loop."""

    outer_depth: int
    """The number of loops around the loop."""
    counters: list[tuple[Value, int]]
    """Loop counters and their ends. The last is the innermost and counts along the last axis."""
    instructions: list[Group] = field(default_factory=list)
    available: dict[Key, str] = field(default_factory=dict)
    """The values by what computes them, see `Emitter.available`."""
    computed: dict[Buffer, str] = field(default_factory=dict)
    """For each buffer that the loop fills, the value of the current iteration."""


@dataclass
class _Operand:
    """An operand of a loop: one value for all elements, or elements of one buffer."""

    value: Value = None
    buffer: Buffer | None = None
    indices: Any = None
    """The index in the buffer of each element; an integer array in the operand's shape."""


@dataclass
class _Fold:
    """A loop in a loop: the inner one carries values along the last axis."""

    label: str
    """The inner loop's label."""
    rows: int
    length: int
    """Iterations of the outer and of the inner loop."""
    row: str
    column: str
    """The counters of the two loops."""
    first: _LoopBody
    """The part of the outer loop before the inner one, for the first elements of a row."""
    rest: _LoopBody
    """The inner loop, from the second element on."""
    codes: Sequence[str]
    """Type codes of the carried values."""


class Loops:
    """The loops over large arrays of one kernel."""

    def __init__(self, emitter: Emitter, min_elements: int) -> None:
        """Start without loops.

        Args:
            emitter: receives the loops.
            min_elements: the smallest number of elements of an array that is kept in memory.
        """
        self.min_elements = min_elements
        self._emitter = emitter
        # By number of iterations and depth: there is at most one open loop of each.
        self._open: dict[tuple[int, int], _LoopBody] = {}

    def worth_looping(self, *arrays: ElementArray, sizes: Iterable[int] = ()) -> bool:
        """Return whether an operation on some arrays, and others of some sizes, becomes a loop."""
        return max((*(a.size for a in arrays), *sizes), default=0) >= self.min_elements

    def loaded(self, array: ElementArray) -> ElementArray:
        """Return an array with each of its buffer elements loaded."""
        if not any(isinstance(x, BufferElement) for x in array.reshape(-1)):
            return array
        # Loads are common subexpressions: an element that is needed twice is loaded once.
        out = np.empty(array.size, object)
        for i, x in enumerate(array.reshape(-1)):
            out[i] = self.load(x)
        return out.reshape(array.shape)

    def load(self, x: Value) -> Value:
        """Return a value, loaded if it is an element of a buffer."""
        if not isinstance(x, BufferElement):
            return x
        self._close_loop_of(x.buffer)
        return self._emitter.load_element(x.buffer, np.int32(x.index))

    def close_all(self) -> None:
        """End all open loops."""
        for key in list(self._open):
            self._close(key)

    def map_elements(
        self,
        fun: Callable[..., Value],
        arrays: Sequence[ElementArray],
        operand_codes: Sequence[str],
        code: str,
        min_depth: int = 0,
    ) -> ElementArray:
        """Apply a function to the elements of arrays, as `map_results` with one result."""
        return self.map_results(lambda *x: [fun(*x)], arrays, operand_codes, [code], min_depth)[0]

    def map_results(
        self,
        fun: Callable[..., Sequence[Value]],
        arrays: Sequence[ElementArray],
        operand_codes: Sequence[str],
        codes: Sequence[str],
        min_depth: int = 0,
    ) -> list[ElementArray]:
        """Apply a function of several results to the elements of arrays, in a loop.

        Args:
            fun: takes one value for each array; returns the results.
            arrays: the arrays, which are broadcast against each other.
            operand_codes: their type codes.
            codes: type codes of the results.
            min_depth: the depth of buffers that the function reads besides.
        """
        wide = broadcast(arrays)
        shape = wide[0].shape
        operands = [self._operand(a, code) for a, code in zip(wide, operand_codes, strict=True)]
        # The loop goes where its deepest operand is. Over batch-invariant arrays it runs only once.
        depth = self._depth(operands, min_depth)
        body = self._loop_for(math.prod(shape), depth, operands)
        with self._inside(body.outer_depth, body):
            results = fun(*(self._element(body, x) for x in operands))
            return [
                self._stored(body, x, shape, code) for x, code in zip(results, codes, strict=True)
            ]

    def fold(
        self,
        start: Callable[..., Sequence[Value]],
        step: Callable[..., Sequence[Value]],
        arrays: Sequence[ElementArray],
        operand_codes: Sequence[str],
        codes: Sequence[str],
        keep_all: bool = False,
    ) -> list[ElementArray]:
        """Fold the last axis of some arrays: carry values from each element to the next.

        Args:
            start: takes the first elements; returns the first carry.
            step: takes an element's number (`i4`), the carry and the elements; returns the next
                carry.
            arrays: the arrays, which are broadcast against each other.
            operand_codes: their type codes.
            codes: type codes of the carry.
            keep_all: whether to return the carry after each element, as a cumulative sum does.

        Returns:
            The last carry, in the shape without the last axis; all of them with `keep_all`, in the
            whole shape.
        """
        whole = broadcast(arrays)
        *outer, length = whole[0].shape
        # With a single element there is nothing to carry.
        if length == 1:
            out = self.map_results(start, [a[..., 0] for a in whole], operand_codes, codes)
            return [x[..., None] for x in out] if keep_all else out
        operands = [self._operand(a, code) for a, code in zip(whole, operand_codes, strict=True)]
        for x in operands:
            if x.buffer:
                self._close_loop_of(x.buffer)
        fold = self._new_fold(self._depth(operands), math.prod(outer), length, codes)
        buffers = self._emit_fold(fold, start, step, operands, keep_all)
        shape = (*outer, length) if keep_all else tuple(outer)
        return [buffer_array(buffer, shape) for buffer in buffers]

    def _new_fold(self, depth: int, rows: int, length: int, codes: Sequence[str]) -> _Fold:
        """Return the two empty loops of a fold at a depth."""
        label = self._emitter.fresh_name("fold")[1:]
        row, column = self._counter(depth + 1), self._counter(depth + 2)
        # The first element of a row is outside of the inner loop. So no neutral element is needed,
        # which a maximum of integers or `argmax` would not have.
        first = _LoopBody(depth, [(row, rows), (_ZERO, 1)])
        rest = _LoopBody(depth + 1, [(row, rows), (column, length)])
        return _Fold(label, rows, length, row, column, first, rest, codes)

    def _emit_fold(
        self,
        fold: _Fold,
        start: Callable[..., Sequence[Value]],
        step: Callable[..., Sequence[Value]],
        operands: Sequence[_Operand],
        keep_all: bool,
    ) -> list[Buffer]:
        """Emit the two loops of a fold, and return the buffers of its results."""
        emitter, codes, label = self._emitter, fold.codes, fold.label
        depth = fold.first.outer_depth
        with self._inside(depth, fold.first, fold.rest):
            carry = start(*(self._element(fold.first, _first_elements(x)) for x in operands))
            values = [self._element(fold.rest, x) for x in operands]
            # A phi has one type: if any part of the carry is wide, all of it is.
            wide = emitter.widest(*carry, *values)
            names = [emitter.new_value(wide, depth + 2) for _ in carry]
            after = step(fold.column, *names, *values)
            begins = [emitter.operand(x, c, wide) for x, c in zip(carry, codes, strict=True)]
            ends = [emitter.operand(x, c, wide) for x, c in zip(after, codes, strict=True)]
            # The results belong to the depth around the outer loop, where they are read.
            size = fold.rows * fold.length if keep_all else fold.rows
            buffers = [emitter.buffer(c, wide, depth, size) for c in codes]
            last = self._store_carry(fold, buffers, begins, ends, keep_all)
        # The carry stays in registers: a phi node instead of a store and a load.
        phis = [
            ir.phi(name, emitter.type_of(c, wide), (x, f"{label}in"), (y, f"{label}on"))
            for name, c, x, y in zip(names, codes, begins, ends, strict=True)
        ]
        outside = emitter.fresh_name("loop")[1:]
        emitter.blocks[depth] += [
            _loop_head(outside, fold.row),
            *fold.first.instructions,
            # From 1, since `start` has taken element 0.
            _loop_head(label, fold.column, 1, phis),
            *fold.rest.instructions,
            _loop_end(label, fold.column, fold.length),
            *last,
            _loop_end(outside, fold.row, fold.rows),
        ]
        return buffers

    def _store_carry(
        self,
        fold: _Fold,
        buffers: Sequence[Buffer],
        begins: Sequence[str],
        ends: Sequence[str],
        keep_all: bool,
    ) -> list[Group]:
        """Store all carries of a row where they arise, or return the stores of the last one."""
        emitter = self._emitter
        if not keep_all:
            both = zip(buffers, ends, strict=True)
            return [emitter.store_element(buffer, fold.row, x) for buffer, x in both]
        # The results are row-major: element (row, column) is at row × length + column.
        first = emitter.apply("mul", "i4", fold.row, np.int32(fold.length))
        index = emitter.apply("add", "i4", first, fold.column)
        for buffer, x, y in zip(buffers, begins, ends, strict=True):
            fold.first.instructions.append(emitter.store_element(buffer, first, x))
            fold.rest.instructions.append(emitter.store_element(buffer, index, y))
        return []

    def copy(self, array: ElementArray, code: str, buffer: Buffer, start: Value = _ZERO) -> None:
        """Copy an array into a buffer at the current depth, from an index of the buffer on."""
        self._copy(array, code, buffer, start, self._emitter.current_depth)

    def _copy(
        self, array: ElementArray, code: str, buffer: Buffer, start: Value, depth: int
    ) -> None:
        """Copy an array into a buffer, in a loop of its own at a depth."""
        emitter = self._emitter
        operand = self._operand(array, code)
        if operand.buffer:
            self._close_loop_of(operand.buffer)
        body = _LoopBody(depth, [(self._counter(depth + 1), array.size)])
        with self._inside(depth, body):
            # Row-major: the loop counter is the position in the array.
            value = self._element(body, operand)
            index = scalars.add(emitter, "i4", start, body.counters[0][0])
            body.instructions.append(emitter.store_element(buffer, index, value))
        self._emit_loop(body)

    def whole_buffer(self, array: ElementArray) -> Buffer | None:
        """Return the buffer whose first elements are an array's, in order; else None."""
        flat = array.reshape(-1)
        first = flat[0]
        if not isinstance(first, BufferElement) or any(
            not isinstance(x, BufferElement) or x.buffer is not first.buffer or x.index != i
            for i, x in enumerate(flat)
        ):
            return None
        self._close_loop_of(first.buffer)
        return first.buffer

    def changeable(self, array: ElementArray, free: LastRead) -> Buffer | None:
        """Return the buffer whose elements are an array's, if it may be changed in place.

        Args:
            array: the array.
            free: returns the names of the buffers that nobody else reads from here on.
        """
        buffer = self.whole_buffer(array)
        # A buffer from outside of a loop is read again in the next iteration.
        if buffer is None or buffer.batch_strided or not self._emitter.runs_once(buffer.depth):
            return None
        return buffer if buffer.name in free() else None

    def any_wide(self, values: Iterable[Value]) -> bool:
        """Return whether any of the values, which may be elements of buffers, is wide."""
        lanes = (
            x.buffer.wide if isinstance(x, BufferElement) else self._emitter.widest(x)
            for x in values
        )
        return any(lanes)

    def gather(
        self,
        x: ElementArray,
        kind: str,
        at: Any,
        moves: Sequence[tuple[ElementArray, str, int, int]],
    ) -> ElementArray:
        """Return elements of an array, some of whose indices are known only as the kernel runs.

        Args:
            x: the array.
            kind: its type code.
            at: for each result, its index in the flat array where the runtime indices are zero.
            moves: the runtime indices: an array for all results or one for each, its type code,
                the largest index allowed, and the stride of the index in the flat array. Indices
                are clipped.
        """
        emitter, flat = self._emitter, x.reshape(-1)
        operand = self._operand(flat, kind)
        # All elements are the same value, so the indices do not matter.
        if operand.buffer is None:
            return np.full(at.shape, operand.value, object)
        buffer, places = operand.buffer, operand.indices
        self._close_loop_of(buffer)
        # A strided view is read where it is. The places of any other are a table.
        start, scale, table = places[0], places[1] - places[0], None
        if (places != start + scale * np.arange(x.size)).any():
            table, start, scale = emitter.constant_buffer(places.astype(np.int32), "i4"), 0, 1

        # address = static part + sum over runtime indices of clip(index, 0, most) × stride.
        def find(address: Value, *found: Value) -> list[Value]:
            for value, (_, code, most, stride) in zip(found, moves, strict=True):
                index = scalars.clipped_index(emitter, code, value, most)
                index = scalars.multiply(emitter, "i4", index, np.int32(stride * scale))
                address = scalars.add(emitter, "i4", address, index)
            if table is not None:
                address = emitter.load_element(table, address)
            return [emitter.load_element(buffer, address)]

        # The static parts are an operand of the loop like any other: known numbers.
        static = np.empty(at.size, object)
        static[:] = list((start + scale * at.reshape(-1)).astype(np.int32))
        arrays = [static.reshape(at.shape), *(index for index, *_ in moves)]
        codes = ["i4", *(code for _, code, *_ in moves)]
        return self.map_results(find, arrays, codes, [kind], buffer.depth)[0]

    def _operand(self, array: ElementArray, code: str) -> _Operand:
        """Classify an array: one value everywhere, elements of one buffer, or a mixture.

        A mixture is copied into a buffer first, since a loop can only index memory.
        """
        values = array.reshape(-1).tolist()
        first = values[0]
        # Identity first: an array that was broadcast from one element repeats the same object.
        if isinstance(first, BufferElement):
            if all(x is first for x in values):
                return _Operand(value=self.load(first))
            indices = _indices(values, first.buffer)
            if indices is not None:
                return _Operand(buffer=first.buffer, indices=np.reshape(indices, array.shape))
        elif is_runtime_value(first):
            if all(is_runtime_value(x) and x == first for x in values):
                return _Operand(value=first)
        elif not any(is_runtime_value(x) or isinstance(x, BufferElement) for x in values):
            # Known numbers are compared by their bits: 0 and -0 differ, and NaN equals itself.
            if len({np.asarray(x).tobytes() for x in values}) == 1:
                return _Operand(value=first)
            table = self._emitter.constant_buffer(values, code)
            return _Operand(buffer=table, indices=_row_major(array.shape))
        # A broadcast repeats elements: each is copied once, and the indices repeat instead.
        different, indices = _unique(values)
        return _Operand(buffer=self._joined(different, code), indices=indices.reshape(array.shape))

    def _joined(self, values: Sequence[Value], code: str) -> Buffer:
        """Return a buffer with copies of values from several buffers and registers, made once."""
        emitter = self._emitter
        # `dict.fromkeys` drops duplicates and keeps the order, unlike a set: the module's text, and
        # with it its name in the cache, is reproducible.
        buffers = dict.fromkeys(x.buffer for x in values if isinstance(x, BufferElement))
        # Known numbers are compared as they are written: 0 and -0 differ, and NaN equals itself.
        written = tuple(
            (x.buffer.name, x.index) if isinstance(x, BufferElement) else str(x) for x in values
        )
        key = frozenset(buffer.name for buffer in buffers), written
        # What is copied has to be complete.
        for buffer in buffers:
            self._close_loop_of(buffer)
        # The copies are made as far out of the loops as all of the values are available.
        wide, depth = self.any_wide(values), max(map(emitter.depth, values))
        if key in emitter.joined_buffers[depth]:
            return emitter.joined_buffers[depth][key]
        joined = emitter.buffer(code, wide, depth, len(values))
        emitter.joined_buffers[depth][key] = joined
        # Long runs with a constant stride are copied by a loop: written out element by element, a
        # chain of 100 links took 43 s to compile, and takes 5 s so.
        for start, stop in _uniform_runs(values):
            if stop - start > MAX_UNROLLED_TERMS:
                part = np.empty(stop - start, object)
                part[:] = values[start:stop]
                self._copy(part, code, joined, np.int32(start), depth)
                continue
            for i in range(start, stop):
                x = self.load(values[i])
                emitter.blocks[depth].append(emitter.store_element(joined, np.int32(i), x))
        return joined

    def _depth(self, operands: Sequence[_Operand], least: int = 0) -> int:
        """Return the number of loops around the deepest of the operands, or `least`.

        In a branch, which may not be taken, it is that of the branch.
        """
        emitter = self._emitter
        depths = (x.buffer.depth if x.buffer else emitter.depth(x.value) for x in operands)
        depth = max(least, *depths)
        return emitter.current_depth if emitter.runs_once(depth) else depth

    def _counter(self, depth: int) -> str:
        """Return the name of a new loop counter; counters are the same in all lanes."""
        return self._emitter.new_value(False, depth)

    def _loop_for(self, size: int, depth: int, operands: Sequence[_Operand]) -> _LoopBody:
        """Return the open loop of so many iterations at a depth, for an operation to join.

        Other loops that compute an operand are closed first, so that they come before it.
        """
        key = size, depth
        for x in operands:
            if x.buffer is not None:
                mine = self._open.get(key)
                # Fusion is right only if iteration i reads what iteration i has computed.
                fits = (
                    mine
                    and x.buffer in mine.computed
                    and (x.indices == _row_major(x.indices.shape)).all()
                )
                if not fits:
                    self._close_loop_of(x.buffer)
        if key not in self._open:
            self._open[key] = _LoopBody(depth, [(self._counter(depth + 1), size)])
        return self._open[key]

    def _close_loop_of(self, buffer: Buffer) -> None:
        """End the open loop that fills a buffer, if there is one."""
        # A list, since closing changes the dictionary.
        for key, body in list(self._open.items()):
            if buffer in body.computed:
                self._close(key)

    def _close(self, key: tuple[int, int]) -> None:
        """End an open loop: emit it."""
        self._emit_loop(self._open.pop(key))

    def _emit_loop(self, body: _LoopBody) -> None:
        """Emit a loop, if it has an effect."""
        # A loop whose results were all uniform or known stores nothing, and is left out.
        if any(not group[-1].result for group in body.instructions):
            ((counter, size),) = body.counters
            label = self._emitter.fresh_name("loop")[1:]
            self._emitter.blocks[body.outer_depth] += [
                _loop_head(label, counter),
                *body.instructions,
                _loop_end(label, counter, size),
            ]

    @contextmanager
    def _inside(self, depth: int, *bodies: _LoopBody) -> Iterator[None]:
        """Let the emitter write into loops at a depth, each inside the one before."""
        emitter = self._emitter
        outer = emitter.blocks, emitter.available
        # Loop-invariant instructions still go to the lists of smaller depths, which are shared.
        emitter.blocks = [*emitter.blocks[: depth + 1], *(b.instructions for b in bodies)]
        emitter.available = [*emitter.available[: depth + 1], *(b.available for b in bodies)]
        try:
            yield
        finally:
            emitter.blocks, emitter.available = outer

    def _element(self, body: _LoopBody, operand: _Operand) -> Value:
        """Return an operand's element in the current iteration."""
        if operand.buffer is None:
            return operand.value
        # What this iteration has computed is still in a register.
        if operand.buffer in body.computed:
            return body.computed[operand.buffer]
        return self._emitter.load_element(operand.buffer, self._index(body, operand.indices))

    def _index(self, body: _LoopBody, indices: Any) -> Value:
        """Return the index of the current iteration's element in its buffer.

        Regular indices are computed from the loop counters; others are read from a constant table.
        """
        emitter = self._emitter
        (last, length), outer = body.counters[-1], body.counters[:-1]
        strides = _strides(indices)
        # A table costs a load and 4 bytes for each element; affine indices cost some integer
        # operations, which LLVM simplifies further.
        if strides is None:
            iteration = last
            if outer:
                row = scalars.multiply(emitter, "i4", outer[0][0], np.int32(length))
                iteration = scalars.add(emitter, "i4", row, last)
            table = emitter.constant_buffer(list(indices.reshape(-1).astype(np.int32)), "i4")
            return emitter.load_element(table, iteration)
        axes = list(zip(indices.shape, strides, strict=True))
        # In a fold the outer counter runs through all axes but the last, the inner one through it.
        split = len(axes) - 1 if outer else 0
        terms = self._index_terms(outer[0][0], axes[:split]) if outer else []
        index: Value = np.int32(indices.flat[0])
        for term in [*terms, *self._index_terms(last, axes[split:])]:
            index = scalars.add(emitter, "i4", index, term)
        return index

    def _index_terms(self, counter: Value, axes: Sequence[tuple[int, int]]) -> list[Value]:
        """Return what each axis adds to an index, for a counter that runs through all of them.

        Args:
            counter: the counter, which runs fastest along the last axis.
            axes: the size and the stride of each axis.
        """
        emitter, inner, out = self._emitter, 1, []
        merged = _merged_axes(axes)
        # Position along axis i: (counter / size of the axes after it) mod its own size.
        # A stride of zero, of a broadcast axis, adds nothing.
        for i, (size, stride) in reversed(list(enumerate(merged))):
            if stride:
                position = counter
                if inner > 1:
                    position = emitter.apply("udiv", "i4", counter, np.int32(inner))
                # The first axis needs no remainder, since the counter ends with it.
                position = emitter.apply("urem", "i4", position, np.int32(size)) if i else position
                out.append(scalars.multiply(emitter, "i4", position, np.int32(stride)))
            inner *= size
        return out

    def _stored(self, body: _LoopBody, x: Value, shape: tuple[int, ...], code: str) -> ElementArray:
        """Store a result of each iteration in a buffer, and return its elements."""
        emitter = self._emitter
        # A loop-invariant result needs no memory: all elements are the same value.
        if not is_runtime_value(x) or emitter.depth(x) <= body.outer_depth:
            return np.full(shape, x, object)
        buffer = emitter.buffer(code, emitter.widest(x), body.outer_depth, math.prod(shape))
        body.instructions.append(emitter.store_element(buffer, body.counters[0][0], x))
        body.computed[buffer] = x
        return buffer_array(buffer, shape)


def _row_major(shape: tuple[int, ...]) -> Any:
    """Return the indices of a buffer that has the elements of an array in their order."""
    return np.arange(math.prod(shape)).reshape(shape)


def buffer_array(buffer: Buffer, shape: tuple[int, ...]) -> ElementArray:
    """Return the elements of a buffer as an array."""
    # Row-major, as `_row_major` expects.
    out = np.empty(math.prod(shape), object)
    out[:] = [BufferElement(buffer, i) for i in range(out.size)]
    return out.reshape(shape)


def _indices(values: Sequence[Value], buffer: Buffer) -> list[int] | None:
    """Return the indices of values in a buffer, or None if some are not there."""
    # One pass in which nearly all values are elements of the buffer: others have no `buffer`.
    try:
        found = [x.index for x in values if x.buffer is buffer]
    except AttributeError:
        return None
    return found if len(found) == len(values) else None


def _first_elements(operand: _Operand) -> _Operand:
    """Return the first elements of an operand along its last axis."""
    if operand.buffer is None:
        return operand
    return _Operand(buffer=operand.buffer, indices=operand.indices[..., :1])


def _strides(indices: Any) -> list[int] | None:
    """Return the stride of indices along each axis, or None if they are irregular."""
    # The grid that has these strides is compared with the indices: affine maps are exact.
    strides, grid = [], indices.flat[0]
    for axis, size in enumerate(indices.shape):
        stride = int(np.take(indices, 1, axis).flat[0] - indices.flat[0]) if size > 1 else 0
        along = [-1 if i == axis else 1 for i in range(indices.ndim)]
        grid = grid + stride * np.arange(size).reshape(along)
        strides.append(stride)
    return strides if (grid == indices).all() else None


def _merged_axes(axes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join neighbouring axes that one stride covers, so that an index needs fewer divisions."""
    out: list[tuple[int, int]] = []
    for size, stride in axes:
        if size == 1:
            continue
        # The outer axis steps over exactly what the inner one covers.
        if out and out[-1][1] == size * stride:
            out[-1] = out[-1][0] * size, stride
        else:
            out.append((size, stride))
    return out


def _unique(values: Sequence[Value]) -> tuple[list[Value], Any]:
    """Return the different values in order, and the position among them of each value."""
    positions: dict[Any, int] = {}
    different: list[Value] = []
    at: list[int] = []
    for x in values:
        # Buffer elements are new objects after each operation, so they are compared by what they
        # name; known numbers by their bits, as in `Loops._operand`.
        if isinstance(x, BufferElement):
            key: Any = x.buffer.name, x.index
        else:
            key = x if is_runtime_value(x) else np.asarray(x).tobytes()
        if key not in positions:
            positions[key] = len(different)
            different.append(x)
        at.append(positions[key])
    return different, np.asarray(at)


def _uniform_runs(values: Sequence[Value]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of runs of one stride in one buffer, or of one known number."""
    start, stride = 0, None
    for i in range(1, len(values) + 1):
        distance = None if i == len(values) else _distance(values[i - 1], values[i])
        if distance is None or (stride is not None and distance != stride):
            yield start, i
            start, stride = i, None
        else:
            stride = distance


def _distance(x: Value, y: Value) -> int | None:
    """Return the distance of two elements of one buffer, 0 for equal known numbers, else None."""
    if isinstance(x, BufferElement) and isinstance(y, BufferElement):
        return y.index - x.index if x.buffer is y.buffer else None
    # Registers are stored one by one in any case.
    same = not (
        is_runtime_value(x)
        or is_runtime_value(y)
        or isinstance(x, BufferElement)
        or isinstance(y, BufferElement)
    )
    return 0 if same and np.asarray(x).tobytes() == np.asarray(y).tobytes() else None


def _loop_head(label: str, counter: str, first: int = 0, more: Sequence[Instruction] = ()) -> Group:
    """Return the head of a loop: its label, its counter, and other phi nodes.

    The block `…in` before it and `…on` at its end are where the phi nodes' values come from.
    """
    # The test is at the end, so that a loop runs at least once. Empty arrays never become loops.
    cases = (str(first), f"{label}in"), (f"{counter}.next", f"{label}on")
    return (
        ir.jump(f"{label}in"),
        ir.label(f"{label}in"),
        ir.jump(label),
        ir.label(label),
        ir.phi(counter, ir.I32, *cases),
        *more,
    )


def _loop_end(label: str, counter: str, size: int) -> Group:
    """Return the end of a loop: the next count, and the jump back."""
    following, more = f"{counter}.next", f"{counter}.more"
    types = ir.I32, None
    return (
        ir.jump(f"{label}on"),
        ir.label(f"{label}on"),
        Instruction("add", (counter, "1"), types, ir.I32, following),
        Instruction("icmp slt", (following, str(size)), types, ir.I1, more),
        ir.branch(more, label, f"{label}end"),
        ir.label(f"{label}end"),
    )
