"""Blocked factorization of one block with a long path: its front is one array, worked on by loops.

Unrolled code for a long path takes a compiler too long, since it grows with the cube of the path.
Here a front is a symmetric array (path, path, copies, batch), zero where both places lie before the
block's own. It is eliminated in panels: a loop over the rows of a panel, then one update of
everything before the panel.

Source: Golub and Van Loan (2013), Matrix Computations, section 4.2: blocked factorization.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.components import total
from brax.generalized.smooth_dynamics.structure import Block

PANEL_ROWS = 16
"""Number of rows that are eliminated together."""


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
    return mirrored(jnp.pad(lower, ((block.above, 0), (0, 0), (0, 0), (0, 0))))


def mirrored(lower: jax.Array) -> jax.Array:
    """Return the symmetric matrices (n, n, copies, batch) that have the given lower triangles."""
    strict = np.tri(len(lower), k=-1, dtype=bool)[:, :, None, None]
    return lower + jnp.where(strict, lower, 0.0).swapaxes(0, 1)


def add_diagonal(front: jax.Array, d: jax.Array) -> jax.Array:
    """Return the front plus a diagonal of the block's own places, (places, copies, batch)."""
    n, own = front.shape[0], d.shape[0]
    padded = jnp.pad(d, ((n - own, 0), (0, 0), (0, 0)))
    return front + jnp.eye(n, dtype=d.dtype)[:, :, None, None] * padded


def diagonal(front: jax.Array, above: int) -> jax.Array:
    """Return the diagonal of a block's own places, (places, copies, batch)."""
    own = np.arange(above, len(front))
    return front[own, own]


def add_matrix(front: jax.Array, added: jax.Array) -> jax.Array:
    """Return the front plus symmetric matrices (path, path, copies, batch)."""
    return front + added


def multiply(front: jax.Array, x: jax.Array) -> jax.Array:
    """Return the front times values along the path (path, copies, batch)."""

    # A scan over columns keeps the program's size independent of the path.
    def column(sum_: jax.Array, each: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        entries, value = each
        return sum_ + entries * value, None

    return jax.lax.scan(column, jnp.zeros_like(front[0] * x[0]), (front, x))[0]


def factor(front: jax.Array, above: int) -> tuple[BlockedPivots, jax.Array]:
    """Eliminate the places from `above` on, the last first.

    Returns:
        The pivots, and the update matrix: what the elimination leaves on the places before, (above,
        above, copies, batch).
    """
    n = front.shape[0]
    rows: list[jax.Array] = []
    inverse: list[jax.Array] = []
    stop = n
    while stop > above:
        # The panels start at the tip; the last one may be short.
        start = max(above, stop - PANEL_ROWS)
        mine, inverses = _panel(front[start:], start)
        # `mine` are rows of L; `full` is D L, so that the sum of outer products is LᵀDL over the
        # panel.
        full = mine / inverses[:, None]
        left = [mine[i, :start, None] * full[i, None, :start] for i in range(stop - start)]
        rows.insert(0, jnp.pad(mine, ((0, 0), (0, n - stop), (0, 0), (0, 0))))
        inverse.insert(0, inverses)
        # One update of the remaining front for the whole panel, as in Golub and Van Loan's blocked
        # form.
        front, stop = front[:start, :start] - total(left), start
    before = jnp.zeros((above, *rows[0].shape[1:]), front.dtype)
    return BlockedPivots(jnp.concatenate([before, *rows]), jnp.concatenate(inverse)), front


def _panel(panel: jax.Array, start: int) -> tuple[jax.Array, jax.Array]:
    """Eliminate the rows of a panel (rows, path, copies, batch), the last first.

    Returns:
        The rows' coefficients on the places before them, and one over the pivots.
    """
    places = jnp.arange(panel.shape[1])[:, None, None]

    def eliminate(panel: jax.Array, i: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        last = panel[i]
        inverse = 1.0 / last[start + i]
        # The row index changes in the loop, so that the places before it are a mask and not a
        # slice.
        before = jnp.where(places < start + i, last, 0.0)
        scaled = before * inverse
        return panel - scaled[start:, None] * before, (scaled, inverse)

    found: tuple[jax.Array, jax.Array]
    _, found = jax.lax.scan(eliminate, panel, jnp.arange(panel.shape[0]), reverse=True)
    return found


def forward(pivots: BlockedPivots, load: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Substitute from the tips inwards, for a load along the path (path, copies, batch).

    Returns:
        The block's own unknowns, divided by the pivots, and the rest of the load on the places
        before.
    """
    own = pivots.inverse.shape[0]
    above = load.shape[0] - own

    def eliminate(load: jax.Array, each: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        row, inverse, i = each
        last = load[i]
        return load - row * last, last * inverse

    each = pivots.rows[above:], pivots.inverse, above + jnp.arange(own)
    left, scaled = jax.lax.scan(eliminate, load, each, reverse=True)
    return scaled, left[:above]


def backward(pivots: BlockedPivots, known: jax.Array, scaled: jax.Array) -> jax.Array:
    """Substitute from the root outwards: first the known values, then what `forward` returned."""
    above = known.shape[0]
    path = jnp.concatenate([known, scaled])
    places = jnp.arange(path.shape[0])[:, None, None]

    def substitute(x: jax.Array, each: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        row, i = each
        # Each round writes one place, which a mask selects because the index changes in the loop.
        return jnp.where(places == i, x - jnp.sum(row * x, axis=0), x), None

    each = pivots.rows[above:], above + jnp.arange(scaled.shape[0])
    return jax.lax.scan(substitute, path, each)[0]
