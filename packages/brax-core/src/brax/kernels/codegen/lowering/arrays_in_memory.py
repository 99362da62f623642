"""Lowering rules of operations on whole arrays that stay in memory, as loops.

In a long kernel (see `cpu.MAX_UNROLLED_ELEMENTS`) these rules come before those of `rules`. An
operation without a rule here, or on small arrays, is unrolled, with its operands loaded first.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen import jax_internals
from brax.kernels.codegen.emitter import Emitter, Value, code_of
from brax.kernels.codegen.loops import MAX_UNROLLED_TERMS, Loops
from brax.kernels.codegen.lowering import arrays, indexing, integers, rules, scalars
from brax.kernels.codegen.lowering.arrays import (
    ElementArray,
    element_shape,
    is_constant,
    require_unbatched,
)
from brax.kernels.codegen.lowering.registry import lowering_rule, operation

CHAINS = 4
"""Number of parts of a row in which `argmax` searches side by side, because each step of a search
waits some cycles for the one before it."""


def lower(emitter: Emitter, eqn: Any, operands: Sequence[ElementArray]) -> list[ElementArray]:
    """Emit the instructions of an equation, in a loop if it is worth one; return its results.

    Raises:
        Unsupported: if the operation has no lowering rule.
    """
    found, loops = operation(eqn), emitter.loops
    # Moving elements does not load them; rules by rows decide on a loop themselves.
    if found.moves or found.by_rows:
        return rules.lower(emitter, eqn, operands)
    shapes = [element_shape(v.aval.shape) for v in eqn.outvars]
    # Known numbers are folded, whatever their count.
    if is_constant(*operands):
        return rules.lower(emitter, eqn, operands)
    # An operation without an unrolled rule, `top_k`, is a loop for arrays of any size.
    if not found.rule or loops.worth_looping(*operands, sizes=map(math.prod, shapes)):
        jax_internals.check(eqn, found.parameters)
        rule = rules.elementwise_rule(emitter, eqn)
        if rule is not None:
            (result,) = _codes(eqn.outvars)
            return [loops.map_elements(rule, operands, _codes(eqn.invars), result)]
        if found.in_memory:
            # None means that the rule leaves this case to the unrolled one.
            out = found.in_memory(emitter, loops, eqn, *operands)
            if out is not None:
                return out if isinstance(out, list) else [out]
    return rules.lower(emitter, eqn, [loops.loaded(x) for x in operands])


def _codes(variables: Sequence[Any]) -> list[str]:
    """Return the type codes of an equation's variables."""
    return [code_of(v.aval.dtype) for v in variables]


def _joined_last(x: ElementArray, axes: Sequence[int]) -> ElementArray:
    """Return an array with some axes joined into one, which is the last."""
    kept = [i for i in range(x.ndim) if i not in axes]
    return x.transpose(*kept, *axes).reshape(*(x.shape[i] for i in kept), -1)


def _columns(x: ElementArray) -> list[ElementArray]:
    """Return the arrays along the last axis."""
    return [x[..., i] for i in range(x.shape[-1])]


def _reduction(combine: Callable[..., Value]) -> Callable[..., ElementArray | None]:
    """Return the rule of a reduction, from the rule of two elements."""

    def reduce(emitter: Emitter, loops: Loops, eqn: Any, x: ElementArray) -> ElementArray | None:
        require_unbatched(eqn, eqn.params["axes"])
        rows, (code,) = _joined_last(x, eqn.params["axes"]), _codes(eqn.invars)
        length = rows.shape[-1]

        def join(*terms: Value) -> Value:
            return functools.reduce(lambda a, b: combine(emitter, code, a, b), terms)

        if not rows.size:
            return None
        # Short sums are unrolled in a loop over the rows, which may be fused with other loops.
        if length <= MAX_UNROLLED_TERMS:
            return loops.map_elements(join, _columns(rows), [code] * length, code)
        out = loops.fold(lambda x: [x], lambda _, a, b: [join(a, b)], [rows], [code], [code])
        return out[0]

    return reduce


def _cumulative(combine: Callable[..., Value]) -> Callable[..., ElementArray | None]:
    """Return the rule of a cumulative operation, from the rule of two elements."""

    def cumulate(emitter: Emitter, loops: Loops, eqn: Any, x: ElementArray) -> ElementArray | None:
        axis, (code,) = eqn.params["axis"], _codes(eqn.invars)
        require_unbatched(eqn, [axis])
        if x.shape[axis] <= MAX_UNROLLED_TERMS:
            return None
        # Reversed twice, which costs nothing, a fold from the end is one from the beginning.
        order = -1 if eqn.params["reverse"] else 1
        rows = np.moveaxis(x, axis, -1)[..., ::order]
        (out,) = loops.fold(
            lambda x: [x],
            lambda _, a, b: [combine(emitter, code, a, b)],
            *([rows], [code], [code]),
            keep_all=True,
        )
        return np.moveaxis(out[..., ::order], -1, axis)

    return cumulate


