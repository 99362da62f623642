"""Lowering rules of operations on whole arrays, unrolled: for NumPy arrays of elements.

An array of the jaxpr is a NumPy array of values. Its batch axis has size one, since each element
stands for those of all environments. An operation that only moves elements is NumPy's operation
on that array, and emits no instructions.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import (
    BufferElement,
    Emitter,
    Unsupported,
    Value,
    code_of,
    is_runtime_value,
)
from brax.kernels.codegen.lowering import scalars
from brax.kernels.codegen.lowering.registry import lowering_rule
from brax.kernels.fusion_barrier import BARRIER_NAME

ElementArray = Any
"""A NumPy array of values; its dtype is `object`."""

REDUCED = "axes out_sharding?"
"""The parameters of a reduction."""

BATCH_MARK = 65537
"""The size of the batch axis while a kernel is traced. No other axis has it, so that it marks the
batch. It is a prime, so that only an axis that was joined with the batch has a multiple of it."""


@functools.lru_cache(maxsize=4096)
def element_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with one in place of the batch size.

    Raises:
        Unsupported: if the batch is joined with another axis.
    """
    if any(n % BATCH_MARK == 0 and n > BATCH_MARK for n in shape):
        raise Unsupported("a batch axis that is joined with another")
    return tuple(1 if n == BATCH_MARK else n for n in shape)


def require_unbatched(eqn: Any, axes: Sequence[int], x: int = 0) -> None:
    """Check that an operation along some axes of operand `x` does not mix environments.

    Raises:
        Unsupported: if one of the axes is the batch.
    """
    shape = eqn.invars[x].aval.shape
    if any(shape[i] == BATCH_MARK for i in axes):
        raise Unsupported(f"the operation '{eqn.primitive.name}' across environments")


def constant_array(array: Any) -> ElementArray:
    """Return an array of known numbers as an array of elements."""
    numbers = np.asarray(array)
    # Not `astype(object)`, which would make Python numbers of NumPy's and lose their type.
    return np.fromiter(numbers.flat, object, numbers.size).reshape(numbers.shape)


def broadcast(arrays: Sequence[ElementArray]) -> Sequence[ElementArray]:
    """Return arrays that are broadcast against each other."""
    # Mostly they have one shape, and NumPy takes ten times as long to find that out.
    if all(x.shape == arrays[0].shape for x in arrays):
        return arrays
    return np.broadcast_arrays(*arrays)


def map_elements(fun: Callable[..., Value], *arrays: ElementArray) -> ElementArray:
    """Apply a function to the elements of arrays that are broadcast against each other."""
    # Broadcasting repeats references, so equal elements emit one instruction.
    wide = broadcast(arrays)
    out = np.empty(wide[0].shape, object)
    flat = out.reshape(-1)
    for i, values in enumerate(zip(*(a.reshape(-1) for a in wide), strict=True)):
        flat[i] = fun(*values)
    return out


def is_constant(*arrays: ElementArray) -> bool:
    """Return whether all elements are known while the kernel is translated."""
    values = (x for a in arrays for x in a.reshape(-1).tolist())
    return not any(is_runtime_value(x) or isinstance(x, BufferElement) for x in values)


def map_results(
    emitter: Emitter,
    fun: Callable[..., Sequence[Value]],
    arrays: Sequence[ElementArray],
    operand_codes: Sequence[str],
    codes: Sequence[str],
) -> list[ElementArray]:
    """Apply a function of several results to the elements of arrays of one shape.

    Args:
        emitter: receives the instructions: a loop if the arrays are large and in memory.
        fun: takes one value for each array; returns the results.
        arrays: the arrays.
        operand_codes: their type codes.
        codes: type codes of the results.
    """
    if emitter.loops and emitter.loops.worth_looping(arrays[0]):
        return list(emitter.loops.map_results(fun, arrays, operand_codes, codes))
    loaded = [emitter.loops.loaded(x) if emitter.loops else x for x in arrays]
    out = [np.empty(loaded[0].size, object) for _ in codes]
    for i, values in enumerate(zip(*(x.reshape(-1) for x in loaded), strict=True)):
        for result, value in zip(out, fun(*values), strict=True):
            result[i] = value
    return [x.reshape(loaded[0].shape) for x in out]


@lowering_rule("slice", moves=True, parameters="limit_indices start_indices strides")
def _slice(emitter: Emitter, eqn: Any, x: ElementArray) -> ElementArray:
    """Lower `slice`; the whole batch may be sliced, a part of it may not."""
    p, shape = eqn.params, eqn.invars[0].aval.shape
    limits = zip(p["start_indices"], p["limit_indices"], shape, strict=True)
    require_unbatched(eqn, [i for i, (low, high, n) in enumerate(limits) if low or high < n])
    # None stands for strides of one.
    steps = p["strides"] or (1,) * x.ndim
    return x[tuple(map(slice, p["start_indices"], element_shape(p["limit_indices"]), steps))]


