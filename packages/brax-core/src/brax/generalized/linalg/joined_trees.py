"""Constraint Hessian of a forest: tiles of the trees, and of those that contacts join now.

A listed contact acts on the places of two trees, so that its Jacobian has two trees' entries and
not those of the whole model.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.components import Vec3, rows
from brax.generalized.constraints.constraint_laws import Along
from brax.generalized.constraints.jacobians import AttachmentPoints, ListedJacobian, ListedRows
from brax.generalized.linalg import frontal
from brax.generalized.linalg.unrolled import FrontRows
from brax.generalized.smooth_dynamics.forest import Forest
from brax.generalized.smooth_dynamics.smooth import SmoothDynamics
from brax.generalized.smooth_dynamics.structure import Structure
from brax.kernels.gather import picked
from brax.kernels.joined_trees import added_at, solved_jointly
from brax.kernels.skip import in_chunks, map_needed, unread
from brax.spatial import Spatial


def by_tree(forest: Forest, x: jax.Array) -> jax.Array:
    """Return rows of (nv, batch) by tree, zero where it has none, (trees, places, batch)."""
    padded = jnp.concatenate([x, jnp.zeros_like(x[:1])])
    index = np.where(forest.rows < 0, len(x), forest.rows).ravel()
    return rows(padded, index.tolist()).reshape(*forest.rows.shape, -1)


def by_row(forest: Forest, x: jax.Array) -> jax.Array:
    """Return values by tree in the order of elimination, (nv, batch); undoes `by_tree`."""
    real = np.flatnonzero(forest.rows.ravel() >= 0)
    order = real[np.argsort(forest.rows.ravel()[real])]
    return rows(x.reshape(-1, x.shape[-1]), order.tolist())


def jacobian(forest: Forest, dynamics: SmoothDynamics, ends: AttachmentPoints) -> ListedRows:
    """Return the Jacobian of a chunk of contacts on their two trees, and these trees.

    The path has the places of the first tree, then those of the second.
    """
    assert ends.links is not None
    table = jax.tree.map(lambda x: by_tree(forest, x), dynamics.subspace)
    one_tree = dynamics.origin.x.shape[0] == 1
    origin = jax.tree.map(
        lambda x: x if one_tree else by_tree(forest, x)[:, : forest.origins], dynamics.origin
    )
    trees = [jnp.asarray(forest.tree, jnp.int32)[link + 1] for link in ends.links]
    moves = [jnp.asarray(forest.moves)[link + 1] for link in ends.links]
    sides: list[list[jax.Array]] = []
    for sign, tree, moved in zip((-1.0, 1.0), trees, moves, strict=True):
        here = jnp.maximum(tree, 0)
        # (slots, places, batch)
        motion: Spatial = picked(table, here[:, None])
        about: Vec3 = origin if one_tree else picked(origin, here[:, None])
        arm = jax.tree.map(lambda x: x[:, None], ends.first) - about
        scale = jnp.where(jnp.swapaxes(moved, 1, 2), sign, 0.0).astype(arm.x.dtype)
        wide = [jax.tree.map(lambda x: x[:, None], t) for t in ends.linear]
        turning = [jax.tree.map(lambda x: x[:, None], t) for t in ends.angular]
        linear = [motion.lin.dot(t) + motion.ang.dot(arm.cross(t)) for t in wide]
        sides.append([scale * x for x in (*linear, *(motion.ang.dot(t) for t in turning))])
    # Both links of one tree: what moves both does not act, and the second side is left empty.
    same = (trees[0] == trees[1])[:, None]
    first = [jnp.where(same, a + b, a) for a, b in zip(*sides, strict=True)]
    second = [jnp.where(same, 0.0, b) for b in sides[1]]
    # (slots, 2 * places, batch) become (2 * places, 1, rows, batch).
    joined = [jnp.concatenate(both, axis=1) for both in zip(first, second, strict=True)]
    moved = jnp.swapaxes(jnp.concatenate(joined), 0, 1)[:, None]
    return ListedRows(moved, jnp.concatenate([trees[0], jnp.where(same[:, 0], -1, trees[1])]))


def apply_jacobian(forest: Forest, jacobian: ListedJacobian, rates: jax.Array) -> Along:
    """Return J times rates (nv, batch): for each direction, (slots, batch).

    Nobody may read the rows of chunks that are not needed.
    """
    table = by_tree(forest, rates)
    slots, directions = jacobian.size(), jacobian.directions()

    def of_chunk(given: tuple[jax.Array, jax.Array]) -> jax.Array:
        mine, trees = given
        there = picked(table, jnp.maximum(trees, 0)[:, None])  # (2 * slots, places, batch)
        first, second = there[:slots], there[slots:]
        both = jnp.concatenate([first, second], axis=1)
        by_slot = mine.reshape(mine.shape[0], directions, slots, -1)
        return jnp.sum(by_slot * jnp.swapaxes(both, 0, 1)[:, None], axis=0)

    still = unread(jnp.zeros((directions, slots, rates.shape[-1]), rates.dtype))
    found = map_needed(jacobian.filled, of_chunk, (jacobian.rows, jacobian.joined()), still)
    by_direction = jnp.moveaxis(found, 1, 0)
    return tuple(x.reshape(-1, x.shape[-1]) for x in by_direction)


def apply_transpose(
    forest: Forest, jacobian: ListedJacobian, force: Along, like: jax.Array
) -> jax.Array:
    """Return Jᵀ times forces (slots, batch), (nv, batch)."""
    slots, directions = jacobian.size(), jacobian.directions()
    places = forest.rows.shape[1]

    def of_chunk(given: tuple[jax.Array, tuple[jax.Array, ...]]) -> jax.Array:
        mine, forces = given
        by_slot = mine.reshape(2, places, directions, slots, -1)
        found = jnp.sum(by_slot * jnp.stack(forces), axis=2)  # (2, places, slots, batch)
        return jnp.swapaxes(found, 1, 2).reshape(2 * slots, places, -1)

    still = unread(jnp.zeros((2 * slots, places, like.shape[-1]), like.dtype))
    chunks = jacobian.rows, in_chunks(force, len(jacobian.rows))
    pushed = map_needed(jacobian.filled, of_chunk, chunks, still)
    start = jnp.zeros((*forest.rows.shape, like.shape[-1]), like.dtype)
    return by_row(forest, added_at(start, pushed, jacobian.joined(), jacobian.filled))


def solve(
    forest: Forest,
    blocks: Structure,
    fronts: Sequence[Any],
    contacts: Sequence[tuple[ListedJacobian, jax.Array]],
    right: jax.Array,
) -> jax.Array:
    """Solve the fronts plus JᵀDJ of listed contacts, for a right-hand side (nv, batch).

    Args:
        forest: the trees.
        blocks: their blocks.
        fronts: the matrix without listed contacts, a front for each block.
        contacts: the Jacobian of each family of them, and D, as `outer_sums` takes it.
        right: the right-hand side.
    """
    places = forest.rows.shape[1]
    tiles = [_tiles(front, places) for front in fronts]
    parts = [(j.rows, weights, j.joined(), j.filled) for j, weights in contacts]
    alone = frontal.solve(blocks, frontal.factor(blocks, fronts), right)
    found = solved_jointly(
        jnp.concatenate(tiles), by_tree(forest, right), by_tree(forest, alone), parts
    )
    return by_row(forest, found)


def _tiles(front: FrontRows, places: int) -> jax.Array:
    """Return the matrices of a block's copies, 1 on the diagonal at places that they lack.

    The shape is (copies, places, places, batch); only the lower triangle counts.
    """
    wide = [
        jnp.pad(row, ((0, places - len(row)), (0, 0), (0, 0))) for row in front if row is not None
    ]
    assert len(wide) == len(front)
    unit = jnp.eye(places, dtype=wide[0].dtype)[:, :, None, None]
    lacking = [jnp.broadcast_to(unit[i], wide[0].shape) for i in range(len(front), places)]
    return jnp.moveaxis(jnp.stack([*wide, *lacking]), 2, 0)
