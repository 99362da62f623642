"""Multifrontal LDLᵀ factorization on the blocks of a tree: one dense front for each block.

A front holds a symmetric matrix over a block's path, from the root to the tip. A matrix of the
model is the sum of its blocks' fronts. Eliminating a block's own unknowns leaves an update matrix
over the rest of the path, which is added to the parent's front (extend-add). Copies of a block,
such as an ant's legs, lie side by side in one array. The algebra of one block is in
`brax.generalized.linalg.unrolled`, or in `brax.generalized.linalg.blocked` for a block with a long
path.

Source: Liu (1992), The multifrontal method for sparse matrix solution, SIAM Review 34(1); Duff and
Reid (1983), The multifrontal solution of indefinite sparse symmetric linear equations, ACM TOMS 9.
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.components import rows, total
from brax.generalized.linalg import blocked, unrolled
from brax.generalized.linalg.unrolled import FrontRows, UnrolledPivot, add
from brax.generalized.smooth_dynamics.structure import Block, Structure
from brax.kernels.fusion_barrier import fusion_barrier

Front = FrontRows | jax.Array
"""The front of a block: rows of the lower triangle, or for a large block one array that has it."""

Factor = list[list[UnrolledPivot] | blocked.BlockedPivots]
"""For each block, the pivots of its places."""


def algebra(block: Block) -> ModuleType:
    """Return the module that works on a block's front: `blocked` or `unrolled`."""
    return blocked if block.large else unrolled


def to_blocks(plan: Structure, x: jax.Array) -> jax.Array:
    """Return rows of the model's order in the order of elimination."""
    if plan.order == tuple(range(len(plan.order))):
        return x
    # `rows` takes evenly spaced indices as slices, and those of one place often are.
    return jnp.concatenate([rows(x, place) for b in plan.blocks for place in b.dofs], axis=0)


def to_model(plan: Structure, x: jax.Array) -> jax.Array:
    """Return rows of the order of elimination in the model's order; undoes `to_blocks`."""
    return rows(x, plan.position)


def own(block: Block, x: jax.Array) -> jax.Array:
    """Return a block's own rows of (nv, batch), as (places, copies, batch)."""
    size = block.places * block.copies
    piece = jax.lax.slice_in_dim(x, block.start, block.start + size, axis=0)
    return piece.reshape(block.places, block.copies, x.shape[-1])


def flat(pieces: Sequence[jax.Array]) -> jax.Array:
    """Return the blocks' own rows joined to (nv, batch)."""
    return jnp.concatenate([p.reshape(-1, p.shape[-1]) for p in pieces], axis=0)


def on_paths(plan: Structure, x: jax.Array) -> list[jax.Array]:
    """Return for each block the rows of (nv, batch) along its paths, (path, copies, batch)."""
    paths: list[jax.Array] = []
    for block in plan.blocks:
        mine = own(block, x)
        if block.parent is not None:
            # A child's path begins with its parent's: each copy takes it from the parent's copy
            # that carries it.
            above = _take_copies(paths[block.parent], block.owner)
            mine = jnp.concatenate([above, mine], axis=0)
        paths.append(mine)
    return paths


def from_paths(plan: Structure, values: Sequence[jax.Array | None], like: jax.Array) -> jax.Array:
    """Return the sum over the blocks' paths as (nv, batch): the transpose of `on_paths`."""
    carried = list(values)
    pieces: list[jax.Array] = []
    # Children come before parents, so that what lies on a parent's places is complete when its turn
    # comes.
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
    return fusion_barrier(flat(pieces[::-1]))


def _take_copies(x: jax.Array, owner: tuple[int, ...]) -> jax.Array:
    """Return the copies `owner` of an array (..., copies, batch)."""
    n = x.shape[-2]
    if owner == tuple(range(n)):
        return x
    if n == 1:
        # One copy carries all of them, so that a broadcast suffices.
        return jnp.broadcast_to(x, (*x.shape[:-2], len(owner), x.shape[-1]))
    return jnp.concatenate([x[..., o : o + 1, :] for o in owner], axis=-2)


def _sum_copies(x: jax.Array, owner: tuple[int, ...], n: int) -> jax.Array:
    """Return sums of the copies (..., copies, batch) that have the same of `n` owners."""
    if owner == tuple(range(n)):
        return x
    parts = []
    for i in range(n):
        mine = [x[..., k : k + 1, :] for k, o in enumerate(owner) if o == i]
        parts.append(total(mine) if mine else jnp.zeros_like(x[..., :1, :]))
    return parts[0] if n == 1 else jnp.concatenate(parts, axis=-2)


def factor(plan: Structure, fronts: Sequence[Front]) -> Factor:
    """Factorize the sum of the fronts as LᵀDL, from the tips to the roots."""
    # `unrolled` fronts are lists that `_extend_add` adds to in place: the copy keeps the caller's
    # fronts.
    loaded = [front if block.large else list(front) for block, front in _each(plan, fronts)]
    out: Factor = []
    # Children come before their parents, which receive their update matrices.
    for index in reversed(range(len(plan.blocks))):
        block = plan.blocks[index]
        pivots, update = algebra(block).factor(loaded[index], block.above)
        out.insert(0, pivots)
        if block.parent is not None:
            _extend_add(plan, block, _as_parent_stores(plan, block, update), loaded)
    return out


