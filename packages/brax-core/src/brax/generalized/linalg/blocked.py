"""Factorization of one block with a long path: its front is one array, worked on by loops.

Unrolled code for a long path takes a compiler too long, since it grows with the cube of the path.
Here a front is an array (path, path, copies, batch) of which the lower triangle counts, zero where
both places lie before the block's own.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 6.5.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.components import total
from brax.generalized.smooth_dynamics.structure import Block
from brax.kernels.symmetric import (
    eliminated,
    multiplied,
    substituted_backward,
    substituted_forward,
    with_diagonal,
)


class BlockedPivots(NamedTuple):
    """The eliminated unknowns of a block."""

    rows: jax.Array
    """For each place of the path, the coefficients on the places before it, divided by the pivot:
    the rows of L. Zero for places that are not the block's own, (path, path, copies, batch)."""
    inverse: jax.Array
    """One over the pivots, the diagonal of D⁻¹, (places, copies, batch)."""


def mass(block: Block, momentum: Sequence[jax.Array], path: Sequence[jax.Array]) -> jax.Array:
    """Return the front of the mass matrix; see `brax.generalized.linalg.unrolled.mass`."""
    full = total(f[:, None] * s for f, s in zip(momentum, path, strict=True))
    n = full.shape[1]
    # The product is one array operation over all pairs of places. Of it only the ancestors in the
    # lower triangle are kept.
    carrying = block.chain & np.tri(n, dtype=bool)[block.above :, :, None]
    lower = jnp.where(carrying[..., None], full, 0.0)
    return jnp.pad(lower, ((block.above, 0), (0, 0), (0, 0), (0, 0)))


def add_diagonal(front: jax.Array, d: jax.Array) -> jax.Array:
    """Return the front plus a diagonal of the block's own places, (places, copies, batch)."""
    return with_diagonal(front, d)


def diagonal(front: jax.Array, above: int) -> jax.Array:
    """Return the diagonal of a block's own places, (places, copies, batch)."""
    own = np.arange(above, len(front))
    return front[own, own]


def add_matrix(front: jax.Array, added: jax.Array) -> jax.Array:
    """Return the front plus matrices (path, path, copies, batch)."""
    return front + added


def multiply(front: jax.Array, x: jax.Array) -> jax.Array:
    """Return the front times values along the path (path, copies, batch)."""
    return multiplied(front, x)


def factor(front: jax.Array, above: int) -> tuple[BlockedPivots, jax.Array]:
    """Eliminate the places from `above` on, the last first.

    Returns:
        The pivots, and the update matrix: what the elimination leaves on the places before, (above,
        above, copies, batch), of which only the lower triangle counts.
    """
    rows, inverse, left = eliminated(front, above)
    return BlockedPivots(rows, inverse), left


def forward(pivots: BlockedPivots, load: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Substitute from the tips inwards, for a load along the path (path, copies, batch).

    Returns:
        The block's own unknowns, divided by the pivots, and the rest of the load on the places
        before.
    """
    return substituted_forward(pivots.rows, pivots.inverse, load)


def backward(pivots: BlockedPivots, known: jax.Array, scaled: jax.Array) -> jax.Array:
    """Substitute from the root outwards: first the known values, then what `forward` returned."""
    return substituted_backward(pivots.rows, known, scaled)
