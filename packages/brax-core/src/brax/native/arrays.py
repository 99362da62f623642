"""What JAX's operations on whole arrays do, for arrays of elements.

An array is a numpy array of values. Its batch axis has size one, and each of its elements stands
for those of all environments; an operation that moves elements about makes no instructions.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from brax.native import jax_internals, scalars
from brax.native.assembly import Assembly, Cell, Unsupported, Value, code_of, named

Elements = Any
"""A numpy array of values."""

MARK = 65537
"""The size of the batch axis where a kernel is traced to be translated: no other axis has it."""


def one(shape: Sequence[int]) -> tuple[int, ...]:
    """A shape with a batch axis of size one.

    Raises:
        Unsupported: if the batch is mixed with another axis.
    """
    if any(n % MARK == 0 and n > MARK for n in shape):
        raise Unsupported("a batch axis that is joined with another")
    return tuple(1 if n == MARK else n for n in shape)


def apart(eqn: Any, axes: Sequence[int], x: int = 0) -> None:
    """Makes sure that an operation along some axes does not mix environments."""
    shape = eqn.invars[x].aval.shape
    if any(shape[i] == MARK for i in axes):
        raise Unsupported(f"the operation '{eqn.primitive.name}' across environments")


def known(array: Any) -> Elements:
    """Numbers that are known now, as an array of values."""
    numbers = np.asarray(array)
    out = np.empty(numbers.shape, object)
    for place in np.ndindex(numbers.shape):
        out[place] = numbers[place]
    return out


def each(fun: Callable[..., Value], *arrays: Elements) -> Elements:
    """Applies a function to the elements of arrays that are broadcast against each other."""
    wide = np.broadcast_arrays(*arrays) if len(arrays) > 1 else arrays
    out = np.empty(wide[0].shape, object)
    flat = out.reshape(-1)
    for i, values in enumerate(zip(*(a.reshape(-1) for a in wide), strict=True)):
        flat[i] = fun(*values)
    return out


def numbers(array: Elements, dtype: Any) -> Any:
    """Elements that all have to be known, as numbers.

    Raises:
        Unsupported: if one is not.
    """
    if not is_known(array):
        raise Unsupported("indices that are not known")
    return array.astype(dtype)


def is_known(*arrays: Elements) -> bool:
    """Whether all elements are numbers."""
    return not any(named(x) or isinstance(x, Cell) for a in arrays for x in a.reshape(-1))


def operation(asm: Assembly, eqn: Any, given: Sequence[Elements]) -> list[Elements]:
    """The results of an operation, which are arrays in the shapes of its results.

    Raises:
        Unsupported: if it is not translated.
    """
    name = eqn.primitive.name
    code = code_of(eqn.invars[0].aval.dtype) if eqn.invars else ""
    if name not in OPERATIONS and name not in scalars.RULES:
        raise Unsupported(f"the operation '{name}'")
    jax_internals.check(eqn)
    if name == "mul" and eqn.outvars[0].aval.dtype != eqn.invars[0].aval.dtype:
        raise Unsupported("a product of another type than its factors")
    if name in scalars.RULES:
        rule = scalars.rule(name)
        return [each(lambda *x: rule(asm, code, *x), *given)]
    out = OPERATIONS[name](asm, eqn, *given)
    return out if isinstance(out, list) else [out]


def _select(asm: Assembly, eqn: Any, which: Elements, *cases: Elements) -> Elements:
    code = code_of(eqn.outvars[0].aval.dtype)
    if len(cases) != 2 or eqn.invars[0].aval.dtype != bool:
        raise Unsupported("a choice by number")
    return each(lambda c, no, yes: asm.select(c, yes, no, code), which, *cases)


def _convert(asm: Assembly, eqn: Any, x: Elements) -> Elements:
    before, after = code_of(eqn.invars[0].aval.dtype), code_of(eqn.outvars[0].aval.dtype)
    return each(lambda e: scalars.convert(asm, e, before, after), x)


def _integer_power(asm: Assembly, eqn: Any, x: Elements) -> Elements:
    code = code_of(eqn.outvars[0].aval.dtype)
    return each(lambda e: scalars.power(asm, code, e, eqn.params["y"]), x)


def _slice(asm: Assembly, eqn: Any, x: Elements) -> Elements:
    p, shape = eqn.params, eqn.invars[0].aval.shape
    whole = zip(p["start_indices"], p["limit_indices"], shape, strict=True)
    apart(eqn, [i for i, (low, high, n) in enumerate(whole) if low or high < n])
    steps = p["strides"] or (1,) * x.ndim
    return x[tuple(map(slice, p["start_indices"], one(p["limit_indices"]), steps))]


def _broadcast(asm: Assembly, eqn: Any, x: Elements, *_: Elements) -> Elements:
    shape = one(eqn.outvars[0].aval.shape)
    kept = dict(zip(eqn.params["broadcast_dimensions"], x.shape, strict=True))
    return np.broadcast_to(x.reshape([kept.get(i, 1) for i in range(len(shape))]), shape)


def _reshape(asm: Assembly, eqn: Any, x: Elements, *_: Elements) -> Elements:
    before, after = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    if _inside(before) != _inside(after):
        raise Unsupported("a batch axis that changes places with another")
    return x.reshape(one(eqn.outvars[0].aval.shape))


def _inside(shape: tuple[int, ...]) -> int:
    """How many elements are side by side within one environment's place."""
    return math.prod(shape[shape.index(MARK) + 1 :]) if MARK in shape else 0


