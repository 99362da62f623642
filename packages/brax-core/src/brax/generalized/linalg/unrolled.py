"""Linear algebra on one block of a tree, unrolled: every sum over unknowns is written out.

XLA's CPU compiler makes one vectorized loop of such a sum, but a slow loop of a reduction over a
leading axis. A front is the list of the rows of its lower triangle: row i is shaped (i + 1, copies,
batch).

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 6.5: LᵀDL factorization, which
eliminates the last unknown first and so has no fill-in on a tree.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.components import total
from brax.generalized.constraints.constraint_laws import Along, Matrix, mul
from brax.generalized.constraints.constraint_layout import BlockConstraints
from brax.generalized.smooth_dynamics.structure import Block
from brax.kernels.fusion_barrier import fusion_barrier

FrontRows = list[jax.Array | None]
"""Rows of the lower triangle of a matrix over a path; None is a row of zeros."""


class UnrolledPivot(NamedTuple):
    """One eliminated unknown of a block."""

    row: jax.Array
    """Its row of L: the coefficients on the path before it, divided by the pivot, (before, copies,
    batch)."""
    inverse: jax.Array
    """One over the pivot, an entry of D⁻¹, (copies, batch)."""


def mass(block: Block, momentum: Sequence[jax.Array], path: Sequence[jax.Array]) -> FrontRows:
    """Return the front of the mass matrix: the block's own rows S_i^T F_j, over their ancestors i.

    Args:
        block: the block.
        momentum: the six components of F = I^c S for the block's own places, each (places, copies,
            batch).
        path: the six components of the path's motion subspaces S, each (path, copies, batch).
    """
    # Entries between two ancestors belong to the fronts of the ancestors' own blocks.
    front: FrontRows = [None] * block.above
    for j in range(block.places):
        n = block.above + j + 1
        row = total(f[j] * s[:n] for f, s in zip(momentum, path, strict=True))
        # Constraints may put places on the path that are no ancestors; the mass matrix has zeros
        # there.
        if not block.chain[j, :n].all():
            row = jnp.where(block.chain[j, :n, :, None], row, 0.0)
        front.append(row)
    return front


def add(a: jax.Array | None, b: jax.Array) -> jax.Array:
    """Return the sum of two arrays, of which the first may be None for zero."""
    return b if a is None else a + b


def add_last(row: jax.Array, x: jax.Array) -> jax.Array:
    """Return a row with `x` added to its last entry, which is on the diagonal."""
    # A mask selects the last entry, which needs no scatter; see `gathered` in
    # `constraint_hessian_sparse` for what a scatter costs on a CPU.
    last = jnp.arange(row.shape[0]) == row.shape[0] - 1
    return row + last[:, None, None].astype(row.dtype) * x


def add_diagonal(front: FrontRows, d: jax.Array) -> FrontRows:
    """Return the front plus a diagonal of the block's own places, (places, copies, batch)."""
    above = len(front) - d.shape[0]
    out = list(front[:above])
    for row, x in zip(front[above:], d, strict=True):
        assert row is not None
        out.append(add_last(row, x))
    return out


def diagonal(front: FrontRows, above: int) -> jax.Array:
    """Return the diagonal of a block's own places, (places, copies, batch)."""
    return jnp.stack([row[-1] for row in front[above:] if row is not None])


def add_matrix(front: FrontRows, added: jax.Array) -> FrontRows:
    """Return the front plus symmetric matrices (path, path, copies, batch)."""
    return [add(row, added[i, : i + 1]) for i, row in enumerate(front)]


def dot(row: jax.Array, x: Sequence[jax.Array] | jax.Array) -> jax.Array:
    """Return the scalar product of a row (n, copies, batch) and n unknowns (copies, batch)."""
    return total(a * b for a, b in zip(jnp.unstack(row), each(x)[: row.shape[0]], strict=True))


def each(x: Sequence[jax.Array] | jax.Array) -> Sequence[jax.Array]:
    """Return the parts along the first axis.

    Indexing them one by one traces slowly.
    """
    return jnp.unstack(x) if isinstance(x, jax.Array) else x


