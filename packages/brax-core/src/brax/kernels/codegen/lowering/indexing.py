"""Lowering rules of gathers, scatters and slices whose start is an operand, unrolled.

An index that is known during translation costs nothing. Another one becomes a chain of selections
among the elements that it may mean, or a load if all lanes share it.

In a gather or scatter, an index names the first element of a window; `start` is that element's
index along each axis, and `offset` the distance of an element from it (the terms of XLA's
operation semantics).
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import Emitter, Unsupported, Value, code_of, is_runtime_value
from brax.kernels.codegen.lowering import scalars
from brax.kernels.codegen.lowering.arrays import (
    ElementArray,
    element_shape,
    is_constant,
    require_unbatched,
)
from brax.kernels.codegen.lowering.registry import lowering_rule

SCATTERED = "dimension_numbers indices_are_sorted mode unique_indices update_consts update_jaxpr"
"""The parameters of a scatter."""

MAX_SELECTIONS = 2**14
"""Largest number of selections that one scatter may become: LLVM's time grows faster than it."""


def require_full_batch(eqn: Any, batching: Sequence[int] = ()) -> None:
    """Check that slices hold all environments, except along axes with an index for each one.

    Args:
        eqn: the equation of a gather or slice.
        batching: axes along which each environment has an index of its own.

    Raises:
        Unsupported: if a slice holds a part of the environments.
    """
    shape, sizes = eqn.invars[0].aval.shape, eqn.params["slice_sizes"]
    require_unbatched(eqn, [i for i, n in enumerate(sizes) if n != shape[i] and i not in batching])


def fills_out_of_range(eqn: Any) -> bool:
    """Return True if a gather replaces windows that are out of range by `fill_value`.

    Otherwise it clips the start of the window, so that the window lies within the array.
    """
    return "FILL" in str(eqn.params["mode"])


def fill_value(eqn: Any) -> Value:
    """Return the element that a gather puts in place of elements that are out of range."""
    value, dtype = eqn.params["fill_value"], np.dtype(eqn.outvars[0].aval.dtype)
    if value is not None:
        return dtype.type(value)
    # JAX's defaults: NaN, true, the least signed or the largest unsigned integer.
    if dtype.kind == "f":
        return dtype.type(np.nan)
    if dtype.kind == "b":
        return np.bool_(True)
    info = np.iinfo(dtype)
    return dtype.type(info.min if dtype.kind == "i" else info.max)


def in_bounds(emitter: Emitter, code: str, index: Value, bound: int) -> Value:
    """Return the truth value of `0 <= index <= bound`."""
    kind = scalars.index_code(code)
    index = scalars.convert(emitter, index, code, kind)
    # Of a known index, both tests are folded.
    above = scalars.rule("ge")(emitter, kind, index, scalars.constant(kind, 0))
    below = scalars.rule("le")(emitter, kind, index, scalars.constant(kind, bound))
    return scalars.rule("and")(emitter, "b1", above, below)


def gather(emitter: Emitter, eqn: Any, x: ElementArray, indices: ElementArray) -> ElementArray:
    """Lower `gather`, one element of the result after another."""
    d, sizes = eqn.params["dimension_numbers"], element_shape(eqn.params["slice_sizes"])
    require_full_batch(eqn, d.operand_batching_dims)
    code, kind = code_of(eqn.invars[1].aval.dtype), code_of(eqn.outvars[0].aval.dtype)
    out = np.empty(element_shape(eqn.outvars[0].aval.shape), object)
    # Axes of the result: `offset_dims` run through the window, the others through the indices.
    index_axes = [i for i in range(out.ndim) if i not in d.offset_dims]
    window_axes = [
        i for i in range(x.ndim) if i not in (*d.collapsed_slice_dims, *d.operand_batching_dims)
    ]
    bound = [n - m for n, m in zip(x.shape, sizes, strict=True)]
    if is_constant(indices) and not d.operand_batching_dims:
        out[...], inside = _at_known_places(d, x, indices, bound, out.shape, index_axes)
        if fills_out_of_range(eqn):
            out[~inside] = fill_value(eqn)
        return out
    for position in np.ndindex(out.shape):
        batch = tuple(position[i] for i in index_axes)
        start: list[Value] = [0] * x.ndim
        found: Value = np.bool_(True)
        for k, axis in enumerate(d.start_index_map):
            start[axis] = indices[(*batch, k)]
            # A window that is partly out of range is filled as a whole.
            if fills_out_of_range(eqn):
                here = in_bounds(emitter, code, start[axis], bound[axis])
                found = scalars.rule("and")(emitter, "b1", found, here)
        # Along a batching axis, an element takes the indices at its own position.
        for axis, other in zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True):
            start[axis] = batch[other]
        offset = [0] * x.ndim
        for axis, of in zip(window_axes, d.offset_dims, strict=True):
            offset[axis] = position[of]
        value = _dynamic_element(emitter, x, kind, start, offset, bound, code)
        if fills_out_of_range(eqn):
            value = emitter.select(found, value, fill_value(eqn), kind)
        out[position] = value
    return out


