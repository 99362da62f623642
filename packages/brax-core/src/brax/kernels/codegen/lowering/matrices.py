"""Lowering rules of factorizations of small matrices and of triangular solves.

A factorization is unrolled: each element of the matrix is a value. The matrix is on the last two
axes, and the batch is one before them, where `jax.vmap` puts it. If a long kernel has many
matrices, they are in memory, and one loop factorizes them one after another.

Source: Golub and Van Loan (2013), Matrix Computations, algorithms 3.1.1, 3.1.2, 3.4.1 and 4.2.1.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import Emitter, Unsupported, Value, code_of
from brax.kernels.codegen.lowering import scalars
from brax.kernels.codegen.lowering.arrays import (
    ElementArray,
    element_shape,
    map_results,
    require_unbatched,
)
from brax.kernels.codegen.lowering.registry import lowering_rule

MAX_UNROLLED_ROWS = 24
"""Largest number of rows or columns of a matrix. An LU factorization of n rows is n³ / 3 fused
multiply-adds, each of them an instruction, and LLVM's time grows faster than their number."""

_divide, _subtract = scalars.rule("div"), scalars.rule("sub")
_equal, _greater = scalars.rule("eq"), scalars.rule("gt")


@lowering_rule("lu", by_rows=True)
def _lu(emitter: Emitter, eqn: Any, matrix: ElementArray) -> list[ElementArray]:
    """Lower `lu`: factorize with partial pivoting (algorithm 3.4.1)."""
    code = code_of(eqn.invars[0].aval.dtype)

    def factorize(a: ElementArray) -> tuple[ElementArray, ...]:
        rows, columns = a.shape
        pivots = []
        # The outer product form: column k of L, then a rank-1 update of what remains.
        for k in range(min(rows, columns)):
            pivots.append(_largest(emitter, code, a[k:, k], k))
            _swap_rows(emitter, code, a, k, pivots[-1])
            # As in LAPACK, a zero pivot leaves its column as it is. The pivot is the largest, so
            # that the column is zero then.
            zero = _equal(emitter, code, a[k, k], scalars.constant(code, 0))
            for i in range(k + 1, rows):
                ratio = _divide(emitter, code, a[i, k], a[k, k])
                a[i, k] = emitter.select(zero, a[i, k], ratio, code)
                for j in range(k + 1, columns):
                    product = scalars.multiply(emitter, code, a[i, k], a[k, j])
                    a[i, j] = _subtract(emitter, code, a[i, j], product)
        return a, _array(pivots, (len(pivots),)), _permutation(emitter, pivots, rows)

    return _by_matrix(emitter, eqn, [matrix], factorize, 2)


def _largest(emitter: Emitter, code: str, column: ElementArray, first: int) -> Value:
    """Return the row of the first element of the largest absolute value.

    Args:
        emitter: receives the instructions.
        code: the type code of the elements.
        column: the elements.
        first: the row of the first one.
    """
    size = scalars.rule("abs")
    best, at = size(emitter, code, column[0]), np.int32(first)
    for i, x in enumerate(column[1:], first + 1):
        found = size(emitter, code, x)
        # Strictly greater: of equal elements the first is the pivot, as in LAPACK.
        better = _greater(emitter, code, found, best)
        best = emitter.select(better, found, best, code)
        at = emitter.select(better, np.int32(i), at, "i4")
    return at


def _swap_rows(emitter: Emitter, code: str, a: ElementArray, k: int, pivot: Value) -> None:
    """Exchange row `k` with the row `pivot`, which is below it or the same."""
    top = a[k].copy()
    # The pivot is known only as the kernel runs: each row below is exchanged under a condition.
    for i in range(k + 1, len(a)):
        here = _equal(emitter, "i4", pivot, np.int32(i))
        for j in range(a.shape[1]):
            a[k, j] = emitter.select(here, a[i, j], a[k, j], code)
            a[i, j] = emitter.select(here, top[j], a[i, j], code)


def _permutation(emitter: Emitter, pivots: Sequence[Value], size: int) -> ElementArray:
    """Return the permutation of rows that results from exchanging each row with its pivot."""
    order = _array([np.int32(i) for i in range(size)], (size, 1))
    for k, pivot in enumerate(pivots):
        _swap_rows(emitter, "i4", order, k, pivot)
    return order


@lowering_rule("lu_pivots_to_permutation", by_rows=True, parameters="permutation_size")
def _pivots_to_permutation(emitter: Emitter, eqn: Any, pivots: ElementArray) -> list[ElementArray]:
    """Lower `lu_pivots_to_permutation`."""
    size = eqn.params["permutation_size"]
    return _by_matrix(emitter, eqn, [pivots], lambda p: (_permutation(emitter, p, size),), 1)


