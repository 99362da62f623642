"""Symmetric matrices of each environment: sums of outer products, and elimination.

The arrays are (rows, rows, copies, batch), and only the lower triangle counts. On a CPU the code
generator calls loops of its own for these functions, which pass over entries that are zero in all
lanes: so the sparsity that a tree of links leaves is used, whichever contacts there are.
"""

import jax
import jax.numpy as jnp

from brax.kernels.skip import fold_needed

OUTER_SUMS, ELIMINATED = "outer_sums", "eliminated"
"""The names of the functions, by which the code generator recognizes them."""


def outer_sums(needed: jax.Array, start: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    """Return `start` plus the sum of `x yᵀ` over all terms of the chunks that are needed.

    Args:
        needed: truth values, (chunks, batch).
        start: matrices (rows, rows, copies, batch).
        x: vectors (chunks, rows, copies, terms, batch), such that the sum is symmetric.
        y: vectors of the same shape.

    Returns:
        Matrices shaped as `start`, of which only the lower triangle counts.
    """

    def outer_sums(needed: jax.Array, start: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
        def more(sum_: jax.Array, chunk: tuple[jax.Array, jax.Array]) -> jax.Array:
            return sum_ + jnp.einsum("pctb,qctb->pqcb", *chunk)

        return fold_needed(needed, more, start, (x, y))

    return jax.jit(outer_sums)(needed, start, x, y)


def eliminated(matrix: jax.Array, above: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Eliminate the rows from `above` on, the last first: the factorization LᵀDL.

    Args:
        matrix: matrices (rows, rows, copies, batch), of which only the lower triangle is read.
        above: number of rows that are left.

    Returns:
        The rows of L without its diagonal, shaped as the matrix, zero above; one over the entries
        of D, (rows - above, copies, batch); and what is left of the rows before, (above, above,
        copies, batch), of which only the lower triangle counts.

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

    rows, inverse, *left = jax.jit(eliminated)(matrix)
    return rows, inverse, left[0] if above else matrix[:0, :0]