def _at_known_places(
    numbers: Any,
    x: ElementArray,
    indices: ElementArray,
    bound: Sequence[int],
    shape: tuple[int, ...],
    index_axes: Sequence[int],
) -> tuple[Any, Any]:
    """Return what a `gather` with known indices takes, and where its windows are within the array.

    Args:
        numbers: the equation's dimension numbers, without batching axes.
        x: the array.
        indices: the starts of the windows, which are clipped.
        bound: the largest start along each axis.
        shape: the shape of the result.
        index_axes: axes of the result that run through the indices.
    """
    position = np.indices(shape)
    places = [np.zeros(shape, int) for _ in x.shape]
    inside = np.ones(shape, bool)
    for k, axis in enumerate(numbers.start_index_map):
        start = indices[..., k].astype(int)[tuple(position[i] for i in index_axes)]
        inside &= (start >= 0) & (start <= bound[axis])
        places[axis] = np.clip(start, 0, bound[axis])
    window_axes = (i for i in range(x.ndim) if i not in numbers.collapsed_slice_dims)
    for axis, of in zip(window_axes, numbers.offset_dims, strict=True):
        places[axis] = places[axis] + position[of]
    return x[tuple(places)], inside


def _dynamic_element(
    emitter: Emitter,
    x: ElementArray,
    kind: str,
    start: Sequence[Value],
    offset: Sequence[int],
    bound: Sequence[int],
    code: str,
) -> Value:
    """Return the element of an array at `start` plus `offset`, with `start` clipped.

    Args:
        emitter: receives the instructions.
        x: the array.
        kind: its type code.
        start: the index along each axis, known or not.
        offset: what is added to it after clipping.
        bound: the largest start along each axis.
        code: the type code of the indices.
    """
    # An axis with a single start needs no index.
    dynamic = [i for i, c in enumerate(start) if is_runtime_value(c) and bound[i]]
    static = tuple(
        (0 if is_runtime_value(c) else min(max(int(c), 0), b)) + o
        for c, o, b in zip(start, offset, bound, strict=True)
    )
    if not dynamic:
        return x[static]
    # One flat index runs through all starts, the last dynamic axis fastest.
    strides = np.cumprod([1, *[bound[i] + 1 for i in reversed(dynamic)]])[::-1][1:]
    flat: Value = np.int32(0)
    for i, stride in zip(dynamic, strides.tolist(), strict=True):
        index = scalars.clipped_index(emitter, code, start[i], bound[i])
        index = scalars.multiply(emitter, "i4", index, np.int32(stride)) if stride > 1 else index
        flat = scalars.rule("add")(emitter, "i4", flat, index) if is_runtime_value(flat) else index
    # All elements that the indices may mean, in the order of the flat index.
    reach = tuple(slice(s, s + bound[i] + 1) if i in dynamic else s for i, s in enumerate(static))
    values = x[reach].reshape(-1).tolist()
    # One index for all lanes is one load from a table on the stack.
    if not emitter.widest(flat):
        return emitter.element(values, flat, kind)
    # Lanes that differ: values stay in registers, and each lane keeps the first that it may have.
    value = values[-1]
    for i in reversed(range(len(values) - 1)):
        before = scalars.rule("le")(emitter, "i4", flat, np.int32(i))
        value = emitter.select(before, values[i], value, kind)
    return value


