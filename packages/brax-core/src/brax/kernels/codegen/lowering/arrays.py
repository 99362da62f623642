"""What JAX's operations on whole arrays do, for arrays of elements.

An array is a numpy array of values. Its batch axis has size one, and each of its elements stands
for those of all environments; an operation that moves elements about makes no instructions.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import (
    Cell,
    Emitter,
    Unsupported,
    Value,
    code_of,
    is_runtime_value,
)
from brax.kernels.codegen.lowering import scalars

ElementArray = Any
"""A numpy array of values."""

BATCH_MARK = 65537
"""The size of the batch axis where a kernel is traced to be translated: no other axis has it."""


def one(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape with a batch axis of size one.

    Raises:
        Unsupported: if the batch is mixed with another axis.
    """
    if any(n % BATCH_MARK == 0 and n > BATCH_MARK for n in shape):
        raise Unsupported("a batch axis that is joined with another")
    return tuple(1 if n == BATCH_MARK else n for n in shape)


def apart(eqn: Any, axes: Sequence[int], x: int = 0) -> None:
    """Makes sure that an operation along some axes does not mix environments."""
    shape = eqn.invars[x].aval.shape
    if any(shape[i] == BATCH_MARK for i in axes):
        raise Unsupported(f"the operation '{eqn.primitive.name}' across environments")


def known(array: Any) -> ElementArray:
    """Numbers that are known now, as an array of values."""
    numbers = np.asarray(array)
    out = np.empty(numbers.shape, object)
    for place in np.ndindex(numbers.shape):
        out[place] = numbers[place]
    return out


def each(fun: Callable[..., Value], *arrays: ElementArray) -> ElementArray:
    """Applies a function to the elements of arrays that are broadcast against each other."""
    wide = np.broadcast_arrays(*arrays) if len(arrays) > 1 else arrays
    out = np.empty(wide[0].shape, object)
    flat = out.reshape(-1)
    for i, values in enumerate(zip(*(a.reshape(-1) for a in wide), strict=True)):
        flat[i] = fun(*values)
    return out


def numbers(array: ElementArray, dtype: Any) -> Any:
    """Elements that all have to be known, as numbers.

    Raises:
        Unsupported: if one is not.
    """
    if not is_known(array):
        raise Unsupported("indices that are not known")
    return array.astype(dtype)


def is_known(*arrays: ElementArray) -> bool:
    """Return whether all elements are numbers."""
    return not any(
        is_runtime_value(x) or isinstance(x, Cell) for a in arrays for x in a.reshape(-1)
    )


def several(
    asm: Emitter,
    fun: Callable[..., Sequence[Value]],
    arrays: Sequence[ElementArray],
    given: Sequence[str],
    codes: Sequence[str],
) -> list[ElementArray]:
    """Apply a function of several results to the elements of arrays of one shape.

    Args:
        asm: receives the instructions: a loop over the elements where they are many and in memory.
        fun: takes one value for each array; returns some values.
        arrays: the arrays.
        given: their types.
        codes: types of the results.
    """
    if asm.loops and asm.loops.worth(arrays[0]):
        return list(asm.loops.several(fun, arrays, given, codes))
    fetched = [asm.loops.fetched(x) if asm.loops else x for x in arrays]
    out = [np.empty(fetched[0].size, object) for _ in codes]
    for i, values in enumerate(zip(*(x.reshape(-1) for x in fetched), strict=True)):
        for result, value in zip(out, fun(*values), strict=True):
            result[i] = value
    return [x.reshape(fetched[0].shape) for x in out]


def _slice(asm: Emitter, eqn: Any, x: ElementArray) -> ElementArray:
    p, shape = eqn.params, eqn.invars[0].aval.shape
    whole = zip(p["start_indices"], p["limit_indices"], shape, strict=True)
    apart(eqn, [i for i, (low, high, n) in enumerate(whole) if low or high < n])
    steps = p["strides"] or (1,) * x.ndim
    return x[tuple(map(slice, p["start_indices"], one(p["limit_indices"]), steps))]


def _broadcast(asm: Emitter, eqn: Any, x: ElementArray, *_: ElementArray) -> ElementArray:
    shape = one(eqn.outvars[0].aval.shape)
    kept = dict(zip(eqn.params["broadcast_dimensions"], x.shape, strict=True))
    return np.broadcast_to(x.reshape([kept.get(i, 1) for i in range(len(shape))]), shape)


def _reshape(asm: Emitter, eqn: Any, x: ElementArray, *_: ElementArray) -> ElementArray:
    before, after = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    if _inside(before) != _inside(after):
        raise Unsupported("a batch axis that changes places with another")
    return x.reshape(one(eqn.outvars[0].aval.shape))


def _inside(shape: tuple[int, ...]) -> int:
    """How many elements are side by side within one environment's place."""
    return math.prod(shape[shape.index(BATCH_MARK) + 1 :]) if BATCH_MARK in shape else 0


