"""Linear algebra on the blocks of a tree: one dense front for each block, copies side by side.

A front holds a symmetric matrix over a block's path, from the root to the tip, as the rows of its
lower triangle: row i is shaped (i + 1, copies, batch). A matrix of the model is the sum of its
blocks' fronts. Eliminating a block's own unknowns leaves a front over the rest of the path, which
is added to the parent's. Sums over unknowns are written out: XLA's CPU compiler makes one
vectorized loop of them, and a slow one of a reduction over a leading axis.

Source: Liu (1992), The multifrontal method for sparse matrix solution, SIAM Review 34(1).
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.components import rows, total
from brax.generalized.structure import Block, Structure
from brax.once import once


class Pivot(NamedTuple):
    """One unknown of a block, eliminated."""

    row: jax.Array
    """Its coefficients on the path before it, divided by the pivot, (before, copies, batch)."""
    inverse: jax.Array
    """One over the pivot, (copies, batch)."""


Front = list[jax.Array | None]
"""Rows of a lower triangle over a path; None is zero."""

Factor = list[list[Pivot]]
"""For each block, the pivots of its places."""


def to_blocks(plan: Structure, x: jax.Array) -> jax.Array:
    """Brings rows in the model's order into the order of elimination."""
    if plan.order == tuple(range(len(plan.order))):
        return x
    return jnp.concatenate([rows(x, place) for b in plan.blocks for place in b.dofs], axis=0)


def to_model(plan: Structure, x: jax.Array) -> jax.Array:
    """Undoes `to_blocks`."""
    return rows(x, plan.position)


def own(block: Block, x: jax.Array) -> jax.Array:
    """A block's own rows of (nv, batch), as (places, copies, batch)."""
    size = block.places * block.copies
    piece = jax.lax.slice_in_dim(x, block.start, block.start + size, axis=0)
    return piece.reshape(block.places, block.copies, x.shape[-1])


def flat(pieces: Sequence[jax.Array]) -> jax.Array:
    """Joins the blocks' own rows to (nv, batch)."""
    return jnp.concatenate([p.reshape(-1, p.shape[-1]) for p in pieces], axis=0)


def on_paths(plan: Structure, x: jax.Array) -> list[jax.Array]:
    """For each block the rows of (nv, batch) along its paths, (path, copies, batch)."""
    paths: list[jax.Array] = []
    for block in plan.blocks:
        mine = own(block, x)
        if block.parent is not None:
            above = _take_copies(paths[block.parent], block.owner)
            mine = jnp.concatenate([above, mine], axis=0)
        paths.append(mine)
    return paths


def from_paths(plan: Structure, values: Sequence[jax.Array | None], like: jax.Array) -> jax.Array:
    """Sums what lies along the blocks' paths to (nv, batch); undoes `on_paths` by transposition."""
    carried = list(values)
    pieces: list[jax.Array] = []
    for index in reversed(range(len(plan.blocks))):
        block, value = plan.blocks[index], carried[index]
        if value is None:
            pieces.append(jnp.zeros((block.places, block.copies, like.shape[-1]), like.dtype))
            continue
        pieces.append(value[block.above :])
        if block.parent is not None:
            part = _sum_copies(value[: block.above], block.owner, plan.blocks[block.parent].copies)
            before = carried[block.parent]
            carried[block.parent] = part if before is None else before + part
    return once(flat(pieces[::-1]))


def _take_copies(x: jax.Array, owner: tuple[int, ...]) -> jax.Array:
    """Copies `owner` of an array (..., copies, batch)."""
    n = x.shape[-2]
    if owner == tuple(range(n)):
        return x
    if n == 1:
        return jnp.broadcast_to(x, (*x.shape[:-2], len(owner), x.shape[-1]))
    return jnp.concatenate([x[..., o : o + 1, :] for o in owner], axis=-2)


def _sum_copies(x: jax.Array, owner: tuple[int, ...], n: int) -> jax.Array:
    """Sums copies (..., copies, batch) that have the same of `n` owners."""
    if owner == tuple(range(n)):
        return x
    parts = []
    for i in range(n):
        mine = [x[..., k : k + 1, :] for k, o in enumerate(owner) if o == i]
        parts.append(total(mine) if mine else jnp.zeros_like(x[..., :1, :]))
    return parts[0] if n == 1 else jnp.concatenate(parts, axis=-2)


def add(a: jax.Array | None, b: jax.Array) -> jax.Array:
    """Sum of two rows, of which the first may be zero."""
    return b if a is None else a + b


def add_last(row: jax.Array, x: jax.Array) -> jax.Array:
    """Adds to a row's last entry, on the diagonal."""
    last = jnp.arange(row.shape[0]) == row.shape[0] - 1
    return row + last[:, None, None].astype(row.dtype) * x