def dynamic_slice(
    emitter: Emitter, eqn: Any, x: ElementArray, *indices: ElementArray
) -> ElementArray:
    """Lower `dynamic_slice`, whose start is clipped so that the slice fits."""
    shape = element_shape(eqn.params["slice_sizes"])
    require_full_batch(eqn)
    code, kind = code_of(eqn.invars[1].aval.dtype), code_of(eqn.outvars[0].aval.dtype)
    bound = [n - m for n, m in zip(x.shape, shape, strict=True)]
    start = [s[()] for s in indices]
    out = np.empty(shape, object)
    for position in np.ndindex(out.shape):
        out[position] = _dynamic_element(emitter, x, kind, start, position, bound, code)
    return out


def updates(
    eqn: Any, indices: ElementArray, new: ElementArray
) -> Iterator[tuple[list[Value], list[int], Value]]:
    """Go through the updates of a scatter.

    Args:
        eqn: the scatter.
        indices: its indices.
        new: its updates.

    Yields:
        The start of the window that an update belongs to, the update's offset in the window, and
        the update, one element after another.
    """
    d, ndim = eqn.params["dimension_numbers"], eqn.invars[0].aval.ndim
    # Axes of the updates: `update_window_dims` run through the window, the others through the
    # indices.
    index_axes = [i for i in range(new.ndim) if i not in d.update_window_dims]
    dropped = (*d.inserted_window_dims, *d.operand_batching_dims)
    window_axes = [i for i in range(ndim) if i not in dropped]
    for position in np.ndindex(new.shape):
        batch = tuple(position[i] for i in index_axes)
        start: list[Value] = [0] * ndim
        for k, axis in enumerate(d.scatter_dims_to_operand_dims):
            start[axis] = indices[(*batch, k)]
        both = zip(d.operand_batching_dims, d.scatter_indices_batching_dims, strict=True)
        for axis, other in both:
            start[axis] = batch[other]
        offset = [0] * ndim
        for axis, of in zip(window_axes, d.update_window_dims, strict=True):
            offset[axis] = position[of]
        yield start, offset, new[position]


def max_starts(eqn: Any) -> list[int]:
    """Return the largest start of a scatter's windows along each axis.

    Raises:
        Unsupported: if a window holds a part of the environments.
    """
    d, shape = eqn.params["dimension_numbers"], eqn.invars[0].aval.shape
    update_shape, sizes = eqn.invars[2].aval.shape, [1] * len(shape)
    dropped = (*d.inserted_window_dims, *d.operand_batching_dims)
    window_axes = [i for i in range(len(shape)) if i not in dropped]
    # A window has size one along axes that the updates do not have.
    for axis, of in zip(window_axes, d.update_window_dims, strict=True):
        sizes[axis] = update_shape[of]
    require_unbatched(
        eqn, [i for i, n in enumerate(sizes) if n != shape[i] and i not in d.operand_batching_dims]
    )
    return [n - m for n, m in zip(element_shape(shape), element_shape((*sizes,)), strict=True)]


def update_index(
    start: Sequence[Value], offset: Sequence[int], bound: Sequence[int], clips: bool
) -> tuple[int, ...] | None:
    """Return the index that an update with a known start goes to, or None if it is dropped."""
    if clips:
        start = [min(max(int(c), 0), b) for c, b in zip(start, bound, strict=True)]
    # As in XLA, an update that is partly out of range is dropped as a whole.
    elif any(not 0 <= c <= b for c, b in zip(start, bound, strict=True)):
        return None
    return tuple(int(c) + o for c, o in zip(start, offset, strict=True))