def _pad(asm: Emitter, eqn: Any, x: ElementArray, filling: ElementArray) -> ElementArray:
    out = np.empty(one(eqn.outvars[0].aval.shape), object)
    out[...] = filling[()]
    places = []
    for size, whole, (low, _, inner) in zip(
        x.shape, out.shape, eqn.params["padding_config"], strict=True
    ):
        at = low + np.arange(size) * (inner + 1)
        places.append((np.flatnonzero((at >= 0) & (at < whole)), at[(at >= 0) & (at < whole)]))
    out[np.ix_(*(to for _, to in places))] = x[np.ix_(*(of for of, _ in places))]
    return out


def _unstack(asm: Emitter, eqn: Any, x: ElementArray) -> list[ElementArray]:
    axis = eqn.params["axis"]
    return [np.take(x, i, axis) for i in range(x.shape[axis])]


def _split(asm: Emitter, eqn: Any, x: ElementArray) -> list[ElementArray]:
    apart(eqn, [eqn.params["axis"]])
    return np.split(x, np.cumsum(eqn.params["sizes"])[:-1], eqn.params["axis"])


def _iota(asm: Emitter, eqn: Any) -> ElementArray:
    aval, axis = eqn.outvars[0].aval, eqn.params["dimension"]
    if aval.shape[axis] == BATCH_MARK:
        raise Unsupported("the number of an environment")
    along = np.arange(aval.shape[axis], dtype=aval.dtype)
    shape = [-1 if i == axis else 1 for i in range(aval.ndim)]
    return known(np.broadcast_to(along.reshape(shape), one(aval.shape)))


def _platform_index(asm: Emitter, eqn: Any) -> ElementArray:
    """The first of some lists of platforms that has this one, or the one for all others."""
    named_here = [p is None or "cpu" in p for p in eqn.params["platforms"]]
    return known(np.int32(named_here.index(True)))


def _reduction(
    fold: Callable[..., Value], nothing: float | None = None
) -> Callable[..., ElementArray]:
    def reduce(asm: Emitter, eqn: Any, x: ElementArray) -> ElementArray:
        code = code_of(eqn.invars[0].aval.dtype)
        apart(eqn, eqn.params["axes"])
        for axis in sorted(eqn.params["axes"], reverse=True):
            if not x.shape[axis]:
                if nothing is None:
                    raise Unsupported("an extreme of nothing")
                shape = [n for k, n in enumerate(x.shape) if k != axis]
                x = np.full(shape, scalars.constant(code, nothing), object)
                continue
            total = _along(x, 0, axis)
            for i in range(1, x.shape[axis]):
                total = each(lambda a, b: fold(asm, code, a, b), total, _along(x, i, axis))
            x = total
        return x

    return reduce


def _cumulative(fold: Callable[..., Value]) -> Callable[..., ElementArray]:
    def cumulate(asm: Emitter, eqn: Any, x: ElementArray) -> ElementArray:
        code, axis = code_of(eqn.invars[0].aval.dtype), eqn.params["axis"]
        apart(eqn, [axis])
        order = range(x.shape[axis])[:: -1 if eqn.params["reverse"] else 1]
        parts: dict[int, ElementArray] = {}
        before = None
        for i in order:
            here = _along(x, i, axis)
            if before is not None:
                here = each(lambda a, b: fold(asm, code, a, b), before, here)
            parts[i] = before = here
        return np.stack([parts[i] for i in range(x.shape[axis])], axis)

    return cumulate


def _reverse(asm: Emitter, eqn: Any, x: ElementArray) -> ElementArray:
    apart(eqn, eqn.params["dimensions"])
    return np.flip(x, eqn.params["dimensions"])


def _concatenate(asm: Emitter, eqn: Any, *x: ElementArray) -> ElementArray:
    apart(eqn, [eqn.params["dimension"]])
    return np.concatenate(x, eqn.params["dimension"])


def _tile(asm: Emitter, eqn: Any, x: ElementArray) -> ElementArray:
    reps = eqn.params["reps"]
    apart(eqn, [i for i, n in enumerate(reps) if n != 1])
    return np.tile(x, reps)


def _along(x: ElementArray, i: int, axis: int) -> ElementArray:
    return x[(slice(None),) * axis + (i,)].reshape([n for k, n in enumerate(x.shape) if k != axis])


def better(asm: Emitter, test: str, code: str, best: Value, new: Value) -> Value:
    """Return whether a number comes before the best so far; what is not a number comes first."""
    out = scalars.rule(test)(asm, code, new, best)
    if not scalars.fraction(code):
        return out
    lost = scalars.rule("ne")(asm, code, new, new)
    kept = scalars.rule("eq")(asm, code, best, best)
    return scalars.rule("or")(asm, "b1", out, scalars.rule("and")(asm, "b1", lost, kept))


