"""Lowering rules of factorizations of small matrices and of triangular solves.

A factorization is unrolled: each element of the matrix is a value. The matrix is on the last two
axes, and the batch is on one before them, where `jax.vmap` puts it. In a long kernel with many
matrices they are in memory, and one loop goes over them.

Source: Golub and Van Loan (2013), Matrix Computations, algorithms 3.1.1, 3.1.2, 3.4.1 and 4.2.1.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from brax.kernels.codegen.emitter import Emitter, Unsupported, Value, code_of
from brax.kernels.codegen.lowering import scalars
from brax.kernels.codegen.lowering.arrays import ElementArray, apart, one, several

MAX_UNROLLED_ROWS = 24
"""Rows and columns of a matrix that is factorized: size³ / 3 multiplications, as instructions. LLVM
compiles a solution of 24 unknowns in 9 seconds, of 32 in 31, on an AMD EPYC."""

_divide, _subtract = scalars.rule("div"), scalars.rule("sub")
_equal, _greater = scalars.rule("eq"), scalars.rule("gt")


def _lu(asm: Emitter, eqn: Any, matrix: ElementArray) -> list[ElementArray]:
    """Factorize with partial pivoting; a zero pivot leaves its column as it is, as in LAPACK."""
    code = code_of(eqn.invars[0].aval.dtype)

    def factorize(a: ElementArray) -> tuple[ElementArray, ...]:
        rows, columns = a.shape
        pivots = []
        for k in range(min(rows, columns)):
            pivots.append(_largest(asm, code, a[k:, k], k))
            _swap_rows(asm, code, a, k, pivots[-1])
            zero = _equal(asm, code, a[k, k], scalars.constant(code, 0))
            for i in range(k + 1, rows):
                ratio = _divide(asm, code, a[i, k], a[k, k])
                a[i, k] = asm.select(zero, a[i, k], ratio, code)
                for j in range(k + 1, columns):
                    product = scalars.multiply(asm, code, a[i, k], a[k, j])
                    a[i, j] = _subtract(asm, code, a[i, j], product)
        return a, _array(pivots, (len(pivots),)), _permutation(asm, pivots, rows)

    return _by_matrix(asm, eqn, [matrix], factorize, 2)


def _largest(asm: Emitter, code: str, column: ElementArray, first: int) -> Value:
    """Return the row of the first element of the largest size, counted from `first`."""
    size = scalars.rule("abs")
    best, at = size(asm, code, column[0]), np.int32(first)
    for i, x in enumerate(column[1:], first + 1):
        found = size(asm, code, x)
        better = _greater(asm, code, found, best)
        best = asm.select(better, found, best, code)
        at = asm.select(better, np.int32(i), at, "i4")
    return at


def _swap_rows(asm: Emitter, code: str, a: ElementArray, k: int, pivot: Value) -> None:
    """Exchange the row `k` with a row below it, or with itself."""
    top = a[k].copy()
    for i in range(k + 1, len(a)):
        here = _equal(asm, "i4", pivot, np.int32(i))
        for j in range(a.shape[1]):
            a[k, j] = asm.select(here, a[i, j], a[k, j], code)
            a[i, j] = asm.select(here, top[j], a[i, j], code)


def _permutation(asm: Emitter, pivots: Sequence[Value], size: int) -> ElementArray:
    """Return the order of rows after exchanges of each row with its pivot."""
    order = _array([np.int32(i) for i in range(size)], (size, 1))
    for k, pivot in enumerate(pivots):
        _swap_rows(asm, "i4", order, k, pivot)
    return order


def _pivots_to_permutation(asm: Emitter, eqn: Any, pivots: ElementArray) -> list[ElementArray]:
    size = eqn.params["permutation_size"]
    return _by_matrix(asm, eqn, [pivots], lambda p: (_permutation(asm, p, size),), 1)


def _cholesky(asm: Emitter, eqn: Any, matrix: ElementArray) -> list[ElementArray]:
    """Factorize the lower triangle; all is NaN if the matrix is not positive definite."""
    code = code_of(eqn.invars[0].aval.dtype)
    zero, nan = scalars.constant(code, 0), scalars.constant(code, np.nan)

    def factorize(a: ElementArray) -> tuple[ElementArray]:
        size, definite = len(a), np.bool_(True)
        out = np.full(a.shape, zero, object)
        for j in range(size):
            for i in range(j, size):
                rest = _less_products(asm, code, a[i, j], out[i, :j], out[j, :j])
                if i == j:
                    positive = _greater(asm, code, rest, zero)
                    definite = scalars.rule("and")(asm, "b1", definite, positive)
                    out[j, j] = scalars.rule("sqrt")(asm, code, rest)
                else:
                    out[i, j] = _divide(asm, code, rest, out[j, j])
        for place in itertools.product(range(size), range(size)):
            out[place] = asm.select(definite, out[place], nan, code)
        return (out,)

    return _by_matrix(asm, eqn, [matrix], factorize, 2)


def _less_products(
    asm: Emitter, code: str, x: Value, left: ElementArray, right: ElementArray
) -> Value:
    """Return a number minus the products of pairs of numbers."""
    for a, b in zip(left, right, strict=True):
        x = _subtract(asm, code, x, scalars.multiply(asm, code, a, b))
    return x


def _triangular_solve(
    asm: Emitter, eqn: Any, matrix: ElementArray, right: ElementArray
) -> list[ElementArray]:
    p, code = eqn.params, code_of(eqn.invars[0].aval.dtype)
    # x a = b is aᵀ xᵀ = bᵀ.
    transposed = bool(p["transpose_a"]) == bool(p["left_side"])

    def solve(a: ElementArray, b: ElementArray) -> tuple[ElementArray]:
        a, x = a.T if transposed else a, (b if p["left_side"] else b.T).copy()
        order = list(range(len(a)))[:: 1 if p["lower"] != transposed else -1]
        for n, i in enumerate(order):
            for j in range(x.shape[1]):
                rest = _less_products(asm, code, x[i, j], a[i, order[:n]], x[order[:n], j])
                x[i, j] = rest if p["unit_diagonal"] else _divide(asm, code, rest, a[i, i])
        return (x if p["left_side"] else x.T,)

    return _by_matrix(asm, eqn, [matrix, right], solve, 2)


def _by_matrix(
    asm: Emitter,
    eqn: Any,
    given: Sequence[ElementArray],
    fun: Callable[..., Sequence[Any]],
    rank: int,
) -> list[ElementArray]:
    """Apply a function to each matrix of a batch.

    Args:
        asm: receives the instructions.
        eqn: the operation.
        given: its operands, with `rank` axes behind those of the batch.
        fun: takes arrays of values, and returns one for each result of the operation.
        rank: axes of each operand of `fun`.

    Raises:
        Unsupported: if a matrix is empty or too large.
    """
    batch = given[0].shape[:-rank]
    shapes = [x.shape[len(batch) :] for x in given]
    results = [one(v.aval.shape)[len(batch) :] for v in eqn.outvars]
    for i in range(len(given)):
        apart(eqn, range(-rank, 0), i)
    if not all(0 < n <= MAX_UNROLLED_ROWS for shape in (*shapes, *results) for n in shape):
        raise Unsupported(f"the operation '{eqn.primitive.name}' of {shapes[0]}")

    def flat(*values: Value) -> list[Value]:
        return [v for x in fun(*_parts(list(values), shapes)) for v in x.reshape(-1)]

    columns = [c for x in given for c in x.reshape(*batch, -1).transpose(-1, *range(len(batch)))]
    found = several(asm, flat, columns, _codes(eqn.invars, shapes), _codes(eqn.outvars, results))
    return [
        np.stack(list(x.reshape(-1)), -1).reshape(*batch, *shape)
        for x, shape in zip(_parts(found, results), results, strict=True)
    ]


def _codes(variables: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> list[str]:
    """Return the type of each element of some matrices."""
    both = zip(variables, shapes, strict=True)
    return [code for v, shape in both for code in [code_of(v.aval.dtype)] * math.prod(shape)]


def _parts(values: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> list[ElementArray]:
    """Cut a list into arrays."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    return [
        _array(values[end - math.prod(shape) : end], shape)
        for end, shape in zip(ends.tolist(), shapes, strict=True)
    ]


def _array(values: Sequence[Any], shape: tuple[int, ...]) -> ElementArray:
    out = np.empty(len(values), object)
    for i, x in enumerate(values):
        out[i] = x
    return out.reshape(shape)


MATRIX_RULES: dict[str, Callable[..., Any]] = {
    "lu": _lu,
    "lu_pivots_to_permutation": _pivots_to_permutation,
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
}
