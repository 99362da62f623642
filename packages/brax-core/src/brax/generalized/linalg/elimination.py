"""Systems of equations that are not symmetric, batch last.

LAPACK's are not used: on a CPU jaxlib (0.10.2) spreads a batch of them over the threads that also
wait for it, so that two at a time wait for each other for ever.
"""

import jax
import jax.numpy as jnp


def solve(matrix: jax.Array, right: jax.Array) -> jax.Array:
    """Solves systems of equations by Gaussian elimination, row by row as they are.

    Without a search for pivots: it is for the inertia of a mechanism and what a short time step
    adds to it, whose pivots are far from zero.

    Args:
        matrix: (..., n, n, batch).
        right: (..., n, batch).

    Returns:
        The unknowns, (..., n, batch), not finite where a matrix is singular. Their derivative is
        that of the solution, not of the steps to it.

    Source: Golub and Van Loan, Matrix Computations (4th ed.), sections 3.2 and 4.1.4.
    """

    def times(x: jax.Array) -> jax.Array:
        return jnp.sum(matrix * x[..., None, :, :], axis=-2)

    def forward(_: object, b: jax.Array) -> jax.Array:
        return _eliminate(matrix, b)

    def transposed(_: object, b: jax.Array) -> jax.Array:
        return _eliminate(jnp.swapaxes(matrix, -3, -2), b)

    return jax.lax.custom_linear_solve(times, right, forward, transposed)


def _eliminate(matrix: jax.Array, right: jax.Array) -> jax.Array:
    """Each step takes the first row, scaled, off those below; a smaller system is left."""
    left = jnp.concatenate([matrix, right[..., None, :]], axis=-2)
    rows = []
    for _ in range(right.shape[-2]):
        row = left[..., 0, 1:, :] / left[..., 0, :1, :]
        left = left[..., 1:, 1:, :] - left[..., 1:, :1, :] * row[..., None, :, :]
        rows.append(row)
    found = rows.pop()
    for row in reversed(rows):
        known = jnp.sum(row[..., :-1, :] * found, axis=-2, keepdims=True)
        found = jnp.concatenate([row[..., -1:, :] - known, found], axis=-2)
    return found