def _extreme(test: str) -> Callable[..., ElementArray | None]:
    """Return the rule of `argmax` (`gt`) or `argmin` (`lt`)."""

    def position(emitter: Emitter, loops: Loops, eqn: Any, x: ElementArray) -> ElementArray | None:
        (code,), (index,) = _codes(eqn.invars), _codes(eqn.outvars)
        require_unbatched(eqn, eqn.params["axes"])
        rows = _joined_last(x, eqn.params["axes"])

        def later(i: Value, best: Value, at: Value, new: Value) -> Sequence[Value]:
            replaces = arrays.better(emitter, test, code, best, new)
            number = scalars.convert(emitter, i, "i4", index)
            return (
                emitter.select(replaces, new, best, code),
                emitter.select(replaces, number, at, index),
            )

        def unrolled(first: Value, *others: Value) -> Value:
            best, at = first, scalars.constant(index, 0)
            for i, new in enumerate(others):
                best, at = later(np.int32(i + 1), best, at, new)
            return at

        length = rows.shape[-1]
        if length <= MAX_UNROLLED_TERMS:
            return loops.map_elements(unrolled, _columns(rows), [code] * length, index)
        # Each step waits for the one before it. So equal parts of the row are searched side by
        # side: the carry is the best number of each and its position within the part.
        part, zero = length // CHAINS, scalars.constant(index, 0)
        parts = [rows[..., k * part : (k + 1) * part] for k in range(CHAINS)]

        def start(*first: Value) -> Sequence[Value]:
            return [x for number in first for x in (number, zero)]

        def step(i: Value, *values: Value) -> Sequence[Value]:
            best, at, new = (
                values[: 2 * CHAINS : 2],
                values[1 : 2 * CHAINS : 2],
                values[-CHAINS:],
            )
            return [x for b, a, n in zip(best, at, new, strict=True) for x in later(i, b, a, n)]

        found = loops.fold(start, step, parts, [code] * CHAINS, [code, index] * CHAINS)

        def first_of(*values: Value) -> Value:
            best, at = values[:2]
            for k in range(1, CHAINS):
                new, place = values[2 * k : 2 * k + 2]
                replaces = arrays.better(emitter, test, code, best, new)
                best = emitter.select(replaces, new, best, code)
                place = scalars.rule("add")(
                    emitter, index, place, scalars.constant(index, k * part)
                )
                at = emitter.select(replaces, place, at, index)
            for i, new in enumerate(values[2 * CHAINS :], CHAINS * part):
                best, at = later(np.int32(i), best, at, new)
            return at

        rest = _columns(rows[..., CHAINS * part :])
        codes = [code, index] * CHAINS + [code] * len(rest)
        return loops.map_elements(first_of, [*found, *rest], codes, index)

    return position


def _top(emitter: Emitter, loops: Loops, eqn: Any, x: ElementArray) -> list[ElementArray]:
    """Lower `top_k`: k passes over the last axis, each of which takes the largest that is left.

    As in XLA, floats are in total order: -NaN is below all, NaN above all, and -0 below 0.
    """
    (kind,), index = _codes(eqn.invars), _codes(eqn.outvars)[1]
    require_unbatched(eqn, [eqn.params["axis"]])
    # All passes are over integers that are in that order.
    code = integers.ordered_code(kind)
    rows = loops.map_elements(
        functools.partial(integers.ordered, emitter, kind),
        *([np.moveaxis(x, eqn.params["axis"], -1)], [kind], code),
    )
    count, zero = rows.shape[-1], scalars.constant(index, 0)
    positions = arrays.constant_array(np.arange(count, dtype=index))
    # `taken` marks what earlier passes have found.
    taken, found = np.full(rows.shape, scalars.constant("b1", 0), object), []

    def both(x: Value, y: Value) -> Value:
        return scalars.rule("and")(emitter, "b1", x, y)

    def free(x: Value) -> Value:
        return scalars.rule("not")(emitter, "b1", x)

    # The carry is the best number, its position, and whether there is one yet: the first element
    # of a row may be taken already.
    def later(i: Value, best: Value, at: Value, any_: Value, new: Value, gone: Value) -> Any:
        replaces = scalars.rule("gt")(emitter, code, new, best)
        replaces = both(free(gone), scalars.rule("or")(emitter, "b1", free(any_), replaces))
        position = scalars.convert(emitter, i, "i4", index)
        some = scalars.rule("or")(emitter, "b1", any_, free(gone))
        return (
            emitter.select(replaces, new, best, code),
            emitter.select(replaces, position, at, index),
            some,
        )

    for _ in range(eqn.params["k"]):
        best, at, _ = loops.fold(
            lambda x, gone: [x, zero, free(gone)],
            later,
            *([rows, taken], [code, "b1"], [code, index, "b1"]),
        )
        value = loops.map_elements(
            functools.partial(integers.from_ordered, emitter, kind), [best], [code], kind
        )
        found.append((value, at))
        taken = loops.map_elements(
            lambda gone, i, at: scalars.rule("or")(
                emitter, "b1", gone, scalars.rule("eq")(emitter, index, i, at)
            ),
            *([taken, positions, at[..., None]], ["b1", index, index], "b1"),
        )
    return [np.moveaxis(np.stack(x, -1), -1, eqn.params["axis"]) for x in zip(*found, strict=True)]


