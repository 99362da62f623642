"""Linear systems of trees that contacts join, translated and by XLA, against NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest
from native_lab import by_xla, translated

from brax.kernels.compaction import flagged
from brax.kernels.joined_trees import added_at, solved_jointly

pytestmark = pytest.mark.usefixtures("code_generator")

CHUNKS, CONSTRAINTS = 4, 3
SIZES = (1, 5, 37)
"""Batches of one environment, of a part of a register, and of whole registers and a part."""


def listed(x):
    """Return a list, which makes a kernel keep its arrays in memory."""
    return flagged(x.reshape(-1, x.shape[-1])[:40] > 0.5, 8)[1]


def contacts(rng, n, places, directions, batch):
    """Return Jacobian, D, trees and number of chunks of contacts between some of `n` trees.

    Some have no second tree or none at all, and some have a D of zero. What nobody may read is NaN.
    """
    size = (CHUNKS, 2 * places, 1, directions * CONSTRAINTS, batch)
    rows = rng.normal(size=size)
    root = rng.normal(size=(CHUNKS, directions, directions, CONSTRAINTS, batch))
    d = np.einsum("kabsl,kcbsl->kacsl", root, root)
    d *= rng.random((CHUNKS, 1, 1, CONSTRAINTS, batch)) < 0.8
    low = np.tril_indices(directions)
    trees = rng.integers(-1, n, (CHUNKS, 2, CONSTRAINTS, batch))
    trees[:, 1] = np.where(trees[:, 0] == trees[:, 1], -1, trees[:, 1])
    count = rng.integers(0, CHUNKS + 1, (1, batch))
    beyond = np.arange(CHUNKS)[:, None] >= count
    rows = np.where(beyond[:, None, None, None], np.nan, rows)
    weights = np.where(beyond[:, None, None], np.nan, d[:, low[0], low[1]])
    return rows, weights, trees.reshape(CHUNKS, -1, batch), count, d


def dense(diagonal, rows, d, trees, count, lane):
    """Return the whole matrix of one environment, (trees * places, trees * places)."""
    n, places = diagonal.shape[:2]
    out = np.zeros((n, places, n, places))
    for tree in range(n):
        low = np.tril(diagonal[tree, :, :, lane])
        out[tree, :, tree] = low + np.tril(low, -1).T
    for k in range(count[0, lane]):
        for s in range(CONSTRAINTS):
            whole = np.zeros((d.shape[1], n, places))
            for side in range(2):
                tree = trees[k, side * CONSTRAINTS + s, lane]
                if tree >= 0:
                    mine = rows[k, side * places : (side + 1) * places, 0, s::CONSTRAINTS, lane]
                    whole[:, tree] += mine.T
            out += np.einsum("apq,ab,brs->pqrs", whole, d[k, :, :, s, lane], whole)
    return out.reshape(n * places, n * places)


@pytest.mark.parametrize("batch", SIZES)
@pytest.mark.parametrize(("n", "places", "kinds"), [(5, 6, [3]), (9, 3, [1, 6]), (70, 1, [3])])
def test_the_solution_is_that_of_the_whole_matrix(batch, n, places, kinds):
    """One word of trees and more, rows of several lengths, and two kinds of contacts."""
    rng = np.random.default_rng(batch)
    root = rng.normal(size=(n, places, places, batch))
    diagonal = np.einsum("tpql,trql->tprl", root, root) + np.eye(places)[None, :, :, None]
    right = rng.normal(size=(n, places, batch))
    given = [contacts(rng, n, places, directions, batch) for directions in kinds]
    single = np.linalg.solve(np.moveaxis(diagonal, -1, 0), np.moveaxis(right, -1, 0)[..., None])
    alone = np.moveaxis(single[..., 0], 0, -1)
    # Above the diagonal is anything: it does not count.
    shown = np.where(np.tri(places, dtype=bool)[:, :, None], diagonal, 7.0)

    def solved(*args):
        diagonal, right, alone, *parts = args
        parts = [tuple(parts[k : k + 4]) for k in range(0, len(parts), 4)]
        return solved_jointly(diagonal, right, alone, parts), listed(jnp.abs(right))

    args = [shown, right, alone, *(part for each in given for part in each[:4])]
    args = [x.astype(np.int32 if x.dtype.kind == "i" else np.float32) for x in args]
    for run in (translated, by_xla):
        found, _ = run(solved, args)
        for lane in range(batch):
            whole = sum(
                dense(diagonal if k == 0 else 0.0 * diagonal, rows, d, trees, count, lane)
                for k, (rows, _, trees, count, d) in enumerate(given)
            )
            wanted = np.linalg.solve(whole, right[:, :, lane].ravel()).reshape(n, places)
            np.testing.assert_allclose(found[:, :, lane], wanted, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("batch", SIZES)
def test_values_are_added_at_their_trees(batch):
    rng = np.random.default_rng(batch)
    start = rng.normal(size=(9, 6, batch)).astype(np.float32)
    values = rng.normal(size=(CHUNKS, 5, 6, batch)).astype(np.float32)
    trees = rng.integers(-1, 9, (CHUNKS, 5, batch)).astype(np.int32)
    count = rng.integers(0, CHUNKS + 1, (1, batch)).astype(np.int32)
    beyond = np.arange(CHUNKS)[:, None] >= count
    values = np.where(beyond[:, None, None], np.float32(np.nan), values)
    wanted = start.astype(float)
    for k, side, lane in np.ndindex(CHUNKS, 5, batch):
        if k < count[0, lane] and trees[k, side, lane] >= 0:
            wanted[trees[k, side, lane], :, lane] += values[k, side, :, lane]

    def added(start, *args):
        return added_at(start, *args), listed(jnp.abs(start))

    for run in (translated, by_xla):
        found, _ = run(added, [start, values, trees, count])
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
