"""Compaction: a short list of the rows that need work, for each environment its own."""

import jax
import jax.numpy as jnp

from brax.kernels.recognized import PREFIX, recognized

FLAGGED = f"{PREFIX}flagged_rows"
"""The name of the function that makes such a list, by which the code generator recognizes it."""


def flagged(flags: jax.Array, most: int) -> tuple[jax.Array, jax.Array]:
    """Return the indices of the first rows whose flag is set, in order, and how many are set.

    Args:
        flags: truth values, (rows, batch).
        most: the length of the list.

    Returns:
        The indices, (most, batch), int32, 0 where fewer rows are flagged; and the number of flags,
        (1, batch), int32, which may be larger than `most`.
    """

    def rows(flags: jax.Array) -> tuple[jax.Array, jax.Array]:
        before = jnp.cumsum(flags, axis=0, dtype=jnp.int32)
        place = jnp.arange(most, dtype=jnp.int32)[:, None]
        # The k-th flagged row follows all rows up to which fewer than k flags are set.
        index = jnp.sum(before[None] <= place[:, None], axis=1, dtype=jnp.int32)
        return jnp.where(place < before[-1:], index, 0), before[-1:]

    # On a CPU the list is written by one loop over the rows, with work only where some lane has a
    # flag.
    return recognized(FLAGGED, rows)(flags)
