"""Symmetric matrices of each environment: sums of outer products, products, and factorization.

The arrays are (rows, rows, copies, batch), and only the lower triangle counts. On a CPU the code
generator calls loops of its own for these functions. But for products and diagonals they pass over
entries that are zero in all lanes: so the sparsity that a tree of links leaves is used, whichever
contacts there are.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from brax.kernels.recognized import PREFIX, recognized
from brax.kernels.skip import fold_needed

OUTER_SUMS, ELIMINATED = f"{PREFIX}outer_sums", f"{PREFIX}eliminated"
FORWARD, BACKWARD = f"{PREFIX}substituted_forward", f"{PREFIX}substituted_backward"
MULTIPLIED, WITH_DIAGONAL = f"{PREFIX}multiplied", f"{PREFIX}with_diagonal"
"""The names of the functions, by which the code generator recognizes them."""


def outer_sums(
    count: jax.Array, start: jax.Array, rows: jax.Array, weights: jax.Array
) -> jax.Array:
    """Return `start` plus JᵀDJ of all constraints of the first chunks.

    Args:
        count: the number of chunks that each environment needs, int32, (1, batch).
        start: matrices (n, n, copies, batch).
        rows: the Jacobian J, (chunks, n, copies, directions * constraints, batch), by direction,
            then by constraint.
        weights: the symmetric matrix D over the directions of each constraint: the rows of its
            lower triangle one after another, (chunks, entries, constraints * copies, batch).

    Returns:
        Matrices shaped as `start`, of which only the lower triangle counts.
    """

    def outer_sums(
        count: jax.Array, start: jax.Array, rows: jax.Array, weights: jax.Array
    ) -> jax.Array:
        n, copies, _, batch = rows.shape[1:]
        directions = triangle_size(weights.shape[1])

        def more(sum_: jax.Array, chunk: tuple[jax.Array, jax.Array]) -> jax.Array:
            j = chunk[0].reshape(n, copies, directions, -1, batch)
            d = jnp.swapaxes(chunk[1].reshape(weights.shape[1], -1, copies, batch), 1, 2)
            weighted = [
                sum(d[triangle_entry(a, b)] * j[:, :, b] for b in range(directions))
                for a in range(directions)
            ]
            return sum_ + jnp.einsum("pcasb,qcasb->pqcb", jnp.stack(weighted, axis=2), j)

        return fold_needed(count, more, start, (rows, weights))

    return recognized(OUTER_SUMS, outer_sums)(count, start, rows, weights)


def multiplied(matrix: jax.Array, x: jax.Array) -> jax.Array:
    """Return matrices (rows, rows, copies, batch) times vectors (rows, copies, batch).

    Of the matrices only the lower triangle is read.
    """

    def multiplied(matrix: jax.Array, x: jax.Array) -> jax.Array:
        lower = np.tri(len(matrix), dtype=bool)[:, :, None, None]
        whole = jnp.where(lower, matrix, matrix.swapaxes(0, 1))
        return jnp.sum(whole * x, axis=1)

    return recognized(MULTIPLIED, multiplied)(matrix, x)


def with_diagonal(matrix: jax.Array, added: jax.Array) -> jax.Array:
    """Return matrices plus a diagonal; of the sum only the lower triangle counts.

    Args:
        matrix: matrices (rows, rows, copies, batch), of which only the lower triangle is read.
        added: what is added to the last entries of the diagonal, (entries, copies, batch).
    """

    def with_diagonal(matrix: jax.Array, added: jax.Array) -> jax.Array:
        n = len(matrix)
        padded = jnp.pad(added, ((n - len(added), 0), (0, 0), (0, 0)))
        return matrix + jnp.eye(n, dtype=added.dtype)[:, :, None, None] * padded

    return recognized(WITH_DIAGONAL, with_diagonal)(matrix, added)


def triangle_size(entries: int) -> int:
    """Return the number of rows of a lower triangle with so many entries."""
    return (math.isqrt(8 * entries + 1) - 1) // 2


def triangle_entry(i: int, j: int) -> int:
    """Return the place of an entry of a symmetric matrix in the rows of its lower triangle."""
    low, high = sorted((i, j))
    return high * (high + 1) // 2 + low


def eliminated(matrix: jax.Array, above: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Eliminate the rows from `above` on, the last first: the factorization LᵀDL.

    Args:
        matrix: matrices (rows, rows, copies, batch), of which only the lower triangle is read.
        above: number of rows that are left.

    Returns:
        The rows of L, shaped as the matrix, of which only what is before the diagonal counts; one
        over the entries of D, (rows - above, copies, batch); and what is left of the rows before,
        (above, above, copies, batch), of which only the lower triangle counts.

    Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 6.5.
    """
    n = len(matrix)

    def eliminated(matrix: jax.Array) -> tuple[jax.Array, ...]:
        places = jnp.arange(n)[:, None, None]

        def eliminate(
            left: jax.Array, i: jax.Array
        ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            inverse = 1.0 / left[i, i]
            # The row index changes in the loop, so that the places before it are a mask and not a
            # slice.
            before = jnp.where(places < i, left[i], 0.0)
            scaled = before * inverse
            return left - scaled[:, None] * before, (scaled, inverse)

        left, (rows, inverse) = jax.lax.scan(eliminate, matrix, jnp.arange(above, n), reverse=True)
        rows = jnp.concatenate([jnp.zeros((above, *rows.shape[1:]), rows.dtype), rows])
        # Without rows before it there is no third result, which nobody would use.
        return rows, inverse, *([left[:above, :above]] if above else [])

    rows, inverse, *left = recognized(ELIMINATED, eliminated)(matrix)
    return rows, inverse, left[0] if above else matrix[:0, :0]


def _before_diagonal(rows: jax.Array) -> jax.Array:
    """Return the rows of L with zeros from the diagonal on, where anything may be."""
    return jnp.where(np.tri(len(rows), k=-1, dtype=bool)[:, :, None, None], rows, 0.0)


def substituted_forward(
    rows: jax.Array, inverse: jax.Array, load: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Substitute from the last row to the first of those that `eliminated` has eliminated.

    Args:
        rows: the rows of L, (rows, rows, copies, batch).
        inverse: one over the entries of D, (eliminated rows, copies, batch).
        load: right-hand sides, (rows, copies, batch).

    Returns:
        D⁻¹ times what L⁻ᵀ makes of the load, for the eliminated rows, and the load that is left
        for the rows before.
    """
    above = len(load) - len(inverse)

    def substituted_forward(
        rows: jax.Array, inverse: jax.Array, load: jax.Array
    ) -> tuple[jax.Array, ...]:
        rows, inverse = _before_diagonal(rows), jnp.squeeze(inverse, 0)

        def eliminate(load: jax.Array, each: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
            row, inverse, i = each
            last = load[i]
            return load - row * last, last * inverse

        each = rows[above:], inverse, jnp.arange(above, len(load))
        left, scaled = jax.lax.scan(eliminate, load, each, reverse=True)
        return scaled, *([left[None, :above]] if above else [])

    # Additional axes tell the function from parts of its derivative, which have its name: one has
    # the load before a tangent of the inverse, one returns loads of the eliminated rows.
    scaled, *left = recognized(FORWARD, substituted_forward)(rows, inverse[None], load)
    return scaled, left[0][0] if above else load[:0]


def substituted_backward(rows: jax.Array, known: jax.Array, scaled: jax.Array) -> jax.Array:
    """Substitute from the first eliminated row to the last.

    Args:
        rows: the rows of L, (rows, rows, copies, batch).
        known: the solution for the rows that are not eliminated, which come first, (rows, copies,
            batch).
        scaled: what `substituted_forward` returned for the others.

    Returns:
        The whole solution, (rows, copies, batch).
    """

    def substituted_backward(rows: jax.Array, *parts: jax.Array) -> jax.Array:
        path, rows = jnp.concatenate(parts), _before_diagonal(rows)
        places = jnp.arange(len(path))[:, None, None]

        def substitute(x: jax.Array, each: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            row, i = each
            # Each round writes one place, which a mask selects because the index changes in the
            # loop.
            return jnp.where(places == i, x - jnp.sum(row * x, axis=0), x), None

        each = rows[len(known) :], jnp.arange(len(known), len(path))
        return jax.lax.scan(substitute, path, each)[0]

    # Without rows before it there are no known values, of which nothing would be read.
    given = [known] if len(known) else []
    return recognized(BACKWARD, substituted_backward)(rows, *given, scaled)