@lowering_rule("broadcast_in_dim", moves=True, parameters="broadcast_dimensions shape sharding")
def _broadcast(emitter: Emitter, eqn: Any, x: ElementArray, *_: ElementArray) -> ElementArray:
    """Lower `broadcast_in_dim`, which names the axis of the result for each of the operand's."""
    shape = element_shape(eqn.outvars[0].aval.shape)
    # Axes of the result that the operand lacks have size one before they are broadcast.
    kept = dict(zip(eqn.params["broadcast_dimensions"], x.shape, strict=True))
    return np.broadcast_to(x.reshape([kept.get(i, 1) for i in range(len(shape))]), shape)


@lowering_rule("reshape", moves=True, parameters="dimensions new_sizes sharding")
def _reshape(emitter: Emitter, eqn: Any, x: ElementArray, *_: ElementArray) -> ElementArray:
    """Lower `reshape` and its kin, which may not move the batch past another axis."""
    before, after = eqn.invars[0].aval.shape, eqn.outvars[0].aval.shape
    # Row-major order stays the same only if as many elements follow the batch as before.
    if _inner_size(before) != _inner_size(after):
        raise Unsupported("a batch axis that changes places with another")
    return x.reshape(element_shape(eqn.outvars[0].aval.shape))


def _inner_size(shape: tuple[int, ...]) -> int:
    """Return the number of elements in the axes after the batch, or 0 without a batch."""
    return math.prod(shape[shape.index(BATCH_MARK) + 1 :]) if BATCH_MARK in shape else 0


# In XLA a padded element is a choice.
@lowering_rule("pad", moves=True, cost=1, parameters="padding_config")
def _pad(emitter: Emitter, eqn: Any, x: ElementArray, filling: ElementArray) -> ElementArray:
    """Lower `pad`: along each axis, element i goes to low + i (interior + 1), if that exists."""
    out = np.empty(element_shape(eqn.outvars[0].aval.shape), object)
    out[...] = filling[()]
    positions = []
    for size, whole, (low, _, interior) in zip(
        x.shape, out.shape, eqn.params["padding_config"], strict=True
    ):
        at = low + np.arange(size) * (interior + 1)
        # Negative padding cuts elements off.
        inside = (at >= 0) & (at < whole)
        positions.append((np.flatnonzero(inside), at[inside]))
    out[np.ix_(*(to for _, to in positions))] = x[np.ix_(*(of for of, _ in positions))]
    return out


@lowering_rule("unstack", moves=True, parameters="axis")
def _unstack(emitter: Emitter, eqn: Any, x: ElementArray) -> list[ElementArray]:
    """Lower `unstack` to the arrays along an axis."""
    axis = eqn.params["axis"]
    return [np.take(x, i, axis) for i in range(x.shape[axis])]


@lowering_rule("split", moves=True, parameters="axis sizes")
def _split(emitter: Emitter, eqn: Any, x: ElementArray) -> list[ElementArray]:
    """Lower `split`, whose parameters are the sizes of the parts."""
    require_unbatched(eqn, [eqn.params["axis"]])
    return np.split(x, np.cumsum(eqn.params["sizes"])[:-1], eqn.params["axis"])


@lowering_rule("stack", moves=True, parameters="axis")
def _stack(emitter: Emitter, eqn: Any, *x: ElementArray) -> ElementArray:
    """Lower `stack`, which joins arrays along a new axis."""
    return np.stack(x, eqn.params["axis"])


@lowering_rule("transpose", moves=True, parameters="permutation")
def _transpose(emitter: Emitter, eqn: Any, x: ElementArray) -> ElementArray:
    """Lower `transpose`."""
    return x.transpose(eqn.params["permutation"])


def _same(emitter: Emitter, eqn: Any, *x: ElementArray) -> list[ElementArray]:
    """Lower an operation whose results are its operands."""
    return list(x)


@lowering_rule("iota", free=True, parameters="dimension dtype shape sharding")
def _iota(emitter: Emitter, eqn: Any) -> ElementArray:
    """Lower `iota` to known numbers."""
    aval, axis = eqn.outvars[0].aval, eqn.params["dimension"]
    # All environments run the same instructions and do not know which they are.
    if aval.shape[axis] == BATCH_MARK:
        raise Unsupported("the number of an environment")
    along = np.arange(aval.shape[axis], dtype=aval.dtype)
    shape = [-1 if i == axis else 1 for i in range(aval.ndim)]
    return constant_array(np.broadcast_to(along.reshape(shape), element_shape(aval.shape)))


