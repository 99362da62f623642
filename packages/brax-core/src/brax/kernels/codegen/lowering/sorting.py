"""Lowering rule of sorts: a network of comparators, which is the same whatever the numbers are."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import Emitter, Unsupported, Value, code_of
from brax.kernels.codegen.lowering import scalars
from brax.kernels.codegen.lowering.arrays import ElementArray, apart, is_known, several

MAX_SORTED = 64
"""Elements of a sort. LLVM compiles the 543 comparators of an argsort of so many in 2 seconds."""


def comparators(count: int) -> Iterator[tuple[int, int]]:
    """Go through the pairs of places that are put in order, one after another.

    Source: Knuth (1998), The Art of Computer Programming 3, algorithm 5.2.2M, merge exchange.
    """
    top = 1 << max(count - 1, 1).bit_length() - 1
    p = top
    while p:
        q, r, d = top, 0, p
        while True:
            yield from ((i, i + d) for i in range(count - d) if i & p == r)
            if q == p:
                break
            d, q, r = q - p, q >> 1, p
        p >>= 1


def _sort(asm: Emitter, eqn: Any, *arrays: ElementArray) -> list[ElementArray]:
    """Sort by the first `num_keys` arrays; NaN comes last, and zeros of both signs are equal."""
    axis, keys = eqn.params["dimension"], eqn.params["num_keys"]
    apart(eqn, [axis])
    count = arrays[0].shape[axis]
    if count > MAX_SORTED:
        raise Unsupported(f"a sort of {count} elements")
    if count < 2:
        return list(arrays)
    codes = [code_of(v.aval.dtype) for v in eqn.invars]
    rows = [np.moveaxis(x, axis, -1) for x in arrays]
    ranked = [i for i, x in enumerate(rows) if i >= keys and _ascends(x)]
    # Networks are not stable: elements with equal keys are told apart by their first places.
    extra = eqn.params["is_stable"] and len(rows) > keys and not ranked
    if extra:
        rows.append(np.broadcast_to(_places(count), rows[0].shape))
        codes.append("i4")
        ranked = [len(rows) - 1]
    order = [*range(keys), *ranked[:1]] if eqn.params["is_stable"] else list(range(keys))

    def network(*values: Value) -> list[Value]:
        columns = [list(values[i * count : (i + 1) * count]) for i in range(len(rows))]
        for low, high in comparators(count):
            after = _after(asm, [(codes[k], columns[k][low], columns[k][high]) for k in order])
            for code, column in zip(codes, columns, strict=True):
                a, b = column[low], column[high]
                column[low] = asm.select(after, b, a, code)
                column[high] = asm.select(after, a, b, code)
        return [x for column in columns[: len(arrays)] for x in column]

    given = [x[..., i] for x in rows for i in range(count)]
    kinds = [code for code in codes for _ in range(count)]
    found = several(asm, network, given, kinds, kinds[: len(arrays) * count])
    return [np.stack(found[i * count : (i + 1) * count], axis) for i in range(len(arrays))]


def _after(asm: Emitter, pairs: Sequence[tuple[str, Value, Value]]) -> Value:
    """Return the truth value of whether one element of a sort belongs behind another.

    Args:
        asm: receives the instructions.
        pairs: each key's type, and the key of both elements; the first key decides first.
    """
    (code, a, b), *others = pairs
    after = _greater(asm, code, a, b)
    if not others:
        return after
    both, either = scalars.rule("and"), scalars.rule("or")
    level = scalars.rule("not")(asm, "b1", _greater(asm, code, b, a))
    return either(asm, "b1", after, both(asm, "b1", level, _after(asm, others)))


def _greater(asm: Emitter, code: str, a: Value, b: Value) -> Value:
    """Compare two keys, of which NaN is greater than all numbers."""
    greater = scalars.rule("gt")(asm, code, a, b)
    if not scalars.fraction(code):
        return greater
    both = scalars.rule("and")
    odd = scalars.rule("ne")(asm, code, a, a)
    odd = both(asm, "b1", odd, scalars.rule("eq")(asm, code, b, b))
    return scalars.rule("or")(asm, "b1", greater, odd)


def _places(count: int) -> ElementArray:
    out = np.empty(count, object)
    out[:] = [np.int32(i) for i in range(count)]
    return out


def _ascends(rows: ElementArray) -> bool:
    """Return whether an array is known to ascend along its last axis, as the indices of argsort."""
    return is_known(rows) and bool((rows[..., 1:] > rows[..., :-1]).all())


SORTING_RULES: dict[str, Callable[..., Any]] = {"sort": _sort}