def _pad(asm: Assembly, eqn: Any, x: Elements, filling: Elements) -> Elements:
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


def _unstack(asm: Assembly, eqn: Any, x: Elements) -> list[Elements]:
    axis = eqn.params["axis"]
    return [np.take(x, i, axis) for i in range(x.shape[axis])]


def _split(asm: Assembly, eqn: Any, x: Elements) -> list[Elements]:
    apart(eqn, [eqn.params["axis"]])
    return np.split(x, np.cumsum(eqn.params["sizes"])[:-1], eqn.params["axis"])


def _iota(asm: Assembly, eqn: Any) -> Elements:
    aval, axis = eqn.outvars[0].aval, eqn.params["dimension"]
    if aval.shape[axis] == MARK:
        raise Unsupported("the number of an environment")
    along = np.arange(aval.shape[axis], dtype=aval.dtype)
    shape = [-1 if i == axis else 1 for i in range(aval.ndim)]
    return known(np.broadcast_to(along.reshape(shape), one(aval.shape)))


def _reduction(fold: Callable[..., Value], nothing: float | None = None) -> Callable[..., Elements]:
    def reduce(asm: Assembly, eqn: Any, x: Elements) -> Elements:
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


def _cumulative(fold: Callable[..., Value]) -> Callable[..., Elements]:
    def cumulate(asm: Assembly, eqn: Any, x: Elements) -> Elements:
        code, axis = code_of(eqn.invars[0].aval.dtype), eqn.params["axis"]
        apart(eqn, [axis])
        order = range(x.shape[axis])[:: -1 if eqn.params["reverse"] else 1]
        parts: dict[int, Elements] = {}
        before = None
        for i in order:
            here = _along(x, i, axis)
            if before is not None:
                here = each(lambda a, b: fold(asm, code, a, b), before, here)
            parts[i] = before = here
        return np.stack([parts[i] for i in range(x.shape[axis])], axis)

    return cumulate


def _reverse(asm: Assembly, eqn: Any, x: Elements) -> Elements:
    apart(eqn, eqn.params["dimensions"])
    return np.flip(x, eqn.params["dimensions"])


def _concatenate(asm: Assembly, eqn: Any, *x: Elements) -> Elements:
    apart(eqn, [eqn.params["dimension"]])
    return np.concatenate(x, eqn.params["dimension"])


def _tile(asm: Assembly, eqn: Any, x: Elements) -> Elements:
    reps = eqn.params["reps"]
    apart(eqn, [i for i, n in enumerate(reps) if n != 1])
    return np.tile(x, reps)


def _along(x: Elements, i: int, axis: int) -> Elements:
    return x[(slice(None),) * axis + (i,)].reshape([n for k, n in enumerate(x.shape) if k != axis])


def better(asm: Assembly, test: str, code: str, best: Value, new: Value) -> Value:
    """Whether a number comes before the best so far; what is not a number comes first."""
    out = scalars.rule(test)(asm, code, new, best)
    if not scalars.fraction(code):
        return out
    lost = scalars.rule("ne")(asm, code, new, new)
    kept = scalars.rule("eq")(asm, code, best, best)
    return scalars.rule("or")(asm, "b1", out, scalars.rule("and")(asm, "b1", lost, kept))


def _extreme(test: str) -> Callable[..., Elements]:
    def place(asm: Assembly, eqn: Any, x: Elements) -> Elements:
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


def factors(eqn: Any, x: Elements, y: Elements) -> tuple[Elements, Elements, int, tuple[int, ...]]:
    """The operands of a product of arrays, to be multiplied element by element and summed along the
    last axis; its length, and the shape of the result.

    Raises:
        Unsupported: if their types differ.
    """
    codes = {code_of(v.aval.dtype) for v in (*eqn.invars, *eqn.outvars)}
    if len(codes) > 1:
        raise Unsupported("a product of two types")
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