@lowering_rule("platform_index", parameters="platforms")
def _platform_index(emitter: Emitter, eqn: Any) -> ElementArray:
    """Return the first list of platforms that has the CPU, or the one for all others (None)."""
    has_cpu = [p is None or "cpu" in p for p in eqn.params["platforms"]]
    return constant_array(np.int32(has_cpu.index(True)))


def reduction(
    combine: Callable[..., Value], neutral: float | None = None
) -> Callable[..., ElementArray]:
    """Return the rule of a reduction.

    Args:
        combine: the lowering rule of two elements.
        neutral: the result of a reduction of nothing, if it has one.
    """

    def reduce(emitter: Emitter, eqn: Any, x: ElementArray) -> ElementArray:
        code = code_of(eqn.invars[0].aval.dtype)
        require_unbatched(eqn, eqn.params["axes"])
        # From the last axis on, so that the numbers of the others stay the same.
        for axis in sorted(eqn.params["axes"], reverse=True):
            if not x.shape[axis]:
                if neutral is None:
                    raise Unsupported("an extreme of nothing")
                shape = [n for k, n in enumerate(x.shape) if k != axis]
                x = np.full(shape, scalars.constant(code, neutral), object)
                continue
            # In order, not as a tree: a sum of products becomes a chain of fused multiply-adds.
            total = _take(x, 0, axis)
            for i in range(1, x.shape[axis]):
                total = map_elements(
                    lambda a, b: combine(emitter, code, a, b), total, _take(x, i, axis)
                )
            x = total
        return x

    return reduce


def cumulative(combine: Callable[..., Value]) -> Callable[..., ElementArray]:
    """Return the rule of a cumulative operation, from the rule of two elements."""

    def cumulate(emitter: Emitter, eqn: Any, x: ElementArray) -> ElementArray:
        code, axis = code_of(eqn.invars[0].aval.dtype), eqn.params["axis"]
        require_unbatched(eqn, [axis])
        # In sequence, not in parallel prefixes, as for reductions.
        order = range(x.shape[axis])[:: -1 if eqn.params["reverse"] else 1]
        parts: dict[int, ElementArray] = {}
        before = None
        for i in order:
            here = _take(x, i, axis)
            if before is not None:
                here = map_elements(lambda a, b: combine(emitter, code, a, b), before, here)
            parts[i] = before = here
        return np.stack([parts[i] for i in range(x.shape[axis])], axis) if parts else x

    return cumulate


@lowering_rule("rev", moves=True, parameters="dimensions")
def _reverse(emitter: Emitter, eqn: Any, x: ElementArray) -> ElementArray:
    """Lower `rev`."""
    require_unbatched(eqn, eqn.params["dimensions"])
    return np.flip(x, eqn.params["dimensions"])


@lowering_rule("concatenate", moves=True, parameters="dimension")
def _concatenate(emitter: Emitter, eqn: Any, *x: ElementArray) -> ElementArray:
    """Lower `concatenate`."""
    require_unbatched(eqn, [eqn.params["dimension"]])
    return np.concatenate(x, eqn.params["dimension"])


@lowering_rule("tile", moves=True, parameters="reps")
def _tile(emitter: Emitter, eqn: Any, x: ElementArray) -> ElementArray:
    """Lower `tile`, which repeats an array along its axes."""
    reps = eqn.params["reps"]
    require_unbatched(eqn, [i for i, n in enumerate(reps) if n != 1])
    return np.tile(x, reps)


def _take(x: ElementArray, i: int, axis: int) -> ElementArray:
    """Return the elements at index `i` of an axis, without the axis, as an array in any case."""
    # Indexing alone would give a bare value for an array of one axis; reshape gives an array.
    return x[(slice(None),) * axis + (i,)].reshape([n for k, n in enumerate(x.shape) if k != axis])


def better(emitter: Emitter, test: str, code: str, best: Value, new: Value) -> Value:
    """Return whether a number replaces the best so far in `argmax` or `argmin`.

    Args:
        emitter: receives the instructions.
        test: the comparison, `gt` or `lt`.
        code: the type code of the numbers.
        best: the best number so far.
        new: the number to compare.
    """
    out = scalars.rule(test)(emitter, code, new, best)
    if not scalars.is_float(code):
        return out
    # As in XLA, the first NaN wins: it replaces any number, and nothing replaces it.
    new_is_nan = scalars.rule("ne")(emitter, code, new, new)
    best_is_number = scalars.rule("eq")(emitter, code, best, best)
    both = scalars.rule("and")(emitter, "b1", new_is_nan, best_is_number)
    return scalars.rule("or")(emitter, "b1", out, both)