def _dot(
    emitter: Emitter, loops: Loops, eqn: Any, x: ElementArray, y: ElementArray
) -> ElementArray | None:
    """Lower `dot_general` to a loop over the result, with the sum unrolled or folded."""
    left, right, depth, shape = arrays.factors(eqn, x, y)
    codes, (code,) = _codes(eqn.invars), _codes(eqn.outvars)
    add, multiply = arrays.addition(emitter, eqn), arrays.multiplication(emitter, eqn)
    if not depth:
        return None

    # The factors of x come first, then those of y.
    def product(*pairs: Value) -> Value:
        total = multiply(pairs[0], pairs[depth])
        for a, b in zip(pairs[1:depth], pairs[depth + 1 :], strict=True):
            total = add(total, multiply(a, b))
        return total

    if depth <= MAX_UNROLLED_TERMS:
        terms = [*_columns(left), *_columns(right)]
        kinds = [codes[0]] * depth + [codes[1]] * depth
        return loops.map_elements(product, terms, kinds, code).reshape(shape)
    (out,) = loops.fold(
        lambda a, b: [multiply(a, b)],
        lambda _, total, a, b: [add(total, multiply(a, b))],
        *([left, right], codes, [code]),
    )
    return out.reshape(shape)


def _gather(
    emitter: Emitter, loops: Loops, eqn: Any, x: ElementArray, start: ElementArray
) -> ElementArray | None:
    """Lower `gather`; unknown indices become loads at computed addresses."""
    # With known indices a gather only moves elements.
    if is_constant(start):
        return indexing.gather(emitter, eqn, x, start)
    d, sizes = eqn.params["dimension_numbers"], element_shape(eqn.params["slice_sizes"])
    indexing.require_full_batch(eqn, d.operand_batching_dims)
    shape = element_shape(eqn.outvars[0].aval.shape)
    # For each axis of the result, the position along it of each element.
    positions = np.indices(shape)
    index_axes = [i for i in range(len(shape)) if i not in d.offset_dims]
    dropped = (*d.collapsed_slice_dims, *d.operand_batching_dims)
    window_axes = [i for i in range(x.ndim) if i not in dropped]
    batch = tuple(positions[i] for i in index_axes)
    strides = [int(np.prod(x.shape[i + 1 :])) for i in range(x.ndim)]
    # The static part of the flat index: the offset within the window, and batching axes.
    at = np.zeros(shape, int)
    for axis, of in zip(window_axes, d.offset_dims, strict=True):
        at = at + strides[axis] * positions[of]
    for axis, other in zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True):
        at = at + strides[axis] * batch[other]
    code, kind = code_of(eqn.invars[1].aval.dtype), code_of(eqn.outvars[0].aval.dtype)
    # The dynamic part: where the window starts along each indexed axis.
    moves = [
        (start[(*batch, k)], code, x.shape[axis] - sizes[axis], strides[axis])
        for k, axis in enumerate(d.start_index_map)
    ]
    out = loops.gather(x, kind, at, moves)
    if not indexing.fills_out_of_range(eqn):
        return out

    def filled(value: Value, *index: Value) -> Value:
        found: Value = np.bool_(True)
        for i, (_, _, most, _) in zip(index, moves, strict=True):
            here = indexing.in_bounds(emitter, code, i, most)
            found = scalars.rule("and")(emitter, "b1", found, here)
        return emitter.select(found, value, indexing.fill_value(eqn), kind)

    operands = [out, *(m[0] for m in moves)]
    return loops.map_elements(filled, operands, [kind, *(m[1] for m in moves)], kind)