def _dot(asm: Assembly, eqn: Any, x: Elements, y: Elements) -> Elements:
    left, right, depth, shape = factors(eqn, x, y)
    code = code_of(eqn.outvars[0].aval.dtype)
    if not depth:
        return known(np.zeros(shape, eqn.outvars[0].aval.dtype))

    def term(i: int) -> Elements:
        return each(lambda a, b: scalars.multiply(asm, code, a, b), left[..., i], right[..., i])

    total = term(0)
    for i in range(1, depth):
        total = each(lambda a, b: scalars.add(asm, code, a, b), total, term(i))
    return total.reshape(shape)


def whole(eqn: Any, own: Sequence[int] = ()) -> None:
    """Makes sure that slices have all environments, except along axes where each has its own."""
    shape, sizes = eqn.invars[0].aval.shape, eqn.params["slice_sizes"]
    apart(eqn, [i for i, n in enumerate(sizes) if n != shape[i] and i not in own])


def _gather(asm: Assembly, eqn: Any, x: Elements, start: Elements) -> Elements:
    """Elements at indices."""
    d, sizes = eqn.params["dimension_numbers"], one(eqn.params["slice_sizes"])
    whole(eqn, d.operand_batching_dims)
    code, kind = code_of(eqn.invars[1].aval.dtype), code_of(eqn.outvars[0].aval.dtype)
    out = np.empty(one(eqn.outvars[0].aval.shape), object)
    index_axes = [i for i in range(out.ndim) if i not in d.offset_dims]
    inside = [
        i for i in range(x.ndim) if i not in (*d.collapsed_slice_dims, *d.operand_batching_dims)
    ]
    bound = [n - m for n, m in zip(x.shape, sizes, strict=True)]
    fills = "FILL" in str(eqn.params["mode"])
    for place in np.ndindex(out.shape):
        batch = tuple(place[i] for i in index_axes)
        corner: list[Value] = [0] * x.ndim
        for k, axis in enumerate(d.start_index_map):
            corner[axis] = start[(*batch, k)]
            if fills and (named(corner[axis]) or not 0 <= corner[axis] <= bound[axis]):
                raise Unsupported("indices that may be out of range")
        for axis, other in zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True):
            corner[axis] = batch[other]
        offset = [0] * x.ndim
        for axis, of in zip(inside, d.offset_dims, strict=True):
            offset[axis] = place[of]
        out[place] = _at(asm, x, kind, corner, offset, bound, code)
    return out


def _at(
    asm: Assembly,
    x: Elements,
    kind: str,
    corner: Sequence[Value],
    offset: Sequence[int],
    bound: Sequence[int],
    code: str,
) -> Value:
    """The element at `corner`, each of whose indices is clipped to its bound, plus `offset`."""
    moving = [i for i, c in enumerate(corner) if named(c) and bound[i]]
    still = tuple(
        (0 if named(c) else min(max(int(c), 0), b)) + o
        for c, o, b in zip(corner, offset, bound, strict=True)
    )
    if not moving:
        return x[still]
    strides = np.cumprod([1, *[bound[i] + 1 for i in reversed(moving)]])[::-1][1:]
    flat: Value = np.int32(0)
    for i, stride in zip(moving, strides.tolist(), strict=True):
        index = scalars.convert(asm, corner[i], code, "i4")
        index = scalars.largest(asm, "i4", index, np.int32(0))
        index = scalars.smallest(asm, "i4", index, np.int32(bound[i]))
        index = scalars.multiply(asm, "i4", index, np.int32(stride)) if stride > 1 else index
        flat = scalars.rule("add")(asm, "i4", flat, index) if named(flat) else index
    reach = tuple(slice(s, s + bound[i] + 1) if i in moving else s for i, s in enumerate(still))
    values = x[reach].reshape(-1).tolist()
    if not asm.widest(flat):
        return asm.element(values, flat, kind)
    value = values[-1]
    for i in reversed(range(len(values) - 1)):
        before = scalars.rule("le")(asm, "i4", flat, np.int32(i))
        value = asm.select(before, values[i], value, kind)
    return value


def _dynamic_slice(asm: Assembly, eqn: Any, x: Elements, *start: Elements) -> Elements:
    shape = one(eqn.params["slice_sizes"])
    whole(eqn)
    code, kind = code_of(eqn.invars[1].aval.dtype), code_of(eqn.outvars[0].aval.dtype)
    bound = [n - m for n, m in zip(x.shape, shape, strict=True)]
    corner = [s[()] for s in start]
    out = np.empty(shape, object)
    for place in np.ndindex(out.shape):
        out[place] = _at(asm, x, kind, corner, place, bound, code)
    return out