@lowering_rule("cholesky", by_rows=True)
def _cholesky(emitter: Emitter, eqn: Any, matrix: ElementArray) -> list[ElementArray]:
    """Lower `cholesky`: factorize the lower triangle (algorithm 4.2.1).

    As in JAX, all of the factor is NaN if the matrix is not positive definite.
    """
    code = code_of(eqn.invars[0].aval.dtype)
    zero, nan = scalars.constant(code, 0), scalars.constant(code, np.nan)

    def factorize(a: ElementArray) -> tuple[ElementArray]:
        size, definite = len(a), np.bool_(True)
        out = np.full(a.shape, zero, object)
        # Column by column: l_ij = (a_ij - sum_k<j l_ik l_jk) / l_jj, and l_jj² = a_jj - sum l_jk².
        for j in range(size):
            for i in range(j, size):
                rest = _less_products(emitter, code, a[i, j], out[i, :j], out[j, :j])
                if i == j:
                    # False for NaN too.
                    positive = _greater(emitter, code, rest, zero)
                    definite = scalars.rule("and")(emitter, "b1", definite, positive)
                    out[j, j] = scalars.rule("sqrt")(emitter, code, rest)
                else:
                    out[i, j] = _divide(emitter, code, rest, out[j, j])
        for place in itertools.product(range(size), range(size)):
            out[place] = emitter.select(definite, out[place], nan, code)
        return (out,)

    return _by_matrix(emitter, eqn, [matrix], factorize, 2)


def _less_products(
    emitter: Emitter, code: str, x: Value, left: ElementArray, right: ElementArray
) -> Value:
    """Return a number minus the products of pairs of numbers."""
    # Each is a fused multiply-add, see `Emitter.subtract`.
    for a, b in zip(left, right, strict=True):
        x = _subtract(emitter, code, x, scalars.multiply(emitter, code, a, b))
    return x


@lowering_rule(
    "triangular_solve",
    by_rows=True,
    parameters="conjugate_a left_side lower transpose_a unit_diagonal",
)
def _triangular_solve(
    emitter: Emitter, eqn: Any, matrix: ElementArray, right: ElementArray
) -> list[ElementArray]:
    """Lower `triangular_solve` by forward or back substitution (algorithms 3.1.1 and 3.1.2)."""
    p, code = eqn.params, code_of(eqn.invars[0].aval.dtype)
    # A solve from the right is one from the left with all transposed: x a = b is aᵀ xᵀ = bᵀ.
    transposed = bool(p["transpose_a"]) == bool(p["left_side"])

    def solve(a: ElementArray, b: ElementArray) -> tuple[ElementArray]:
        a, x = a.T if transposed else a, (b if p["left_side"] else b.T).copy()
        # The transpose of a lower triangle is an upper one, which is solved from the last row on.
        order = list(range(len(a)))[:: 1 if p["lower"] != transposed else -1]
        for n, i in enumerate(order):
            for j in range(x.shape[1]):
                rest = _less_products(emitter, code, x[i, j], a[i, order[:n]], x[order[:n], j])
                x[i, j] = rest if p["unit_diagonal"] else _divide(emitter, code, rest, a[i, i])
        return (x if p["left_side"] else x.T,)

    return _by_matrix(emitter, eqn, [matrix, right], solve, 2)


def _by_matrix(
    emitter: Emitter,
    eqn: Any,
    operands: Sequence[ElementArray],
    fun: Callable[..., Sequence[Any]],
    rank: int,
) -> list[ElementArray]:
    """Apply a function to each matrix of a batch.

    Args:
        emitter: receives the instructions.
        eqn: the equation.
        operands: its operands, with `rank` axes after those of the batch.
        fun: takes arrays of values, and returns one for each result of the operation.
        rank: axes of each operand of `fun`.

    Raises:
        Unsupported: if a matrix is empty or too large.
    """
    # Shapes: (batch axes..., matrix axes...), with as many batch axes for each operand.
    batch = operands[0].shape[:-rank]
    shapes = [x.shape[len(batch) :] for x in operands]
    results = [element_shape(v.aval.shape)[len(batch) :] for v in eqn.outvars]
    for i in range(len(operands)):
        require_unbatched(eqn, range(-rank, 0), i)
    if not all(0 < n <= MAX_UNROLLED_ROWS for shape in (*shapes, *results) for n in shape):
        raise Unsupported(f"the operation '{eqn.primitive.name}' of {shapes[0]}")

    def flat(*values: Value) -> list[Value]:
        return [v for x in fun(*_parts(list(values), shapes)) for v in x.reshape(-1)]

    # One array for each element of a matrix, in the shape of the batch: the matrices of a batch
    # become one call of `map_results`, a loop if they are many.
    columns = [c for x in operands for c in x.reshape(*batch, -1).transpose(-1, *range(len(batch)))]
    found = map_results(
        emitter, flat, columns, _codes(eqn.invars, shapes), _codes(eqn.outvars, results)
    )
    return [
        np.stack(list(x.reshape(-1)), -1).reshape(*batch, *shape)
        for x, shape in zip(_parts(found, results), results, strict=True)
    ]


def _codes(variables: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> list[str]:
    """Return the type code of each element of some matrices."""
    both = zip(variables, shapes, strict=True)
    return [code for v, shape in both for code in [code_of(v.aval.dtype)] * math.prod(shape)]


def _parts(values: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> list[ElementArray]:
    """Cut a list of values into arrays of some shapes."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [
        _array(values[end - math.prod(shape) : end], shape)
        for end, shape in zip(ends.tolist(), shapes, strict=True)
    ]


def _array(values: Sequence[Any], shape: tuple[int, ...]) -> ElementArray:
    """Return an array of values, which may be arrays themselves."""
    out = np.empty(len(values), object)
    # One by one: NumPy would take a list of arrays for one array of more axes.
    for i, x in enumerate(values):
        out[i] = x
    return out.reshape(shape)
