"""Lowering rules of gathers, scatters and slices whose start is an operand.

An index that is known during translation costs nothing. Another one becomes a chain of selections
among the elements that it may mean, or a load where all lanes share it.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import Emitter, Unsupported, Value, code_of, is_runtime_value
from brax.kernels.codegen.lowering import scalars
from brax.kernels.codegen.lowering.arrays import ElementArray, apart, one

MAX_SELECTIONS = 2**14
"""Selections that one scatter may become."""


def whole(eqn: Any, own: Sequence[int] = ()) -> None:
    """Checks that slices have all environments, except along axes where each has its own."""
    shape, sizes = eqn.invars[0].aval.shape, eqn.params["slice_sizes"]
    apart(eqn, [i for i, n in enumerate(sizes) if n != shape[i] and i not in own])


def fills(eqn: Any) -> bool:
    """Return whether a gather gives a filling for what is out of range."""
    return "FILL" in str(eqn.params["mode"])


def filling(eqn: Any) -> Value:
    """Return the element that a gather gives for what is out of range."""
    value, dtype = eqn.params["fill_value"], np.dtype(eqn.outvars[0].aval.dtype)
    if value is not None:
        return dtype.type(value)
    if dtype.kind == "f":
        return dtype.type(np.nan)
    if dtype.kind == "b":
        return np.bool_(True)
    info = np.iinfo(dtype)
    return dtype.type(info.min if dtype.kind == "i" else info.max)


def inside(asm: Emitter, code: str, index: Value, bound: int) -> Value:
    """Return the truth value of `0 <= index <= bound`."""
    index = scalars.convert(asm, index, code, "i4")
    above = scalars.rule("ge")(asm, "i4", index, np.int32(0))
    below = scalars.rule("le")(asm, "i4", index, np.int32(bound))
    return scalars.rule("and")(asm, "b1", above, below)


def _gather(asm: Emitter, eqn: Any, x: ElementArray, start: ElementArray) -> ElementArray:
    d, sizes = eqn.params["dimension_numbers"], one(eqn.params["slice_sizes"])
    whole(eqn, d.operand_batching_dims)
    code, kind = code_of(eqn.invars[1].aval.dtype), code_of(eqn.outvars[0].aval.dtype)
    out = np.empty(one(eqn.outvars[0].aval.shape), object)
    index_axes = [i for i in range(out.ndim) if i not in d.offset_dims]
    window_axes = [
        i for i in range(x.ndim) if i not in (*d.collapsed_slice_dims, *d.operand_batching_dims)
    ]
    bound = [n - m for n, m in zip(x.shape, sizes, strict=True)]
    for place in np.ndindex(out.shape):
        batch = tuple(place[i] for i in index_axes)
        corner: list[Value] = [0] * x.ndim
        found: Value = np.bool_(True)
        for k, axis in enumerate(d.start_index_map):
            corner[axis] = start[(*batch, k)]
            if fills(eqn):
                here = inside(asm, code, corner[axis], bound[axis])
                found = scalars.rule("and")(asm, "b1", found, here)
        for axis, other in zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True):
            corner[axis] = batch[other]
        offset = [0] * x.ndim
        for axis, of in zip(window_axes, d.offset_dims, strict=True):
            offset[axis] = place[of]
        value = _at(asm, x, kind, corner, offset, bound, code)
        out[place] = asm.select(found, value, filling(eqn), kind) if fills(eqn) else value
    return out


def _at(
    asm: Emitter,
    x: ElementArray,
    kind: str,
    corner: Sequence[Value],
    offset: Sequence[int],
    bound: Sequence[int],
    code: str,
) -> Value:
    """Return the element at `corner` plus `offset`, with `corner` clipped to its bounds."""
    moving = [i for i, c in enumerate(corner) if is_runtime_value(c) and bound[i]]
    still = tuple(
        (0 if is_runtime_value(c) else min(max(int(c), 0), b)) + o
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
        flat = scalars.rule("add")(asm, "i4", flat, index) if is_runtime_value(flat) else index
    reach = tuple(slice(s, s + bound[i] + 1) if i in moving else s for i, s in enumerate(still))
    values = x[reach].reshape(-1).tolist()
    if not asm.widest(flat):
        return asm.element(values, flat, kind)
    value = values[-1]
    for i in reversed(range(len(values) - 1)):
        before = scalars.rule("le")(asm, "i4", flat, np.int32(i))
        value = asm.select(before, values[i], value, kind)
    return value


def _dynamic_slice(asm: Emitter, eqn: Any, x: ElementArray, *start: ElementArray) -> ElementArray:
    shape = one(eqn.params["slice_sizes"])
    whole(eqn)
    code, kind = code_of(eqn.invars[1].aval.dtype), code_of(eqn.outvars[0].aval.dtype)
    bound = [n - m for n, m in zip(x.shape, shape, strict=True)]
    corner = [s[()] for s in start]
    out = np.empty(shape, object)
    for place in np.ndindex(out.shape):
        out[place] = _at(asm, x, kind, corner, place, bound, code)
    return out


def corners(
    eqn: Any, start: ElementArray, new: ElementArray
) -> Iterator[tuple[list[Value], list[int], Value]]:
    """Go through the updates of a scatter.

    Args:
        eqn: the scatter.
        start: its indices.
        new: its updates.

    Yields:
        The first index of the window that an update belongs to, how far the update is from it, and
        the update, one element after another.
    """
    d, ndim = eqn.params["dimension_numbers"], eqn.invars[0].aval.ndim
    index_axes = [i for i in range(new.ndim) if i not in d.update_window_dims]
    dropped = (*d.inserted_window_dims, *d.operand_batching_dims)
    window_axes = [i for i in range(ndim) if i not in dropped]
    for place in np.ndindex(new.shape):
        batch = tuple(place[i] for i in index_axes)
        corner: list[Value] = [0] * ndim
        for k, axis in enumerate(d.scatter_dims_to_operand_dims):
            corner[axis] = start[(*batch, k)]
        both = zip(d.operand_batching_dims, d.scatter_indices_batching_dims, strict=True)
        for axis, other in both:
            corner[axis] = batch[other]
        offset = [0] * ndim
        for axis, of in zip(window_axes, d.update_window_dims, strict=True):
            offset[axis] = place[of]
        yield corner, offset, new[place]


def bounds(eqn: Any) -> list[int]:
    """Return the largest first index of a scatter's windows, for each axis.

    Raises:
        Unsupported: if a window has some of the environments.
    """
    d, shape = eqn.params["dimension_numbers"], eqn.invars[0].aval.shape
    updates, sizes = eqn.invars[2].aval.shape, [1] * len(shape)
    dropped = (*d.inserted_window_dims, *d.operand_batching_dims)
    window_axes = [i for i in range(len(shape)) if i not in dropped]
    for axis, of in zip(window_axes, d.update_window_dims, strict=True):
        sizes[axis] = updates[of]
    apart(
        eqn, [i for i, n in enumerate(sizes) if n != shape[i] and i not in d.operand_batching_dims]
    )
    return [n - m for n, m in zip(one(shape), one(sizes), strict=True)]


def place_of(
    corner: Sequence[Value], offset: Sequence[int], bound: Sequence[int], clips: bool
) -> tuple[int, ...] | None:
    """Return where an update with known indices goes, or None if it is dropped."""
    if clips:
        corner = [min(max(int(c), 0), b) for c, b in zip(corner, bound, strict=True)]
    elif any(not 0 <= c <= b for c, b in zip(corner, bound, strict=True)):
        return None
    return tuple(int(c) + o for c, o in zip(corner, offset, strict=True))


def _put(
    asm: Emitter,
    out: ElementArray,
    corner: Sequence[Value],
    offset: Sequence[int],
    bound: Sequence[int],
    clips: bool,
    code: str,
    change: Callable[[Value], Value],
    kind: str,
) -> None:
    """Change the element of `out` at `corner` plus `offset`; unknown indices try all places."""
    moving = [i for i, c in enumerate(corner) if is_runtime_value(c)]
    trials = itertools.product(*(range(bound[i] + 1) for i in moving))
    for trial in trials:
        at, hit = list(corner), np.bool_(True)
        for i, index in zip(moving, trial, strict=True):
            at[i] = index
            low, high = clips and index == 0, clips and index == bound[i]
            if low and high:
                continue
            # A clipped index that is beyond either end means the end.
            test = "le" if low else "ge" if high else "eq"
            value = scalars.convert(asm, corner[i], code, "i4")
            here = scalars.rule(test)(asm, "i4", value, np.int32(index))
            hit = scalars.rule("and")(asm, "b1", hit, here)
        place = place_of(at, offset, bound, clips)
        if place is not None:
            out[place] = asm.select(hit, change(out[place]), out[place], kind)


def _replace(new: Value, old: Value) -> Value:
    return new


def _limited(count: int, corner: Sequence[Value], bound: Sequence[int]) -> None:
    trials = math.prod(b + 1 for c, b in zip(corner, bound, strict=True) if is_runtime_value(c))
    if count * trials > MAX_SELECTIONS:
        raise Unsupported(f"a scatter of {count} updates to one of {trials} places each")


def _dynamic_update(
    asm: Emitter, eqn: Any, x: ElementArray, new: ElementArray, *start: ElementArray
) -> ElementArray:
    shape, sizes = eqn.invars[0].aval.shape, eqn.invars[1].aval.shape
    apart(eqn, [i for i, n in enumerate(sizes) if n != shape[i]])
    kind, code = code_of(eqn.outvars[0].aval.dtype), code_of(eqn.invars[2].aval.dtype)
    bound = [n - m for n, m in zip(x.shape, new.shape, strict=True)]
    corner, out = [s[()] for s in start], x.copy()
    _limited(new.size, corner, bound)
    for place in np.ndindex(new.shape):
        value = new[place]
        _put(asm, out, corner, place, bound, True, code, functools.partial(_replace, value), kind)
    return out


def _scatter(fold: Callable[..., Value] | None) -> Callable[..., ElementArray]:
    def scatter(
        asm: Emitter, eqn: Any, x: ElementArray, start: ElementArray, new: ElementArray
    ) -> ElementArray:
        if fold is None and eqn.params["update_jaxpr"] is not None:
            raise Unsupported("a scatter that applies a function")
        kind, code = code_of(eqn.outvars[0].aval.dtype), code_of(eqn.invars[1].aval.dtype)
        bound, clips = bounds(eqn), "CLIP" in str(eqn.params["mode"])

        def update(new: Value, old: Value) -> Value:
            return new if fold is None else fold(asm, kind, old, new)

        out = x.copy()
        for corner, offset, value in corners(eqn, start, new):
            _limited(new.size, corner, bound)
            change = functools.partial(update, value)
            _put(asm, out, corner, offset, bound, clips, code, change, kind)
        return out

    return scatter


INDEXING_RULES: dict[str, Callable[..., Any]] = {
    "gather": _gather,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update,
    "scatter": _scatter(None),
    "scatter-add": _scatter(scalars.add),
    "scatter-sub": _scatter(scalars.rule("sub")),
    "scatter-mul": _scatter(scalars.multiply),
    "scatter-min": _scatter(scalars.smallest),
    "scatter-max": _scatter(scalars.largest),
}