def extreme(test: str) -> Callable[..., ElementArray]:
    """Return the rule of `argmax` (`gt`) or `argmin` (`lt`)."""

    def position(emitter: Emitter, eqn: Any, x: ElementArray) -> ElementArray:
        """Return the first position of the extreme, or of the first NaN."""
        code, index = code_of(eqn.invars[0].aval.dtype), code_of(eqn.outvars[0].aval.dtype)
        (axis,) = eqn.params["axes"]
        require_unbatched(eqn, [axis])

        def later(best: Value, at: Value, new: Value, i: int) -> tuple[Value, Value]:
            replaces = better(emitter, test, code, best, new)
            number = scalars.constant(index, i)
            return (
                emitter.select(replaces, new, best, code),
                emitter.select(replaces, number, at, index),
            )

        best = _take(x, 0, axis)
        at = np.full(best.shape, scalars.constant(index, 0), object)
        for i in range(1, x.shape[axis]):
            # An array of pairs, taken apart below: `map_elements` returns one array.
            pairs = map_elements(
                lambda b, a, n, i=i: later(b, a, n, i), best, at, _take(x, i, axis)
            )
            best, at = map_elements(lambda p: p[0], pairs), map_elements(lambda p: p[1], pairs)
        return at

    return position


def factors(
    eqn: Any, x: ElementArray, y: ElementArray
) -> tuple[ElementArray, ElementArray, int, tuple[int, ...]]:
    """Return the operands of `dot_general` in a form in which they broadcast.

    Returns:
        The factors, (batch axes..., rows or 1, 1 or columns, depth), whose product is summed along
        the last axis; its length; and the shape of the result.
    """
    (inner_x, inner_y), (batch_x, batch_y) = eqn.params["dimension_numbers"]
    require_unbatched(eqn, inner_x)
    free_x = [i for i in range(x.ndim) if i not in (*inner_x, *batch_x)]
    free_y = [i for i in range(y.ndim) if i not in (*inner_y, *batch_y)]
    batch = [x.shape[i] for i in batch_x]
    depth = int(np.prod([x.shape[i] for i in inner_x]))
    rows = int(np.prod([x.shape[i] for i in free_x])), int(np.prod([y.shape[i] for i in free_y]))
    # The result of `dot_general` has the axes: batch, free axes of x, free axes of y.
    left = x.transpose(*batch_x, *free_x, *inner_x).reshape(*batch, rows[0], 1, depth)
    right = y.transpose(*batch_y, *free_y, *inner_y).reshape(*batch, 1, rows[1], depth)
    return left, right, depth, element_shape(eqn.outvars[0].aval.shape)


def multiplication(emitter: Emitter, eqn: Any) -> Callable[[Value, Value], Value]:
    """Return the multiplication of two elements in `dot_general`, in the type of its result."""
    first, second, code = (code_of(v.aval.dtype) for v in (*eqn.invars, *eqn.outvars))

    def multiply(a: Value, b: Value) -> Value:
        a = scalars.convert(emitter, a, first, code)
        b = scalars.convert(emitter, b, second, code)
        return scalars.multiply(emitter, code, a, b)

    return multiply


def addition(emitter: Emitter, eqn: Any) -> Callable[[Value, Value], Value]:
    """Return the addition of two products in `dot_general`: of truth values, `or`."""
    code = code_of(eqn.outvars[0].aval.dtype)
    # LLVM's sum of two truth values is modulo two.
    rule = scalars.add if code != "b1" else scalars.rule("or")
    return functools.partial(rule, emitter, code)


def dot(emitter: Emitter, eqn: Any, x: ElementArray, y: ElementArray) -> ElementArray:
    """Lower `dot_general` to chains of fused multiply-adds."""
    left, right, depth, shape = factors(eqn, x, y)
    add, multiply = addition(emitter, eqn), multiplication(emitter, eqn)
    if not depth:
        return constant_array(np.zeros(shape, eqn.outvars[0].aval.dtype))

    def term(i: int) -> ElementArray:
        return map_elements(multiply, left[..., i], right[..., i])

    # Each sum takes the new product as its second operand, which `Emitter.add` fuses.
    total = term(0)
    for i in range(1, depth):
        total = map_elements(add, total, term(i))
    return total.reshape(shape)


lowering_rule("squeeze", "expand_dims", moves=True, parameters="dimensions")(_reshape)

# What steers XLA or JAX's transformations means nothing here: the operands are the results.
lowering_rule("stop_gradient", moves=True)(_same)
lowering_rule("copy", moves=True)(_same)
lowering_rule("device_put", moves=True, parameters="copy_semantics devices srcs")(_same)
lowering_rule("optimization_barrier", moves=True)(_same)
lowering_rule(BARRIER_NAME, moves=True, stored=True)(_same)

lowering_rule("reduce_xor", parameters=REDUCED, reduces=True)(reduction(scalars.rule("xor"), 0))
