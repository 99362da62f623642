"""Lowering rule of sorts: a sorting network.

The comparisons of a network are the same for all inputs, so that all lanes sort at the same time
without branches.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import Emitter, Unsupported, Value, code_of
from brax.kernels.codegen.lowering import scalars
from brax.kernels.codegen.lowering.arrays import (
    ElementArray,
    is_constant,
    map_results,
    require_unbatched,
)
from brax.kernels.codegen.lowering.registry import lowering_rule

MAX_SORTED = 64
"""Largest number of elements of a sort: the network for n elements has about n (log2 n)² / 4
comparators, 543 for 64."""


def comparators(count: int) -> Iterator[tuple[int, int]]:
    """Yield the comparators of a sorting network: pairs of positions to be put in order.

    Source: Knuth (1998), The Art of Computer Programming 3, algorithm 5.2.2M, merge exchange.
    """
    # The variables and their steps are those of the book: p is halved in the outer loop; q, r and d
    # change in the inner one.
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


@lowering_rule("sort", by_rows=True, stored=True, parameters="dimension is_stable num_keys")
def _sort(emitter: Emitter, eqn: Any, *arrays: ElementArray) -> list[ElementArray]:
    """Lower `sort`: sort all arrays by the first `num_keys` of them.

    As in XLA, NaN comes last, and zeros of both signs are equal.
    """
    axis, keys = eqn.params["dimension"], eqn.params["num_keys"]
    require_unbatched(eqn, [axis])
    count = arrays[0].shape[axis]
    if count > MAX_SORTED:
        raise Unsupported(f"a sort of {count} elements")
    # Nothing to sort, and the network needs two elements.
    if count < 2:
        return list(arrays)
    codes = [code_of(v.aval.dtype) for v in eqn.invars]
    rows = [np.moveaxis(x, axis, -1) for x in arrays]
    # Networks are not stable, so a stable sort has the elements' first positions as a last key. An
    # array that ascends, such as the indices that argsort sorts along, serves as that key.
    ranked = [i for i, x in enumerate(rows) if i >= keys and _ascends(x)]
    # Whole numbers that are equal have the same bits, so that their order does not show. Floats may
    # not: zeros of both signs are equal, and so are all NaN.
    shows = len(rows) > keys or any(map(scalars.is_float, codes))
    extra = eqn.params["is_stable"] and shows and not ranked
    if extra:
        rows.append(np.broadcast_to(_positions(count), rows[0].shape))
        codes.append("i4")
        ranked = [len(rows) - 1]
    order = [*range(keys), *ranked[:1]] if eqn.params["is_stable"] else list(range(keys))

    # The values are those of the first array, then of the second, and so on.
    def network(*values: Value) -> list[Value]:
        columns = [list(values[i * count : (i + 1) * count]) for i in range(len(rows))]
        for low, high in comparators(count):
            after = _after(emitter, [(codes[k], columns[k][low], columns[k][high]) for k in order])
            for code, column in zip(codes, columns, strict=True):
                a, b = column[low], column[high]
                column[low] = emitter.select(after, b, a, code)
                column[high] = emitter.select(after, a, b, code)
        return [x for column in columns[: len(arrays)] for x in column]

    # One array for each position along the sorted axis: a network for each row, in a loop if there
    # are many rows in memory.
    operands = [x[..., i] for x in rows for i in range(count)]
    kinds = [code for code in codes for _ in range(count)]
    found = map_results(emitter, network, operands, kinds, kinds[: len(arrays) * count])
    return [np.stack(found[i * count : (i + 1) * count], axis) for i in range(len(arrays))]


def _after(emitter: Emitter, pairs: Sequence[tuple[str, Value, Value]]) -> Value:
    """Return whether one element of a sort belongs after another, as a truth value.

    Args:
        emitter: receives the instructions.
        pairs: each key's type code and the keys of both elements; the first key decides first.
    """
    (code, a, b), *others = pairs
    after = _greater(emitter, code, a, b)
    if not others:
        return after
    both, either = scalars.rule("and"), scalars.rule("or")
    # Keys are equal if neither is greater; `eq` would be wrong for two NaN.
    level = scalars.rule("not")(emitter, "b1", _greater(emitter, code, b, a))
    return either(emitter, "b1", after, both(emitter, "b1", level, _after(emitter, others)))


def _greater(emitter: Emitter, code: str, a: Value, b: Value) -> Value:
    """Return whether key `a` is greater than key `b`; NaN is greater than all numbers."""
    greater = scalars.rule("gt")(emitter, code, a, b)
    if not scalars.is_float(code):
        return greater
    both = scalars.rule("and")
    # NaN is the only number that differs from itself.
    odd = scalars.rule("ne")(emitter, code, a, a)
    odd = both(emitter, "b1", odd, scalars.rule("eq")(emitter, code, b, b))
    return scalars.rule("or")(emitter, "b1", greater, odd)


def _positions(count: int) -> ElementArray:
    """Return the numbers from 0 to `count` - 1."""
    out = np.empty(count, object)
    out[:] = [np.int32(i) for i in range(count)]
    return out


def _ascends(rows: ElementArray) -> bool:
    """Return whether an array is known, and ascends along its last axis, as argsort's indices."""
    return is_constant(rows) and bool((rows[..., 1:] > rows[..., :-1]).all())