def _select_into(
    emitter: Emitter,
    out: ElementArray,
    start: Sequence[Value],
    offset: Sequence[int],
    bound: Sequence[int],
    clips: bool,
    code: str,
    change: Callable[[Value], Value],
    kind: str,
) -> None:
    """Change the element of `out` at `start` plus `offset`, for starts that may be unknown.

    Each element that the update may go to is selected: changed where the start is its own.
    """
    dynamic = [i for i, c in enumerate(start) if is_runtime_value(c)]
    whole = scalars.index_code(code)
    trials = itertools.product(*(range(bound[i] + 1) for i in dynamic))
    for trial in trials:
        at, hit = list(start), np.bool_(True)
        for i, index in zip(dynamic, trial, strict=True):
            at[i] = index
            # A clipped index beyond either end means the end, so there an inequality is tested.
            low, high = clips and index == 0, clips and index == bound[i]
            if low and high:
                continue
            test = "le" if low else "ge" if high else "eq"
            value = scalars.convert(emitter, start[i], code, whole)
            here = scalars.rule(test)(emitter, whole, value, scalars.constant(whole, index))
            hit = scalars.rule("and")(emitter, "b1", hit, here)
        position = update_index(at, offset, bound, clips)
        if position is not None:
            out[position] = emitter.select(hit, change(out[position]), out[position], kind)


def _replace(new: Value, old: Value) -> Value:
    """Return the update of a scatter that replaces."""
    return new


def _check_selections(count: int, start: Sequence[Value], bound: Sequence[int]) -> None:
    """Check that a scatter of `count` updates does not become too many selections.

    Raises:
        Unsupported: if there are more than `MAX_SELECTIONS`.
    """
    trials = math.prod(b + 1 for c, b in zip(start, bound, strict=True) if is_runtime_value(c))
    if count * trials > MAX_SELECTIONS:
        raise Unsupported(f"a scatter of {count} updates to one of {trials} places each")


@lowering_rule("dynamic_update_slice")
def _dynamic_update(
    emitter: Emitter, eqn: Any, x: ElementArray, new: ElementArray, *indices: ElementArray
) -> ElementArray:
    """Lower `dynamic_update_slice`, whose start is clipped so that the update fits."""
    shape, sizes = eqn.invars[0].aval.shape, eqn.invars[1].aval.shape
    require_unbatched(eqn, [i for i, n in enumerate(sizes) if n != shape[i]])
    kind, code = code_of(eqn.outvars[0].aval.dtype), code_of(eqn.invars[2].aval.dtype)
    # Each environment's update goes to that environment, so the batch needs no index.
    bound = [n - m for n, m in zip(x.shape, new.shape, strict=True)]
    start, out = [s[()] for s in indices], x.copy()
    _check_selections(new.size, start, bound)
    for offset in np.ndindex(new.shape):
        change = functools.partial(_replace, new[offset])
        _select_into(emitter, out, start, offset, bound, True, code, change, kind)
    return out


def scatter(combine: Callable[..., Value] | None) -> Callable[..., ElementArray]:
    """Return the rule of a scatter, from the rule of old and new element; None replaces."""

    def scattered(
        emitter: Emitter, eqn: Any, x: ElementArray, indices: ElementArray, new: ElementArray
    ) -> ElementArray:
        # `x.at[i].apply(f)` is a scatter whose function ignores the update.
        if combine is None and eqn.params["update_jaxpr"] is not None:
            raise Unsupported("a scatter that applies a function")
        kind, code = code_of(eqn.outvars[0].aval.dtype), code_of(eqn.invars[1].aval.dtype)
        bound, clips = max_starts(eqn), "CLIP" in str(eqn.params["mode"])

        def update(new: Value, old: Value) -> Value:
            return new if combine is None else combine(emitter, kind, old, new)

        out = x.copy()
        # In the order of the updates, so that of several to one element the last one remains.
        for start, offset, value in updates(eqn, indices, new):
            _check_selections(new.size, start, bound)
            change = functools.partial(update, value)
            _select_into(emitter, out, start, offset, bound, clips, code, change, kind)
        return out

    return scattered


_SCATTERS = {
    "scatter": None,
    "scatter-sub": scalars.rule("sub"),
    "scatter-mul": scalars.multiply,
    "scatter-min": scalars.smallest,
    "scatter-max": scalars.largest,
}
"""The rules of old and new element of scatters."""

for _name, _combine in _SCATTERS.items():
    lowering_rule(_name, parameters=SCATTERED)(scatter(_combine))