def _each(plan: Structure, values: Sequence[object]) -> list[tuple[Block, Any]]:
    """Return each block with its value."""
    return list(zip(plan.blocks, values, strict=True))


def _as_parent_stores(plan: Structure, block: Block, update: Any) -> Any:
    """Return the update matrix of a block in the form in which its parent's front is kept."""
    if not block.large or plan.blocks[block.parent or 0].large:
        return update
    # A blocked child of an unrolled parent: the parent keeps rows of the lower triangle.
    return [row[: i + 1] for i, row in enumerate(update)]


def _extend_add(plan: Structure, block: Block, update: Any, loaded: list[Any]) -> None:
    """Add a block's update matrix, over the path before it, to its parent's entry in `loaded`.

    This is the extend-add of the multifrontal method. The parent's path is the beginning of the
    child's, so that no indices are needed.
    """
    if block.parent is None:
        return
    parent = plan.blocks[block.parent]
    if parent.large:
        loaded[block.parent] = loaded[block.parent] + _sum_copies(
            update, block.owner, parent.copies
        )
        return
    for i, row in enumerate(update):
        mine = loaded[block.parent]
        mine[i] = add(mine[i], _sum_copies(row, block.owner, parent.copies))


def solve(plan: Structure, pivots: Factor, x: jax.Array) -> jax.Array:
    """Solve for right-hand sides (nv, batch), in the order of elimination."""
    loaded = [_load(block, own(block, x)) for block in plan.blocks]
    scaled: list[Any] = [None] * len(plan.blocks)
    for index in reversed(range(len(plan.blocks))):
        block = plan.blocks[index]
        scaled[index], update = algebra(block).forward(pivots[index], loaded[index])
        _extend_add(plan, block, update, loaded)
    return _back(plan, pivots, scaled)


def _load(block: Block, mine: jax.Array) -> Any:
    """Return a load on a block's own places as one along its path, zero before them."""
    if block.large:
        return jnp.pad(mine, ((block.above, 0), (0, 0), (0, 0)))
    return [*[None] * block.above, *mine]


def _back(plan: Structure, pivots: Factor, scaled: Sequence[Any]) -> jax.Array:
    """Substitute from the root outwards."""
    paths: list[Any] = []
    for (block, mine), values in zip(_each(plan, pivots), scaled, strict=True):
        above = [] if block.parent is None else paths[block.parent]
        # The parent's path is known in full, and begins the path of each of its copies' children.
        known: Any = [_take_copies(x, block.owner) for x in above]
        if block.large:
            known = jnp.stack(known) if known else values[:0]
        paths.append(algebra(block).backward(mine, known, values))
    return fusion_barrier(flat([jnp.stack([*path[b.above :]]) for b, path in _each(plan, paths)]))


def multiply(plan: Structure, fronts: Sequence[Front], x: jax.Array) -> jax.Array:
    """Return the sum of the fronts times (nv, batch)."""
    paths = zip(_each(plan, fronts), on_paths(plan, x), strict=True)
    products = [algebra(block).multiply(front, path) for (block, front), path in paths]
    return from_paths(plan, products, x)


def dense(plan: Structure, fronts: Sequence[Front]) -> jax.Array:
    """Return the sum of the fronts as a matrix (nv, nv, batch), in the model's order.

    The fronts must be like the mass matrix's: zero between places before a block's own.
    """
    entries: list[jax.Array] = []
    index: dict[tuple[int, int], int] = {}
    for block, front in _each(plan, fronts):
        for i, row in enumerate(front[block.above :], block.above):
            assert row is not None
            # Every entry of a row gets its number in a table of all entries; the matrix is one
            # gather from it.
            start = sum(e.shape[0] for e in entries)
            entries.append(row.reshape(-1, row.shape[-1]))
            for k, path in enumerate(block.path):
                for j in range(i + 1):
                    place = start + j * block.copies + k
                    index[path[i], path[j]] = index[path[j], path[i]] = place
    # The last row of zeros serves the pairs that nothing couples.
    table = jnp.concatenate([*entries, jnp.zeros_like(entries[0][:1])])
    n = len(plan.order)
    where = [index.get((i, j), table.shape[0] - 1) for i in range(n) for j in range(n)]
    return jnp.take(table, np.asarray(where), axis=0).reshape(n, n, -1)


def diagonal(plan: Structure, fronts: Sequence[Front]) -> jax.Array:
    """Return the diagonal (nv, batch) of fronts like the mass matrix's (see `dense`)."""
    return flat([algebra(b).diagonal(front, b.above) for b, front in _each(plan, fronts)])


def add_diagonal(plan: Structure, fronts: Sequence[Front], d: jax.Array) -> list[Front]:
    """Return the fronts plus a diagonal matrix (nv, batch)."""
    return [algebra(b).add_diagonal(front, own(b, d)) for b, front in _each(plan, fronts)]
