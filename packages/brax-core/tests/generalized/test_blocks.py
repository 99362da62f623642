"""Linear algebra on the blocks of a tree, written out and by loops, against NumPy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.generalized.constraints.constraint_layout import BlockConstraints
from brax.generalized.linalg import constraint_hessian_sparse, frontal
from brax.generalized.smooth_dynamics import structure as structures

PARENTS = (-1, 0, 1, 1, 3, 4, 1, 6, 7, -1, 9)
"""Two trees: one that ends in two equal branches and one link, and a chain."""
COUPLED = ((5, 10),)
"""A tip of the one and that of the other: one of the equal branches is one no longer."""


@pytest.fixture(params=[100, 4, 0], ids=["written out", "both", "looped"])
def blocks(request, monkeypatch):
    """Return the blocks of `PARENTS`, of which those with longer paths are large."""
    monkeypatch.setattr(structures, "MAX_UNROLLED_DOFS", request.param)
    return structures.structure(PARENTS, COUPLED)


def random_fronts(plan, batch=3, seed=0):
    """Return a positive definite matrix (nv, nv, batch) as a sum of fronts, and as a NumPy array.

    As the mass matrix has it, a block's front is zero between places before its own.
    """
    rng, n = np.random.default_rng(seed), len(plan.order)
    matrix, parts = np.zeros((n, n, batch)), []
    for block in plan.blocks:
        length = len(block.path[0])
        front = rng.normal(size=(length, length, block.copies, batch))
        front = front + front.swapaxes(0, 1)
        front[range(length), range(length)] += 60.0
        front[: block.above, : block.above] = 0.0
        for k, path in enumerate(block.path):
            matrix[np.ix_(path, path)] += front[:, :, k]
        rows: list[jax.Array | None] = [jnp.asarray(front[i, : i + 1]) for i in range(length)]
        rows[: block.above] = [None] * block.above
        parts.append(jnp.asarray(front) if block.large else rows)
    return parts, matrix


@pytest.fixture
def problem(f64, blocks):
    parts, matrix = random_fronts(blocks)
    return blocks, parts, matrix, np.random.default_rng(1).normal(size=(len(matrix), 3))


def in_blocks(plan, x):
    return frontal.to_blocks(plan, jnp.asarray(x))


def test_products_and_solutions_are_numpys(problem):
    plan, parts, matrix, x = problem

    @jax.jit
    def both(parts, x):
        product = frontal.multiply(plan, parts, in_blocks(plan, x))
        solution = frontal.solve(plan, frontal.factor(plan, parts), in_blocks(plan, x))
        return frontal.to_model(plan, product), frontal.to_model(plan, solution)

    product, found = both(parts, x)
    np.testing.assert_allclose(product, np.einsum("ijb,jb->ib", matrix, x), atol=1e-12)
    wanted = np.linalg.solve(np.moveaxis(matrix, -1, 0), x.T[..., None])[..., 0].T
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_a_diagonal_is_added_and_the_matrix_is_whole(problem):
    plan, parts, matrix, x = problem
    loaded = frontal.add_diagonal(plan, parts, in_blocks(plan, x))
    wanted = matrix + np.einsum("ij,jb->ijb", np.eye(len(x)), x)
    np.testing.assert_allclose(frontal.dense(plan, loaded), wanted, atol=1e-13)


@pytest.mark.slow
def test_solutions_have_both_derivatives(problem):
    """By right-hand side and matrix: the change of a solution is -A^-1 dA x."""
    plan, parts, _, x = problem

    @jax.jit
    def solved(scale):
        scaled = jax.tree.map(lambda part: part * scale, parts)
        return frontal.solve(plan, frontal.factor(plan, scaled), in_blocks(plan, x))

    at = solved(1.0)
    np.testing.assert_allclose(jax.jvp(solved, (1.0,), (1.0,))[1], -at, atol=1e-11)
    slope = jax.jit(jax.grad(lambda scale: jnp.sum(solved(scale) ** 2)))(1.0)
    np.testing.assert_allclose(slope, -2 * np.sum(at**2), rtol=1e-10)


def test_rows_are_summed_by_target():
    rng = np.random.default_rng(0)
    target = rng.integers(-1, 9, 200)
    target[target == 4] = 3
    values = rng.normal(size=(200, 2)).astype(np.float32)
    wanted = np.zeros((9, 2))
    np.add.at(wanted, target[target >= 0], values[target >= 0])
    np.testing.assert_allclose(
        constraint_hessian_sparse.gathered(jnp.asarray(values), target, 9), wanted, atol=1e-5
    )
    assert not constraint_hessian_sparse.gathered(jnp.asarray(values), np.full(200, -1), 9).any()


def test_constraints_press_on_the_places_that_they_reach(f64):
    """Lower triangles of J^T D J, J x and J^T f; two directions, two copies, one slot empty."""
    rng, places = np.random.default_rng(0), 5
    reach = np.array([[[0, 1], [2, 0]], [[3, 4], [4, 1]]])  # (reach, slots, copies)
    sides = np.ones((2, 2, 2, 2, 1), bool)
    sides[:, :, 1, 1] = False
    sides[0] = False
    slots = BlockConstraints(0, 2, places, sides, reach=reach)
    jacobian = rng.normal(size=(2, 2, 2, 2, 3)) * sides[1]  # directions, then as `reach`
    full = np.zeros((2, places, 2, 2, 3))
    for at, i, k in np.ndindex(reach.shape):
        full[:, reach[at, i, k], i, k] += jacobian[:, at, i, k]
    stiff = rng.normal(size=(2, 2, 2, 2, 3))
    stiff = stiff + stiff.swapaxes(0, 1)
    mine = tuple(jnp.asarray(j) for j in jacobian)
    matrix = ((jnp.asarray(stiff[0, 0]),), (jnp.asarray(stiff[1, 0]), jnp.asarray(stiff[1, 1])))
    pressed = constraint_hessian_sparse.hessian(slots, mine, matrix)
    wanted = np.einsum("discb,descb,ejscb->ijcb", full, stiff, full)
    np.testing.assert_allclose(pressed, wanted * np.tri(places)[:, :, None, None], atol=1e-12)
    x, f = rng.normal(size=(places, 2, 3)), rng.normal(size=(2, 2, 2, 3))
    moved = [constraint_hessian_sparse.apply_jacobian(slots, j, jnp.asarray(x)) for j in mine]
    np.testing.assert_allclose(moved, np.einsum("discb,icb->dscb", full, x), atol=1e-12)
    back = constraint_hessian_sparse.apply_transpose(slots, mine, tuple(jnp.asarray(f)))
    np.testing.assert_allclose(back, np.einsum("discb,dscb->icb", full, f), atol=1e-12)
