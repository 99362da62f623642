"""What JAX's operations on whole arrays do where an array is large: loops, see `loops.Loops`."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen import jax_internals
from brax.kernels.codegen.emitter import Emitter, Value, code_of
from brax.kernels.codegen.loops import MAX_UNROLLED_TERMS, Loops
from brax.kernels.codegen.lowering import arrays, indexing, rules, scalars
from brax.kernels.codegen.lowering.arrays import ElementArray, apart, is_known, one


def operation(asm: Emitter, eqn: Any, given: Sequence[ElementArray]) -> list[ElementArray]:
    """The results of an operation, in a loop if it is worth one.

    Raises:
        Unsupported: if it is not translated.
    """
    name, loops = eqn.primitive.name, asm.loops
    if name in arrays.DATA_MOVEMENT or name in rules.RULES_BY_ROWS:
        return rules.operation(asm, eqn, given)
    shapes = [one(v.aval.shape) for v in eqn.outvars]
    if is_known(*given):
        return rules.operation(asm, eqn, given)
    if name == "top_k" or loops.worth(*given, *(np.broadcast_to(0, s) for s in shapes)):
        jax_internals.check(eqn)
        rule = rules.of_elements(asm, eqn)
        if rule is not None:
            (result,) = _codes(eqn.outvars)
            return [loops.each(rule, given, _codes(eqn.invars), result)]
        if name in _MEMORY_RULES:
            out = _MEMORY_RULES[name](asm, loops, eqn, *given)
            if out is not None:
                return out if isinstance(out, list) else [out]
    return rules.operation(asm, eqn, [loops.fetched(x) for x in given])


def _codes(variables: Sequence[Any]) -> list[str]:
    return [code_of(v.aval.dtype) for v in variables]


def _last(x: ElementArray, axes: Sequence[int]) -> ElementArray:
    """An array with some axes joined to be the last one."""
    kept = [i for i in range(x.ndim) if i not in axes]
    return x.transpose(*kept, *axes).reshape(*(x.shape[i] for i in kept), -1)


def _columns(x: ElementArray) -> list[ElementArray]:
    return [x[..., i] for i in range(x.shape[-1])]


def _reduction(rule: Callable[..., Value]) -> Callable[..., ElementArray | None]:
    def reduce(asm: Emitter, loops: Loops, eqn: Any, x: ElementArray) -> ElementArray | None:
        apart(eqn, eqn.params["axes"])
        rows, (code,) = _last(x, eqn.params["axes"]), _codes(eqn.invars)
        length = rows.shape[-1]

        def join(*terms: Value) -> Value:
            return functools.reduce(lambda a, b: rule(asm, code, a, b), terms)

        if not rows.size:
            return None
        if length <= MAX_UNROLLED_TERMS:
            return loops.each(join, _columns(rows), [code] * length, code)
        out = loops.fold(lambda x: [x], lambda _, a, b: [join(a, b)], [rows], [code], [code])
        return out[0]

    return reduce


def _cumulative(rule: Callable[..., Value]) -> Callable[..., ElementArray | None]:
    def cumulate(asm: Emitter, loops: Loops, eqn: Any, x: ElementArray) -> ElementArray | None:
        axis, (code,) = eqn.params["axis"], _codes(eqn.invars)
        apart(eqn, [axis])
        if x.shape[axis] <= MAX_UNROLLED_TERMS:
            return None
        order = -1 if eqn.params["reverse"] else 1
        rows = np.moveaxis(x, axis, -1)[..., ::order]
        (out,) = loops.fold(
            lambda x: [x],
            lambda _, a, b: [rule(asm, code, a, b)],
            *([rows], [code], [code]),
            series=True,
        )
        return np.moveaxis(out[..., ::order], -1, axis)

    return cumulate


def _extreme(test: str) -> Callable[..., ElementArray | None]:
    def place(asm: Emitter, loops: Loops, eqn: Any, x: ElementArray) -> ElementArray | None:
        (code,), (index,) = _codes(eqn.invars), _codes(eqn.outvars)
        apart(eqn, eqn.params["axes"])
        rows = _last(x, eqn.params["axes"])

        def later(i: Value, best: Value, at: Value, new: Value) -> Sequence[Value]:
            better = arrays.better(asm, test, code, best, new)
            place = scalars.convert(asm, i, "i4", index)
            return asm.select(better, new, best, code), asm.select(better, place, at, index)

        def whole(first: Value, *others: Value) -> Value:
            best, at = first, scalars.constant(index, 0)
            for i, new in enumerate(others):
                best, at = later(np.int32(i + 1), best, at, new)
            return at

        if rows.shape[-1] <= MAX_UNROLLED_TERMS:
            return loops.each(whole, _columns(rows), [code] * rows.shape[-1], index)
        zero = scalars.constant(index, 0)
        return loops.fold(lambda x: [x, zero], later, [rows], [code], [code, index])[1]

    return place


def _top(asm: Emitter, loops: Loops, eqn: Any, x: ElementArray) -> list[ElementArray]:
    """The largest along the last axis, one after another."""
    (code,), index = _codes(eqn.invars), _codes(eqn.outvars)[1]
    apart(eqn, [eqn.params["axis"]])
    rows = np.moveaxis(x, eqn.params["axis"], -1)
    count, zero = rows.shape[-1], scalars.constant(index, 0)
    places = arrays.known(np.arange(count, dtype=index))
    taken, found = np.full(rows.shape, scalars.constant("b1", 0), object), []

    def both(x: Value, y: Value) -> Value:
        return scalars.rule("and")(asm, "b1", x, y)

    def free(x: Value) -> Value:
        return scalars.rule("not")(asm, "b1", x)

    def later(i: Value, best: Value, at: Value, any_: Value, new: Value, gone: Value) -> Any:
        first = arrays.better(asm, "gt", code, best, new)
        first = both(free(gone), scalars.rule("or")(asm, "b1", free(any_), first))
        place = scalars.convert(asm, i, "i4", index)
        some = scalars.rule("or")(asm, "b1", any_, free(gone))
        return asm.select(first, new, best, code), asm.select(first, place, at, index), some

    for _ in range(eqn.params["k"]):
        best, at, _ = loops.fold(
            lambda x, gone: [x, zero, free(gone)],
            later,
            *([rows, taken], [code, "b1"], [code, index, "b1"]),
        )
        found.append((best, at))
        taken = loops.each(
            lambda gone, i, at: scalars.rule("or")(
                asm, "b1", gone, scalars.rule("eq")(asm, index, i, at)
            ),
            *([taken, places, at[..., None]], ["b1", index, index], "b1"),
        )
    return [np.moveaxis(np.stack(x, -1), -1, eqn.params["axis"]) for x in zip(*found, strict=True)]


def _dot(
    asm: Emitter, loops: Loops, eqn: Any, x: ElementArray, y: ElementArray
) -> ElementArray | None:
    left, right, depth, shape = arrays.factors(eqn, x, y)
    codes, (code,), multiply = (
        _codes(eqn.invars),
        _codes(eqn.outvars),
        arrays.multiplication(asm, eqn),
    )
    if not depth:
        return None

    def product(*pairs: Value) -> Value:
        total = multiply(pairs[0], pairs[depth])
        for a, b in zip(pairs[1:depth], pairs[depth + 1 :], strict=True):
            total = scalars.add(asm, code, total, multiply(a, b))
        return total

    if depth <= MAX_UNROLLED_TERMS:
        terms = [*_columns(left), *_columns(right)]
        kinds = [codes[0]] * depth + [codes[1]] * depth
        return loops.each(product, terms, kinds, code).reshape(shape)
    (out,) = loops.fold(
        lambda a, b: [multiply(a, b)],
        lambda _, total, a, b: [scalars.add(asm, code, total, multiply(a, b))],
        *([left, right], codes, [code]),
    )
    return out.reshape(shape)


def _gather(
    asm: Emitter, loops: Loops, eqn: Any, x: ElementArray, start: ElementArray
) -> ElementArray | None:
    if is_known(start):
        return rules.operation(asm, eqn, [x, start])[0]
    d, sizes = eqn.params["dimension_numbers"], one(eqn.params["slice_sizes"])
    indexing.whole(eqn, d.operand_batching_dims)
    shape = one(eqn.outvars[0].aval.shape)
    places = np.indices(shape)
    index_axes = [i for i in range(len(shape)) if i not in d.offset_dims]
    dropped = (*d.collapsed_slice_dims, *d.operand_batching_dims)
    inside = [i for i in range(x.ndim) if i not in dropped]
    batch = tuple(places[i] for i in index_axes)
    steps = [int(np.prod(x.shape[i + 1 :])) for i in range(x.ndim)]
    at = np.zeros(shape, int)
    for axis, of in zip(inside, d.offset_dims, strict=True):
        at = at + steps[axis] * places[of]
    for axis, other in zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True):
        at = at + steps[axis] * batch[other]
    code, kind = code_of(eqn.invars[1].aval.dtype), code_of(eqn.outvars[0].aval.dtype)
    moves = [
        (start[(*batch, k)], code, x.shape[axis] - sizes[axis], steps[axis])
        for k, axis in enumerate(d.start_index_map)
    ]
    out = loops.gather(x, kind, at, moves)
    if not indexing.fills(eqn):
        return out

    def filled(value: Value, *index: Value) -> Value:
        found: Value = np.bool_(True)
        for i, (_, _, most, _) in zip(index, moves, strict=True):
            here = indexing.inside(asm, code, i, most)
            found = scalars.rule("and")(asm, "b1", found, here)
        return asm.select(found, value, indexing.filling(eqn), kind)

    return loops.each(filled, [out, *(m[0] for m in moves)], [kind, *(m[1] for m in moves)], kind)


def _dynamic_slice(
    asm: Emitter, loops: Loops, eqn: Any, x: ElementArray, *start: ElementArray
) -> ElementArray:
    indexing.whole(eqn)
    shape = one(eqn.params["slice_sizes"])
    steps = [int(np.prod(x.shape[i + 1 :])) for i in range(x.ndim)]
    at = sum(step * p for step, p in zip(steps, np.indices(shape), strict=True))
    code, kind = code_of(eqn.invars[1].aval.dtype), code_of(eqn.outvars[0].aval.dtype)
    bounds = [n - m for n, m in zip(x.shape, shape, strict=True)]
    moves = [
        (s, code, most, step) for s, most, step in zip(start, bounds, steps, strict=True) if most
    ]
    return loops.gather(x, kind, np.asarray(at), moves)


def _scatter_add(
    asm: Emitter, loops: Loops, eqn: Any, x: ElementArray, start: ElementArray, new: ElementArray
) -> ElementArray | None:
    """Adds to each place at a time at most once."""
    if not arrays.is_known(start):
        return None
    (code,) = _codes(eqn.outvars)
    out, order = x.copy().reshape(-1), np.arange(x.size).reshape(x.shape)
    bound, clips = indexing.bounds(eqn), "CLIP" in str(eqn.params["mode"])
    rounds: dict[int, list[tuple[int, Value]]] = {}
    seen = np.zeros(x.size, int)
    for corner, offset, value in indexing.corners(eqn, start, new):
        place = indexing.place_of(corner, offset, bound, clips)
        if place is not None:
            to = order[place]
            rounds.setdefault(seen[to], []).append((to, value))
            seen[to] += 1
    for pairs in rounds.values():
        places, added = [p for p, _ in pairs], np.empty(len(pairs), object)
        added[:] = [v for _, v in pairs]
        given = [out[places], added]
        if not loops.worth(added):
            given = [loops.fetched(a) for a in given]
        fold = functools.partial(scalars.add, asm, code)
        out[places] = (
            loops.each(fold, given, [code, code], code)
            if loops.worth(added)
            else (arrays.each(fold, *given))
        )
    return out.reshape(x.shape)


_MEMORY_RULES: dict[str, Callable[..., Any]] = {
    "reduce_sum": _reduction(scalars.add),
    "reduce_prod": _reduction(scalars.multiply),
    "reduce_max": _reduction(scalars.largest),
    "reduce_min": _reduction(scalars.smallest),
    "reduce_and": _reduction(scalars.rule("and")),
    "reduce_or": _reduction(scalars.rule("or")),
    "cumsum": _cumulative(scalars.add),
    "cumprod": _cumulative(scalars.multiply),
    "cummax": _cumulative(scalars.largest),
    "cummin": _cumulative(scalars.smallest),
    "cumlogsumexp": _cumulative(scalars.log_add),
    "argmax": _extreme("gt"),
    "argmin": _extreme("lt"),
    "top_k": _top,
    "dot_general": _dot,
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "scatter-add": _scatter_add,
}
