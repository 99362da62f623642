"""Linear systems of many small trees that contacts join, each environment its own pairs of them.

The matrix has a tile for each tree, and one for each two trees that a contact joins. On a CPU the
code generator calls loops of its own for these functions: they work on one environment after
another, and only on the tiles that are there.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.kernels.recognized import PREFIX, recognized
from brax.kernels.symmetric import (
    eliminated,
    substituted_backward,
    substituted_forward,
    triangle_entry,
    triangle_size,
)

ADDED_AT, SOLVED_JOINTLY = f"{PREFIX}added_at", f"{PREFIX}solved_jointly"
"""The names of the functions, by which the code generator recognizes them."""


def added_at(start: jax.Array, values: jax.Array, trees: jax.Array, count: jax.Array) -> jax.Array:
    """Return `start` plus values at the trees that they belong to.

    Args:
        start: (trees, places, batch).
        values: (chunks, sides, places, batch).
        trees: the tree of each, (chunks, sides, batch), int32, negative for none.
        count: how many chunks there are, (1, batch), int32. Nothing is read of further ones.
    """

    def added_at(
        start: jax.Array, values: jax.Array, trees: jax.Array, count: jax.Array
    ) -> jax.Array:
        at = _existing(trees, count, len(start))
        values = jnp.where(at[:, :, None] == len(start), 0.0, values)
        lane = jnp.arange(start.shape[-1])
        return start.at[at, :, lane].add(jnp.moveaxis(values, 2, -1), mode="drop")

    # The derivative of the function by its name would be another function, without a rule. It is
    # linear, so that it serves as its own derivative.
    linear = jax.custom_jvp(recognized(ADDED_AT, added_at))

    @linear.defjvp
    def _derivative(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
        *_, trees, count = primals
        return linear(*primals), linear(*tangents[:2], trees, count)

    out: jax.Array = linear(start, values, trees, count)
    return out


def _existing(trees: jax.Array, count: jax.Array, beyond: int) -> jax.Array:
    """Return trees (chunks, sides, batch), with an index that is dropped in place of none."""
    there = jnp.arange(len(trees))[:, None] < count
    return jnp.where(there[:, None] & (trees >= 0), trees, beyond)


def solved_jointly(
    diagonal: jax.Array,
    right: jax.Array,
    alone: jax.Array,
    contacts: list[tuple[jax.Array, jax.Array, jax.Array, jax.Array]],
) -> jax.Array:
    """Solve (diagonal + JᵀDJ) x = right.

    Args:
        diagonal: symmetric matrices of the trees, of which only the lower triangle is read, (trees,
            places, places, batch).
        right: right-hand sides, (trees, places, batch).
        alone: the solution without contacts, which is that of the trees that none acts on.
        contacts: for each number of directions of a contact
            - the Jacobian J, (chunks, 2 * places, 1, directions * constraints, batch): the places
              of the first tree, then those of the second; rows by direction, then by constraint;
            - the symmetric matrix D of each constraint, the rows of its lower triangle one after
              another, (chunks, entries, constraints, batch);
            - the trees, (chunks, 2 * constraints, batch), int32: the first of all constraints of a
              chunk, then the second; negative for none;
            - how many chunks there are, (1, batch), int32. Nothing is read of further ones.

    Returns:
        The solution, shaped as `right`.

    Source: Davis (2006), Direct Methods for Sparse Linear Systems, chapters 4 and 7.
    """
    n, places, batch = right.shape

    def solved_jointly(
        diagonal: jax.Array, right: jax.Array, alone: jax.Array, *parts: jax.Array
    ) -> jax.Array:
        low = np.tri(places, dtype=bool)[:, :, None]
        # The tile of two trees is (place of the first, place of the second).
        tiles = jnp.zeros((n, n, places, places, batch), right.dtype)
        each = jnp.arange(n)
        tiles = tiles.at[each, each].set(
            jnp.where(low, diagonal, jnp.swapaxes(jnp.where(low, diagonal, 0.0), 1, 2))
        )
        for k in range(0, len(parts), 4):
            tiles = _with_contacts(tiles, *parts[k : k + 4])
        whole = jnp.swapaxes(tiles, 1, 2).reshape(n * places, n * places, 1, batch)
        lower, inverse, _ = eliminated(whole, 0)
        flat = right.reshape(n * places, 1, batch)
        scaled, _ = substituted_forward(lower, inverse, flat)
        found = substituted_backward(lower, flat[:0], scaled).reshape(right.shape)
        acted = jnp.zeros((n, batch), bool)
        for k in range(0, len(parts), 4):
            at = _existing(parts[k + 2], parts[k + 3], n)
            acted = acted.at[at, jnp.arange(batch)].set(True, mode="drop")
        return jnp.where(acted[:, None], found, alone)

    flat = [part for each in contacts for part in each]
    return recognized(SOLVED_JOINTLY, solved_jointly)(diagonal, right, alone, *flat)


def _with_contacts(
    tiles: jax.Array, rows: jax.Array, weights: jax.Array, trees: jax.Array, count: jax.Array
) -> jax.Array:
    """Return tiles (trees, trees, places, places, batch) plus JᵀDJ; see `solved_jointly`."""
    n, places, batch = len(tiles), tiles.shape[2], tiles.shape[-1]
    chunks, entries, constraints, _ = weights.shape
    directions = triangle_size(entries)
    at = _existing(trees, count, n).reshape(chunks, 2, constraints, batch)
    j = rows.reshape(chunks, 2, places, directions, constraints, batch)
    j = jnp.where(at[:, :, None, None] == n, 0.0, j)
    d = jnp.where((at == n).all(axis=1)[:, None], 0.0, weights)
    lane = jnp.arange(batch)
    for x in range(2):
        weighted = jnp.stack(
            [
                sum(d[:, triangle_entry(a, b), None] * j[:, x, :, b] for b in range(directions))
                for a in range(directions)
            ],
            axis=2,
        )
        for y in range(2):
            product = jnp.einsum("kpdcb,kqdcb->kcbpq", weighted, j[:, y])
            tiles = tiles.at[at[:, x], at[:, y], :, :, lane].add(product, mode="drop")
    return tiles
