"""Linear algebra on one block of a tree, place by place: sums over unknowns are written out.

XLA's CPU compiler makes one vectorized loop of such a sum, and a slow one of a reduction over a
leading axis. A front is the rows of its lower triangle: row i is shaped (i + 1, copies, batch).
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
"""Rows of a lower triangle over a path; None is zero."""


class UnrolledPivot(NamedTuple):
    """One unknown of a block, eliminated."""

    row: jax.Array
    """Its coefficients on the path before it, divided by the pivot, (before, copies, batch)."""
    inverse: jax.Array
    """One over the pivot, (copies, batch)."""


def mass(block: Block, momentum: Sequence[jax.Array], path: Sequence[jax.Array]) -> FrontRows:
    """The mass matrix: its own places times those that carry them.

    Args:
        block: the block.
        momentum: six components of its own places' momenta per unit rate, (places, copies, batch).
        path: six components of the path's motion subspaces, (path, copies, batch).
    """
    front: FrontRows = [None] * block.above
    for j in range(block.places):
        n = block.above + j + 1
        row = total(f[j] * s[:n] for f, s in zip(momentum, path, strict=True))
        if not block.chain[j, :n].all():
            row = jnp.where(block.chain[j, :n, :, None], row, 0.0)
        front.append(row)
    return front


def add(a: jax.Array | None, b: jax.Array) -> jax.Array:
    """Sum of two arrays, of which the first may be zero."""
    return b if a is None else a + b


def add_last(row: jax.Array, x: jax.Array) -> jax.Array:
    """Adds to a row's last entry, on the diagonal."""
    last = jnp.arange(row.shape[0]) == row.shape[0] - 1
    return row + last[:, None, None].astype(row.dtype) * x


def add_diagonal(front: FrontRows, d: jax.Array) -> FrontRows:
    """Adds a diagonal of the block's own places, (places, copies, batch)."""
    above = len(front) - d.shape[0]
    out = list(front[:above])
    for row, x in zip(front[above:], d, strict=True):
        assert row is not None
        out.append(add_last(row, x))
    return out


def diagonal(front: FrontRows, above: int) -> jax.Array:
    """The diagonal of a block's own places, (places, copies, batch)."""
    return jnp.stack([row[-1] for row in front[above:] if row is not None])


def add_matrix(front: FrontRows, added: jax.Array) -> FrontRows:
    """Adds symmetric matrices (path, path, copies, batch)."""
    return [add(row, added[i, : i + 1]) for i, row in enumerate(front)]


def dot(row: jax.Array, x: Sequence[jax.Array] | jax.Array) -> jax.Array:
    """Scalar product of a row (n, copies, batch) and n unknowns (copies, batch)."""
    return total(a * b for a, b in zip(jnp.unstack(row), each(x)[: row.shape[0]], strict=True))


def each(x: Sequence[jax.Array] | jax.Array) -> Sequence[jax.Array]:
    """The parts along the first axis; to trace them one by one takes long."""
    return jnp.unstack(x) if isinstance(x, jax.Array) else x


def multiply(front: FrontRows, path: jax.Array) -> jax.Array:
    """The front times values along the path (path, copies, batch)."""
    out: list[jax.Array | None] = [None] * len(front)
    parts = each(path)
    for i, row in enumerate(front):
        if row is None:
            continue
        out[i] = add(out[i], dot(row, parts))
        pairs = zip(out[:i], each(row), strict=False)
        out[:i] = [add(y, x * parts[i]) for y, x in pairs]
    zero = jnp.zeros_like(parts[0])
    return jnp.stack([zero if y is None else y for y in out])


def factor(front: FrontRows, above: int) -> tuple[list[UnrolledPivot], FrontRows]:
    """Eliminates the places from `above` on: their pivots, and what is left before them."""
    pivots: list[UnrolledPivot] = []
    front = list(front)
    while len(front) > above:
        last = front.pop()
        assert last is not None
        pivot = UnrolledPivot(last[:-1] / last[-1:], 1.0 / last[-1])
        pivots.insert(0, pivot)
        parts = zip(front, each(pivot.row), strict=True)
        front = [add(r, last[: i + 1] * -x) for i, (r, x) in enumerate(parts)]
    return pivots, front


def forward(pivots: Sequence[UnrolledPivot], load: FrontRows) -> tuple[list[jax.Array], FrontRows]:
    """Substitutes from the tips inwards, for a load along the path.

    Returns:
        The block's own unknowns, over the pivots, and what is left of the load before them.
    """
    scaled: list[jax.Array] = []
    for pivot in reversed(pivots):
        *before, last = load
        assert last is not None
        scaled.insert(0, last * pivot.inverse)
        parts = zip(before, each(pivot.row), strict=True)
        load = [*fusion_barrier([add(y, x * -last) for y, x in parts])]
    return scaled, load


def backward(
    pivots: Sequence[UnrolledPivot], known: list[jax.Array], scaled: Sequence[jax.Array]
) -> list[jax.Array]:
    """Substitutes from the root outwards: what is known before, then what `forward` found."""
    known = list(known)
    for pivot, value in zip(pivots, scaled, strict=True):
        known.append(fusion_barrier(value - dot(pivot.row, known)) if known else value)
    return known


def apply_jacobian(_: BlockConstraints, jacobian: jax.Array, path: jax.Array) -> jax.Array:
    """What rates along the path move, (slots, copies, batch)."""
    return dot(jacobian, path[:, None])


def apply_transpose(slots: BlockConstraints, jacobian: Along, force: Along) -> jax.Array:
    """Forces (slots, copies, batch) along the path, (path, copies, batch)."""
    pushed = total(j * x[None] for j, x in zip(jacobian, force, strict=True))
    return total(pushed[:, k] for k in range(slots.each))


def hessian(
    slots: BlockConstraints, front: FrontRows, jacobian: Along, matrix: Matrix
) -> FrontRows:
    """Adds the stiffness of constraints, its entries (slots, copies, batch)."""
    pushed = mul(matrix, jacobian)
    out: FrontRows = []
    for i, row in enumerate(front):
        for s in range(slots.each):
            terms = [p[i, s] * j[: i + 1, s] for p, j in zip(pushed, jacobian, strict=True)]
            row = add(row, total(terms))
        out.append(row)
    return out