def factor(plan: Structure, fronts: Sequence[Front]) -> Factor:
    """Factors the sum of the fronts: L^T D L, eliminated from the tips inwards."""
    loaded = [list(front) for front in fronts]
    out: Factor = [[] for _ in plan.blocks]
    for index in reversed(range(len(plan.blocks))):
        block, front = plan.blocks[index], loaded[index]
        for _ in range(block.places):
            last = front.pop()
            assert last is not None
            pivot = Pivot(last[:-1] / last[-1:], 1.0 / last[-1])
            out[index].insert(0, pivot)
            front = [add(r, last[: i + 1] * -pivot.row[i]) for i, r in enumerate(front)]
        _hand_up(plan, block, front, loaded)
    return out


def _hand_up(plan: Structure, block: Block, left: Front, loaded: list[Front]) -> None:
    """Adds what is left of a block, over the path before it, to its parent's rows in `loaded`."""
    if block.parent is None:
        return
    parent, n = loaded[block.parent], plan.blocks[block.parent].copies
    for i, row in enumerate(left):
        assert row is not None
        parent[i] = add(parent[i], _sum_copies(row, block.owner, n))


def solve(plan: Structure, pivots: Factor, x: jax.Array) -> jax.Array:
    """Solves for right-hand sides (nv, batch), in the order of elimination."""
    loaded: list[list[jax.Array | None]] = [[None] * len(b.path[0]) for b in plan.blocks]
    scaled: list[list[jax.Array]] = [[] for _ in plan.blocks]
    for index in reversed(range(len(plan.blocks))):
        block, mine = plan.blocks[index], own(plan.blocks[index], x)
        load = loaded[index]
        load[block.above :] = [add(y, mine[i]) for i, y in enumerate(load[block.above :])]
        for pivot in reversed(pivots[index]):
            last = load.pop()
            assert last is not None
            scaled[index].insert(0, last * pivot.inverse)
            load = [*once([add(y, pivot.row[i] * -last) for i, y in enumerate(load)])]
        _hand_up(plan, block, load, loaded)
    return _back(plan, pivots, scaled)


def _back(plan: Structure, pivots: Factor, scaled: list[list[jax.Array]]) -> jax.Array:
    """Substitutes from the root outwards."""
    paths: list[list[jax.Array]] = []
    for block, mine, values in zip(plan.blocks, pivots, scaled, strict=True):
        known: list[jax.Array] = []
        if block.parent is not None:
            known = [_take_copies(x, block.owner) for x in paths[block.parent]]
        for pivot, value in zip(mine, values, strict=True):
            known.append(once(value - dot(pivot.row, known)) if known else value)
        paths.append(known)
    return once(flat([jnp.stack(p[b.above :]) for b, p in zip(plan.blocks, paths, strict=True)]))


def dot(row: jax.Array, x: Sequence[jax.Array] | jax.Array) -> jax.Array:
    """Scalar product of a row (n, copies, batch) and n unknowns (copies, batch)."""
    return total(row[i] * x[i] for i in range(row.shape[0]))


def multiply(plan: Structure, fronts: Sequence[Front], x: jax.Array) -> jax.Array:
    """The sum of the fronts times (nv, batch)."""
    products: list[jax.Array] = []
    for front, path in zip(fronts, on_paths(plan, x), strict=True):
        out: list[jax.Array | None] = [None] * len(front)
        for i, row in enumerate(front):
            if row is None:
                continue
            out[i] = add(out[i], dot(row, path))
            out[:i] = [add(y, row[k] * path[i]) for k, y in enumerate(out[:i])]
        zero = jnp.zeros_like(path[0])
        products.append(jnp.stack([zero if y is None else y for y in out]))
    return from_paths(plan, products, x)


def dense(plan: Structure, fronts: Sequence[Front]) -> jax.Array:
    """The sum of the fronts as a matrix (nv, nv, batch), in the model's order."""
    entries: list[jax.Array] = []
    index: dict[tuple[int, int], int] = {}
    for block, front in zip(plan.blocks, fronts, strict=True):
        for i, row in enumerate(front):
            if row is None:
                continue
            start = sum(e.shape[0] for e in entries)
            entries.append(row.reshape(-1, row.shape[-1]))
            for k, path in enumerate(block.path):
                for j in range(i + 1):
                    place = start + j * block.copies + k
                    index[path[i], path[j]] = index[path[j], path[i]] = place
    table = jnp.concatenate([*entries, jnp.zeros_like(entries[0][:1])])
    n = len(plan.order)
    where = [index.get((i, j), table.shape[0] - 1) for i in range(n) for j in range(n)]
    return jnp.take(table, np.asarray(where), axis=0).reshape(n, n, -1)


def add_diagonal(plan: Structure, fronts: Sequence[Front], d: jax.Array) -> list[Front]:
    """Adds a diagonal matrix (nv, batch)."""
    out = []
    for block, front in zip(plan.blocks, fronts, strict=True):
        mine = own(block, d)
        new = list(front)
        for i, row in enumerate(front[block.above :]):
            assert row is not None
            new[block.above + i] = add_last(row, mine[i])
        out.append(new)
    return out