def _extreme(test: str) -> Callable[..., ElementArray]:
    def place(asm: Emitter, eqn: Any, x: ElementArray) -> ElementArray:
        """The first place of what is largest, or smallest; of what is not a number, if any is."""
        code, index = code_of(eqn.invars[0].aval.dtype), code_of(eqn.outvars[0].aval.dtype)
        (axis,) = eqn.params["axes"]
        apart(eqn, [axis])

        def later(best: Value, at: Value, new: Value, i: int) -> tuple[Value, Value]:
            first = better(asm, test, code, best, new)
            place = scalars.constant(index, i)
            return asm.select(first, new, best, code), asm.select(first, place, at, index)

        best = _along(x, 0, axis)
        at = np.full(best.shape, scalars.constant(index, 0), object)
        for i in range(1, x.shape[axis]):
            pairs = each(lambda b, a, n, i=i: later(b, a, n, i), best, at, _along(x, i, axis))
            best, at = each(lambda p: p[0], pairs), each(lambda p: p[1], pairs)
        return at

    return place


def factors(
    eqn: Any, x: ElementArray, y: ElementArray
) -> tuple[ElementArray, ElementArray, int, tuple[int, ...]]:
    """The operands of a product of arrays, to be multiplied element by element and summed along the
    last axis; its length, and the shape of the result.
    """
    (inner_x, inner_y), (same_x, same_y) = eqn.params["dimension_numbers"]
    apart(eqn, inner_x)
    free_x = [i for i in range(x.ndim) if i not in (*inner_x, *same_x)]
    free_y = [i for i in range(y.ndim) if i not in (*inner_y, *same_y)]
    batch = [x.shape[i] for i in same_x]
    depth = int(np.prod([x.shape[i] for i in inner_x]))
    rows = int(np.prod([x.shape[i] for i in free_x])), int(np.prod([y.shape[i] for i in free_y]))
    left = x.transpose(*same_x, *free_x, *inner_x).reshape(*batch, rows[0], 1, depth)
    right = y.transpose(*same_y, *free_y, *inner_y).reshape(*batch, 1, rows[1], depth)
    return left, right, depth, one(eqn.outvars[0].aval.shape)


def multiplication(asm: Emitter, eqn: Any) -> Callable[[Value, Value], Value]:
    """Return the multiplication of a product of arrays, in the type of its result."""
    first, second, code = (code_of(v.aval.dtype) for v in (*eqn.invars, *eqn.outvars))

    def multiply(a: Value, b: Value) -> Value:
        a, b = scalars.convert(asm, a, first, code), scalars.convert(asm, b, second, code)
        return scalars.multiply(asm, code, a, b)

    return multiply


def _dot(asm: Emitter, eqn: Any, x: ElementArray, y: ElementArray) -> ElementArray:
    left, right, depth, shape = factors(eqn, x, y)
    code, multiply = code_of(eqn.outvars[0].aval.dtype), multiplication(asm, eqn)
    if not depth:
        return known(np.zeros(shape, eqn.outvars[0].aval.dtype))

    def term(i: int) -> ElementArray:
        return each(multiply, left[..., i], right[..., i])

    total = term(0)
    for i in range(1, depth):
        total = each(lambda a, b: scalars.add(asm, code, a, b), total, term(i))
    return total.reshape(shape)


DATA_MOVEMENT = {
    *("slice", "broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "concatenate"),
    *("rev", "stack", "unstack", "split", "pad", "copy", "stop_gradient", "optimization_barrier"),
    *("tile", "device_put"),
}
"""Operations that only move elements about."""

ARRAY_RULES: dict[str, Callable[..., Any]] = {
    "slice": _slice,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "transpose": lambda asm, eqn, x: x.transpose(eqn.params["permutation"]),
    "concatenate": _concatenate,
    "tile": _tile,
    "rev": _reverse,
    "stack": lambda asm, eqn, *x: np.stack(x, eqn.params["axis"]),
    "unstack": _unstack,
    "split": _split,
    "pad": _pad,
    "iota": _iota,
    "reduce_sum": _reduction(scalars.add, 0),
    "reduce_prod": _reduction(scalars.multiply, 1),
    "reduce_max": _reduction(scalars.largest),
    "reduce_min": _reduction(scalars.smallest),
    "reduce_and": _reduction(scalars.rule("and"), 1),
    "reduce_or": _reduction(scalars.rule("or"), 0),
    "reduce_xor": _reduction(scalars.rule("xor"), 0),
    "cumsum": _cumulative(scalars.add),
    "cumprod": _cumulative(scalars.multiply),
    "cummax": _cumulative(scalars.largest),
    "cummin": _cumulative(scalars.smallest),
    "cumlogsumexp": _cumulative(scalars.log_add),
    "argmax": _extreme("gt"),
    "argmin": _extreme("lt"),
    "dot_general": _dot,
    "copy": lambda asm, eqn, x: x,
    "stop_gradient": lambda asm, eqn, x: x,
    "optimization_barrier": lambda asm, eqn, *x: list(x),
    "device_put": lambda asm, eqn, *x: list(x),
    "platform_index": _platform_index,
}