def _dynamic_update(
    asm: Assembly, eqn: Any, x: Elements, new: Elements, *start: Elements
) -> Elements:
    kind, code = code_of(eqn.outvars[0].aval.dtype), code_of(eqn.invars[2].aval.dtype)
    out = x.copy()
    for place in np.ndindex(new.shape):
        moving = [i for i, s in enumerate(start) if named(s[()]) and x.shape[i] > new.shape[i]]
        if len(moving) > 1:
            raise Unsupported("indices of several axes that are not known")
        at = [
            (0 if named(s[()]) else int(np.clip(int(s[()]), 0, n - m))) + p
            for s, n, m, p in zip(start, x.shape, new.shape, place, strict=True)
        ]
        if not moving:
            out[tuple(at)] = new[place]
            continue
        (axis,) = moving
        last = x.shape[axis] - new.shape[axis]
        for i in range(last + 1):
            # What is beyond either end counts as the end.
            test = "le" if i == 0 else "ge" if i == last else "eq"
            here = scalars.rule(test)(asm, code, start[axis][()], scalars.constant(code, i))
            at[axis] = i + place[axis]
            out[tuple(at)] = asm.select(here, new[place], out[tuple(at)], kind)
    return out


def targets(eqn: Any, order: Elements, start: Elements, new: Elements) -> list[Any]:
    """Which elements of an array are changed by those of another.

    Args:
        eqn: a scatter.
        order: an array like the first operand.
        start: its indices.
        new: what comes to them.

    Returns:
        The element of `order` for each of `new`, in turn.

    Raises:
        Unsupported: if the indices are not known, or out of range.
    """
    d = eqn.params["dimension_numbers"]
    if d.operand_batching_dims:
        raise Unsupported("a scatter with batches")
    index_axes = [i for i in range(new.ndim) if i not in d.update_window_dims]
    inside = [i for i in range(order.ndim) if i not in d.inserted_window_dims]
    at, out = numbers(start, int), []
    for place in np.ndindex(new.shape):
        corner = np.zeros(order.ndim, int)
        batch = tuple(place[i] for i in index_axes)
        for k, axis in enumerate(d.scatter_dims_to_operand_dims):
            corner[axis] = at[(*batch, k)]
        for axis, of in zip(inside, d.update_window_dims, strict=True):
            corner[axis] += place[of]
        if (corner < 0).any() or (corner >= order.shape).any():
            raise Unsupported("indices out of range")
        out.append(order[tuple(corner)])
    return out


def _scatter(fold: Callable[..., Value] | None) -> Callable[..., Elements]:
    def scatter(asm: Assembly, eqn: Any, x: Elements, start: Elements, new: Elements) -> Elements:
        code = code_of(eqn.outvars[0].aval.dtype)
        out = x.reshape(-1).copy()
        order = np.arange(x.size).reshape(x.shape)
        places = targets(eqn, order, start, new)
        for to, value in zip(places, new.reshape(-1), strict=True):
            out[to] = fold(asm, code, out[to], value) if fold else value
        return out.reshape(x.shape)

    return scatter


def _sort(asm: Assembly, eqn: Any, *arrays: Elements) -> Elements:
    """Sorts few elements, by exchanging neighbours."""
    axis, code = eqn.params["dimension"], code_of(eqn.invars[0].aval.dtype)
    apart(eqn, [axis])
    if len(arrays) > 1:
        raise Unsupported("a sort of several arrays")
    (x,) = arrays
    rows = [_along(x, i, axis) for i in range(x.shape[axis])]
    if len(rows) > 8:
        raise Unsupported("a sort of many")
    for end in reversed(range(len(rows))):
        for i in range(end):
            a, b = rows[i], rows[i + 1]
            rows[i] = each(lambda a, b: scalars.smallest(asm, code, a, b), a, b)
            rows[i + 1] = each(lambda a, b: scalars.largest(asm, code, a, b), a, b)
    return np.stack(rows, axis)


MOVES = {
    *("slice", "broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "concatenate"),
    *("rev", "stack", "unstack", "split", "pad", "copy", "stop_gradient", "optimization_barrier"),
    "tile",
}
"""Operations that only move elements about."""

OPERATIONS: dict[str, Callable[..., Any]] = {
    "select_n": _select,
    "convert_element_type": _convert,
    "integer_pow": _integer_power,
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
    "cumsum": _cumulative(scalars.add),
    "argmax": _extreme("gt"),
    "argmin": _extreme("lt"),
    "dot_general": _dot,
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update,
    "scatter": _scatter(None),
    "scatter-add": _scatter(scalars.add),
    "sort": _sort,
    "copy": lambda asm, eqn, x: x,
    "stop_gradient": lambda asm, eqn, x: x,
    "optimization_barrier": lambda asm, eqn, *x: list(x),
}