def multiply(front: FrontRows, path: jax.Array) -> jax.Array:
    """Return the front times values along the path (path, copies, batch)."""
    out: list[jax.Array | None] = [None] * len(front)
    parts = each(path)
    for i, row in enumerate(front):
        if row is None:
            continue
        # The lower triangle gives row i of the product; its transpose adds to all rows before.
        out[i] = add(out[i], dot(row, parts))
        pairs = zip(out[:i], each(row), strict=False)
        out[:i] = [add(y, x * parts[i]) for y, x in pairs]
    zero = jnp.zeros_like(parts[0])
    return jnp.stack([zero if y is None else y for y in out])


def factor(front: FrontRows, above: int) -> tuple[list[UnrolledPivot], FrontRows]:
    """Eliminate the places from `above` on; return their pivots and the update matrix."""
    pivots: list[UnrolledPivot] = []
    front = list(front)
    while len(front) > above:
        last = front.pop()
        assert last is not None
        # L's row and D's entry of the last unknown of Featherstone's LᵀDL factorization.
        pivot = UnrolledPivot(last[:-1] / last[-1:], 1.0 / last[-1])
        pivots.insert(0, pivot)
        parts = zip(front, each(pivot.row), strict=True)
        # The rank-one update M_ij -= L_ki D_k L_kj, for j <= i: only the lower triangle is kept.
        front = [add(r, last[: i + 1] * -x) for i, (r, x) in enumerate(parts)]
    return pivots, front


def forward(pivots: Sequence[UnrolledPivot], load: FrontRows) -> tuple[list[jax.Array], FrontRows]:
    """Substitute from the tips inwards, for a load along the path.

    Returns:
        The block's own unknowns, divided by the pivots, and the rest of the load on the places
        before.
    """
    scaled: list[jax.Array] = []
    for pivot in reversed(pivots):
        *before, last = load
        assert last is not None
        scaled.insert(0, last * pivot.inverse)
        parts = zip(before, each(pivot.row), strict=True)
        # Without the barrier XLA recomputes each load in every later one, exponentially often (see
        # `fusion_barrier`).
        load = [*fusion_barrier([add(y, x * -last) for y, x in parts])]
    return scaled, load


def backward(
    pivots: Sequence[UnrolledPivot], known: list[jax.Array], scaled: Sequence[jax.Array]
) -> list[jax.Array]:
    """Substitute from the root outwards: first the known values, then what `forward` returned."""
    known = list(known)
    for pivot, value in zip(pivots, scaled, strict=True):
        # As in `forward`, the barrier keeps each unknown from being computed again for all that
        # follow.
        known.append(fusion_barrier(value - dot(pivot.row, known)) if known else value)
    return known


def apply_jacobian(_: BlockConstraints, jacobian: jax.Array, path: jax.Array) -> jax.Array:
    """Return J times the rates along the path, (slots, copies, batch)."""
    return dot(jacobian, path[:, None])


def apply_transpose(slots: BlockConstraints, jacobian: Along, force: Along) -> jax.Array:
    """Return Jᵀ times forces (slots, copies, batch), along the path, (path, copies, batch)."""
    pushed = total(j * x[None] for j, x in zip(jacobian, force, strict=True))
    return total(pushed[:, k] for k in range(slots.each))


def hessian(
    slots: BlockConstraints, front: FrontRows, jacobian: Along, matrix: Matrix
) -> FrontRows:
    """Return the front plus JᵀDJ of constraints, whose D has entries (slots, copies, batch)."""
    # D is a small matrix over the directions of each constraint: for an elliptic cone it is full.
    pushed = mul(matrix, jacobian)
    out: FrontRows = []
    for i, row in enumerate(front):
        for s in range(slots.each):
            # Only columns j <= i: the front is a lower triangle.
            terms = [p[i, s] * j[: i + 1, s] for p, j in zip(pushed, jacobian, strict=True)]
            row = add(row, total(terms))
        out.append(row)
    return out