def _dynamic_slice(
    emitter: Emitter, loops: Loops, eqn: Any, x: ElementArray, *start: ElementArray
) -> ElementArray:
    """Lower `dynamic_slice` to loads at computed addresses; its start is clipped."""
    indexing.require_full_batch(eqn)
    shape = element_shape(eqn.params["slice_sizes"])
    strides = [int(np.prod(x.shape[i + 1 :])) for i in range(x.ndim)]
    at = sum(stride * p for stride, p in zip(strides, np.indices(shape), strict=True))
    code, kind = code_of(eqn.invars[1].aval.dtype), code_of(eqn.outvars[0].aval.dtype)
    max_starts = [n - m for n, m in zip(x.shape, shape, strict=True)]
    # A slice of the whole axis can only start at zero.
    moves = [
        (s, code, most, stride)
        for s, most, stride in zip(start, max_starts, strides, strict=True)
        if most
    ]
    return loops.gather(x, kind, np.asarray(at), moves)


def _scatter_add(
    emitter: Emitter,
    loops: Loops,
    eqn: Any,
    x: ElementArray,
    start: ElementArray,
    new: ElementArray,
) -> ElementArray | None:
    """Lower `scatter-add` with known indices to loops that add to each element at most once."""
    if not is_constant(start):
        return None
    (code,) = _codes(eqn.outvars)
    out, order = x.copy().reshape(-1), np.arange(x.size).reshape(x.shape)
    bound, clips = indexing.max_starts(eqn), "CLIP" in str(eqn.params["mode"])
    # Round r has the (r + 1)-th update of each element that has so many. So the sum of an element
    # is in the order of its updates, and a round's additions do not depend on each other.
    rounds: dict[int, list[tuple[int, Value]]] = {}
    seen = np.zeros(x.size, int)
    for window, offset, value in indexing.updates(eqn, start, new):
        index = indexing.update_index(window, offset, bound, clips)
        if index is not None:
            to = order[index]
            rounds.setdefault(seen[to], []).append((to, value))
            seen[to] += 1
    for pairs in rounds.values():
        targets, added = [p for p, _ in pairs], np.empty(len(pairs), object)
        added[:] = [v for _, v in pairs]
        operands = [out[targets], added]
        if not loops.worth_looping(added):
            operands = [loops.loaded(a) for a in operands]
        combine = functools.partial(scalars.add, emitter, code)
        out[targets] = (
            loops.map_elements(combine, operands, [code, code], code)
            if loops.worth_looping(added)
            else (arrays.map_elements(combine, *operands))
        )
    return out.reshape(x.shape)


# The operations that have a rule for arrays in memory and another one for unrolled arrays.
_REDUCTIONS = {
    "reduce_sum": (scalars.add, 0),
    "reduce_prod": (scalars.multiply, 1),
    # Extremes of nothing are left to XLA, see `arrays.reduction`.
    "reduce_max": (scalars.largest, None),
    "reduce_min": (scalars.smallest, None),
    # All bits are set.
    "reduce_and": (scalars.rule("and"), -1),
    "reduce_or": (scalars.rule("or"), 0),
}
"""The rule of two elements, and the result of a reduction of nothing."""

for _name, (_combine, _neutral) in _REDUCTIONS.items():
    lowering_rule(_name, in_memory=_reduction(_combine), parameters=arrays.REDUCED, reduces=True)(
        arrays.reduction(_combine, _neutral)
    )

_CUMULATIVE = {
    "cumsum": scalars.add,
    "cumprod": scalars.multiply,
    "cummax": scalars.largest,
    "cummin": scalars.smallest,
    "cumlogsumexp": scalars.log_add,
}
"""The rule of two elements."""

for _name, _combine in _CUMULATIVE.items():
    lowering_rule(_name, in_memory=_cumulative(_combine), parameters="axis reverse", stored=True)(
        arrays.cumulative(_combine)
    )

_position_rule = functools.partial(lowering_rule, parameters="axes index_dtype", reduces=True)
_position_rule("argmax", in_memory=_extreme("gt"))(arrays.extreme("gt"))
_position_rule("argmin", in_memory=_extreme("lt"))(arrays.extreme("lt"))

lowering_rule("top_k", in_memory=_top, parameters="axis k is_stable?", stored=True)(None)
lowering_rule(
    "dot_general",
    in_memory=_dot,
    parameters="dimension_numbers out_sharding precision preferred_element_type",
    stored=True,
)(arrays.dot)
# With known indices a gather only moves elements.
lowering_rule(
    "gather",
    in_memory=_gather,
    parameters="dimension_numbers fill_value indices_are_sorted mode slice_sizes unique_indices",
    free=True,
)(indexing.gather)
lowering_rule("dynamic_slice", in_memory=_dynamic_slice, parameters="slice_sizes")(
    indexing.dynamic_slice
)
lowering_rule("scatter-add", in_memory=_scatter_add, parameters=indexing.SCATTERED)(
    indexing.scatter(scalars.add)
)
