"""Lists of flagged rows, work in chunks, and symmetric matrices in translated kernels."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from native_lab import by_xla, translated

from brax.kernels.codegen.lowering import control_flow
from brax.kernels.compaction import FLAGGED, flagged
from brax.kernels.gather import picked
from brax.kernels.joined_trees import ADDED_AT, SOLVED_JOINTLY, added_at, solved_jointly
from brax.kernels.skip import fold_needed, map_needed, unread, update_needed, where_needed
from brax.kernels.symmetric import (
    BACKWARD,
    ELIMINATED,
    FORWARD,
    MULTIPLIED,
    OUTER_SUMS,
    WITH_DIAGONAL,
    eliminated,
    multiplied,
    outer_sums,
    substituted_backward,
    substituted_forward,
    with_diagonal,
)

pytestmark = pytest.mark.usefixtures("code_generator")

SIZES = (1, 5, 37)
"""Batches of one environment, of a part of a register, and of whole registers and a part."""


def listed(x):
    """Return a list of eight rows, which also makes a kernel keep its arrays in memory."""
    return flagged(x > 0.5, 8)


def test_functions_of_users_may_have_the_names_of_this_projects_own():
    """They add one, and multiply by the upper triangle too."""

    def unread(x):
        return x + 1

    def multiplied(matrix, x):
        return jnp.sum(matrix * x, axis=1)

    def whole(matrix, x):
        return jax.jit(unread)(jax.jit(multiplied)(matrix, x)), listed(x[:, 0])[1]

    matrix = np.array([[1, 2], [0, 1]], np.float32)[:, :, None, None] * np.ones(3, np.float32)
    x = np.array([3, 5], np.float32)[:, None, None] * np.ones(3, np.float32)
    found, _ = translated(whole, [matrix, x])
    np.testing.assert_array_equal(found, np.array([14, 6])[:, None, None] * np.ones(3))


@pytest.mark.parametrize("batch", SIZES)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
def test_flagged_rows_are_listed_in_order(batch, share):
    """Fewer and more of forty rows than the list holds; against NumPy's `flatnonzero`."""
    rng = np.random.default_rng(batch)
    x = np.where(rng.random((40, batch)) < share, 1.0, 0.0).astype(np.float32)
    for run in (translated, by_xla):
        index, count = run(listed, [x])
        for k in range(batch):
            rows = np.flatnonzero(x[:, k] > 0.5)
            wanted = np.zeros(8, int)
            wanted[: len(rows)] = rows[:8]
            np.testing.assert_array_equal(np.asarray(index)[:, k], wanted)
            assert int(count[0, k]) == len(rows)


def chunked(x, y):
    """Return sums and products of twelve chunks of four rows, of which some are not needed."""
    chunks = x.reshape(12, 4, 1, -1) * jnp.arange(1.0, 11.0)[:, None]
    needed = flagged(y[:12] > 0, 12)[1]
    first = 0.0 * chunks[0]
    kept = map_needed(needed, lambda c: (jnp.sin(c), c * y[0]), chunks, (first, 1.0 + first))
    read = map_needed(needed, lambda c: 2.0 * c, kept[0], unread(0.0 * chunks[0]))
    total = fold_needed(needed, lambda s, c: (s[0] + c, s[1] * 0.5), (0.0 * chunks[0], y[:1]), read)
    return (
        kept[0].reshape(480, -1),
        kept[1].reshape(480, -1),
        total[0].reshape(40, -1),
        total[1],
        needed,
    )


@pytest.mark.parametrize("batch", SIZES)
@pytest.mark.parametrize("shift", [-3.0, 0.0, 3.0])
def test_chunks_that_are_not_needed_are_left_as_they_were(batch, shift):
    """None, some and all chunks; against a loop in NumPy."""
    rng = np.random.default_rng(batch)
    x = rng.normal(size=(48, batch)).astype(np.float32)
    # In each environment the chunks that are needed come first.
    y = -np.sort(-(rng.normal(size=(12, batch)) + shift), axis=0).astype(np.float32)
    chunks = x.reshape(12, 4, 1, batch) * np.arange(1.0, 11.0, dtype=np.float32)[:, None]
    sine, scaled = np.zeros_like(chunks), np.ones_like(chunks)
    total, halved = np.zeros_like(chunks[0]), y[:1].copy()
    for i in range(12):
        on = y[i] > 0
        sine[i] = np.where(on, np.sin(chunks[i]), sine[i])
        scaled[i] = np.where(on, chunks[i] * y[0], scaled[i])
        total = np.where(on, total + 2 * sine[i], total)
        halved = np.where(on, halved * 0.5, halved)
    wanted = [
        sine.reshape(480, batch),
        scaled.reshape(480, batch),
        total.reshape(40, batch),
        halved,
    ]
    for run in (translated, by_xla):
        *found, count = run(chunked, [x, y])
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(count[0], (y > 0).sum(axis=0))


@pytest.mark.parametrize("batch", SIZES)
def test_a_loop_that_does_more_passes_over_rows_too(batch):
    """`where_needed` of the number of an iteration, in a loop that is not that alone."""
    x = np.random.default_rng(batch).normal(size=(12, batch)).astype(np.float32)
    most = np.arange(batch, dtype=np.float32)[None] % 5

    def sums(x, most):
        count = most.astype(jnp.int32)

        def step(place, total):
            more = where_needed(count, lambda t: t + x[:1], total, place=place)
            return more * 0.5

        return jax.lax.fori_loop(0, 4, step, x), flagged(x > 0, 4)[1]

    wanted = x.copy()
    for i in range(4):
        wanted = np.where(i < most, wanted + x[:1], wanted) * np.float32(0.5)
    for run in (translated, by_xla):
        found, _ = run(sums, [x, most])
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def replaced(x, y):
    """Return chunks of which some are replaced, once in place and once beside the old ones."""

    def turn(chunk, other):
        return chunk[1], chunk[0] * other + y[:1]

    needed, others = flagged(y[1:] > 0, 12)[1], jnp.arange(1.0, 13.0)[:, None, None, None]
    first = (2.0 * x).reshape(12, 4, 1, -1), (x + 1.0).reshape(12, 4, 1, -1)
    once = update_needed(needed, turn, first, others)
    # Nobody reads `once` after this, but `twice` is read beside what it becomes.
    twice = update_needed(needed, lambda a, b: (a[0] - b, a[1]), once, jnp.cos(others))
    last = update_needed(needed, lambda a, b: a + b * twice[0][0], twice[1], others)
    return [a.reshape(48, -1) for a in (*twice, last)]


@pytest.mark.parametrize("batch", SIZES)
def test_chunks_are_replaced_where_they_are_needed(batch):
    """Against a loop in NumPy."""
    rng = np.random.default_rng(batch)
    x = rng.normal(size=(48, batch)).astype(np.float32)
    y = -np.sort(-rng.normal(size=(13, batch)), axis=0).astype(np.float32)
    a, b = (z.reshape(12, 4, 1, batch) for z in (2 * x, x + 1))
    n, on = np.arange(1.0, 13.0)[:, None, None, None], (y[1:] > 0)[:, None, None]
    a, b = np.where(on, b, a), np.where(on, a * n + y[:1], b)
    a = np.where(on, a - np.cos(n), a)
    wanted = [a, b, np.where(on, b + n * a[0], b)]
    for run in (translated, by_xla):
        for found, right in zip(run(replaced, [x, y]), wanted, strict=True):
            np.testing.assert_allclose(found, right.reshape(48, batch), rtol=1e-5, atol=1e-5)


def rounds(x, y):
    """Return sums that each environment goes on with until they are large, and their start."""

    def step(carry):
        _, sums, turns = carry
        sums = sums + x * x
        turns = turns + 1.0
        kept = jnp.where(carry[0], turns, carry[2])
        return jnp.sum(sums, axis=0, keepdims=True) < y[:1], sums, kept

    def turn(carry, _):
        return where_needed(carry[0], step, carry, (False, False, True)), None

    start = 0.5 * x
    carry = y[1:] > 0, start, jnp.zeros_like(y[1:])
    _, sums, turns = jax.lax.scan(turn, carry, None, length=6)[0]
    return sums, turns, start


@pytest.mark.parametrize("batch", SIZES)
def test_a_loop_ends_for_each_environment_by_its_own_flag(batch):
    """Some never begin, some end early, and some take all turns; what they start from stays."""
    rng = np.random.default_rng(batch)
    x = rng.uniform(0.5, 1.0, size=(20, batch)).astype(np.float32)
    limit, flag = rng.uniform(20.0, 90.0, size=batch), rng.normal(size=batch)
    y = np.stack([limit, flag]).astype(np.float32)
    sums, turns, running = 0.5 * x, np.zeros(batch), flag > 0
    for _ in range(6):
        sums = np.where(running, sums + x * x, sums)
        turns += running
        running = running & (sums.sum(axis=0) < y[0])
    for run in (translated, by_xla):
        found = run(rounds, [x, y])
        for a, b in zip(found, (sums, turns[None], 0.5 * x), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_iterations_of_other_loops_may_be_needed_in_any_order():
    """`where_needed` of a scanned truth value, outside of `map_needed` and `fold_needed`."""

    def scattered(x, y):
        def step(carry, given):
            on, row = given
            return where_needed(on, lambda c: c + row, carry), None

        return (jax.lax.scan(step, x, ((y > 0)[:, None], y[:, None]))[0],)

    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=(n, 37)).astype(np.float32) for n in (40, 9))
    wanted = x + np.where(y > 0, y, 0).sum(axis=0)
    for run in (translated, by_xla):
        np.testing.assert_allclose(run(scattered, [x, y])[0], wanted, rtol=1e-5, atol=1e-6)


def test_a_loop_that_leaves_something_else_is_no_such_loop():
    """The carry exchanged where it is not needed, and a truth value that is not scanned over."""

    def exchanged(x, y):
        def step(carry, on):
            a, b = carry
            return where_needed(on, lambda t: (t[0] + 1.0, t[1]), (b, a)), None

        def always(carry, row):
            return where_needed(y[:1] > 0, lambda c: c + row, carry), None

        pair = jax.lax.scan(step, (x, 2.0 * x), (y > 0)[:, None])[0]
        return *pair, jax.lax.scan(always, x, jnp.arange(1.0, 8.0))[0], flagged(y > 0, 7)[0]

    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(n, 37)).astype(np.float32) for n in (40, 7))
    for a, b in zip(translated(exchanged, [x, y]), by_xla(exchanged, [x, y]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def matrices(size, copies, batch, dtype):
    """Return positive definite matrices with the sparsity of a tree, and sparse vectors."""
    rng = np.random.default_rng(size)
    # The second half of the rows hangs on the first three, so that much is zero.
    above = np.tri(size, dtype=bool)
    above[size // 2 :, 3 : size // 2] = False
    lower = np.where(above[:, :, None, None], rng.normal(size=(size, size, copies, batch)), 0.0)
    matrix = np.einsum("kicb,kjcb->ijcb", lower, lower) + size * np.eye(size)[:, :, None, None]
    rows = rng.normal(size=(3, size, copies, 6, batch))
    rows[:, 4 : size // 2] = 0.0
    return matrix.astype(dtype), rows.astype(dtype)


def lower_only(matrix):
    """Return a matrix with sevens above the diagonal, where anything may be."""
    lower = np.tri(len(matrix), dtype=bool)[:, :, None, None]
    return np.where(lower, matrix, np.float32(7.0))


@pytest.mark.parametrize("above", [0, 4])
@pytest.mark.parametrize(("copies", "batch"), [(1, 1), (2, 5), (1, 37)])
def test_elimination_leaves_l_d_and_the_rest(above, copies, batch):
    """The product of the factors is the matrix, and what is left is its Schur complement."""
    matrix, _ = matrices(12, copies, batch, np.float32)

    def factors(matrix, x):
        rows, inverse, left = eliminated(matrix, above)
        return rows, inverse, *([left] if above else []), flagged(x > 0, 4)[1]

    for run in (translated, by_xla):
        given = [lower_only(matrix), np.ones((5, batch))]
        rows, inverse, *left, _ = run(factors, given)
        np.testing.assert_array_equal(np.asarray(rows)[:above], 0.0)
        for c in range(copies):
            for k in range(batch):
                lower = np.tril(np.asarray(rows, np.float64)[:, :, c, k], -1) + np.eye(12)
                middle = np.zeros((12, 12))
                middle[above:, above:] = np.diag(1 / np.asarray(inverse, np.float64)[:, c, k])
                if above:
                    rest = np.tril(np.asarray(left[0], np.float64)[:, :, c, k])
                    middle[:above, :above] = rest + np.tril(rest, -1).T
                product = lower.T @ middle @ lower
                np.testing.assert_allclose(product, matrix[:, :, c, k], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("above", [0, 5])
@pytest.mark.parametrize(("copies", "batch"), [(1, 1), (2, 5), (1, 37)])
def test_substitution_solves_what_is_eliminated(above, copies, batch):
    """The values of the rows before and of the others solve the rows of the others."""
    matrix, _ = matrices(12, copies, batch, np.float32)
    rng = np.random.default_rng(batch)
    load, known = (rng.normal(size=(n, copies, batch)).astype(np.float32) for n in (12, above))

    def solved(matrix, load, *known):
        rows, inverse, _ = eliminated(matrix, above)
        scaled, left = substituted_forward(rows, inverse, load)
        first = known[0] if above else left
        found = substituted_backward(rows, first, scaled)
        # The count makes a kernel keep its arrays in memory.
        return found, flagged(load[:, 0] > 0, 4)[1], *([left] if above else [])

    args = [matrix, load, *([known] if above else [])]
    for run in (translated, by_xla):
        found, _, *left = (np.asarray(a, np.float64) for a in run(solved, args))
        np.testing.assert_array_equal(found[:above], known)
        product = np.einsum("ijcb,jcb->icb", matrix.astype(np.float64), found)
        np.testing.assert_allclose(product[above:], load[above:], rtol=1e-4, atol=1e-3)
        if above:
            # The Schur complement's right-hand side: what is left without the others' share.
            first, others = matrix[:above, above:], matrix[above:, above:]
            for c in range(copies):
                for k in range(batch):
                    by = np.linalg.solve(others[:, :, c, k], load[above:, c, k])
                    rest = load[:above, c, k] - first[:, :, c, k] @ by
                    np.testing.assert_allclose(left[0][:, c, k], rest, rtol=1e-4, atol=1e-4)


def test_rows_of_l_end_before_the_diagonal():
    """The diagonal and the places behind it do not count, whatever is there."""
    matrix, _ = matrices(6, 1, 3, np.float32)
    load = jnp.ones((6, 1, 3))
    rows, inverse, _ = eliminated(matrix, 0)
    lower = np.tri(6, k=-1, dtype=bool)[:, :, None, None]
    solutions = []
    for above in (0.0, np.nan):
        mine = jnp.where(lower, rows, above)
        scaled, none = substituted_forward(mine, inverse, load)
        solutions.append(substituted_backward(mine, none, scaled))
    np.testing.assert_array_equal(solutions[0], solutions[1])


@pytest.mark.parametrize("size", [8, 11, 13, 14])
@pytest.mark.parametrize(("copies", "batch"), [(1, 1), (2, 5), (1, 37)])
def test_a_product_reads_the_lower_triangle(size, copies, batch):
    """A multiple of the rows that are multiplied at once, and one, two and three more; by NumPy."""
    matrix, _ = matrices(size, copies, batch, np.float32)
    x = np.random.default_rng(0).normal(size=(size, copies, batch)).astype(np.float32)
    wanted = np.einsum("ijcb,jcb->icb", matrix.astype(float), x)
    for run in (translated, by_xla):
        found, _ = run(
            lambda a, x: (multiplied(a, x), flagged(x[:, 0] > 0, 4)[1]), [lower_only(matrix), x]
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("of", ["matrix", "vector", "both"])
def test_parts_of_a_products_derivative_are_no_such_product(of):
    """JAX gives them the function's name; a product of the vector and a change has its operands."""
    matrix, _ = matrices(12, 1, 37, np.float32)
    rng = np.random.default_rng(0)
    change = (lambda b: b + np.swapaxes(b, 0, 1))(rng.normal(size=matrix.shape).astype(np.float32))
    x, dx, weight = rng.normal(size=(3, 12, 1, 37)).astype(np.float32)

    def derivatives(a, x, da, dx, weight):
        given: dict[str, tuple[Callable[..., jax.Array], tuple[Any, ...], tuple[Any, ...]]] = {
            "matrix": (lambda a: multiplied(a, x), (a,), (da,)),
            "vector": (lambda x: multiplied(a, x), (x,), (dx,)),
            "both": (multiplied, (a, x), (da, dx)),
        }
        function, at, by = given[of]
        slopes = jax.vjp(function, *at)[1](weight)
        axes = [tuple(range(d.ndim - 1)) for d in by]
        products = [jnp.sum(s * d, axis=k) for s, d, k in zip(slopes, by, axes, strict=True)]
        forward = jax.jvp(function, at, by)[1]
        pushed = jax.linearize(
            lambda t: function(*jax.tree.map(lambda a, d: a + t * d, at, by)), 0.0
        )
        count = flagged(x[:, 0] > 0, 4)[1]
        return forward, pushed[1](1.0), sum(products[1:], products[0])[None], count

    share = {"matrix": (1, 0), "vector": (0, 1), "both": (1, 1)}[of]
    wanted = share[0] * np.einsum("ijcb,jcb->icb", change, x)
    wanted = wanted + share[1] * np.einsum("ijcb,jcb->icb", matrix, dx)
    for run in (translated, by_xla):
        forward, pushed, along, _ = run(derivatives, [matrix, x, change, dx, weight])
        np.testing.assert_allclose(forward, wanted, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(pushed, wanted, rtol=1e-4, atol=1e-3)
        np.testing.assert_allclose(along[0], np.sum(wanted * weight, (0, 1)), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("above", [0, 5])
@pytest.mark.parametrize(("copies", "batch"), [(1, 1), (2, 5), (1, 37)])
def test_a_diagonal_is_added_in_place_or_to_a_copy(kept, above, copies, batch):
    matrix, _ = matrices(12, copies, batch, np.float32)
    added = np.arange(1.0, 1 + (12 - above) * copies * batch).reshape(-1, copies, batch)
    wanted = matrix.astype(float)
    wanted[np.arange(above, 12), np.arange(above, 12)] += added

    def sums(a, d):
        first = 2.0 * a
        found = 0.5 * with_diagonal(first, 2.0 * d)
        # What is read afterwards must not have changed.
        return found, flagged(d[:, 0] > 0, 4)[1], *([first] if kept else [])

    for run in (translated, by_xla):
        found, _, *first = run(sums, [matrix, added.astype(np.float32)])
        lower = np.tri(12, dtype=bool)
        np.testing.assert_allclose(np.asarray(found)[lower], wanted[lower], rtol=1e-5, atol=1e-5)
        if kept:
            np.testing.assert_array_equal(first[0], 2.0 * matrix)


def mirrored(directions):
    """Return the places of an entry and its mirror in the rows of a lower triangle."""
    places = np.zeros((directions, directions), int)
    rows, columns = np.tril_indices(directions)
    places[rows, columns] = places[columns, rows] = np.arange(len(rows))
    return places


@pytest.mark.parametrize("directions", [1, 3])
@pytest.mark.parametrize(("copies", "batch"), [(1, 1), (2, 5), (1, 37)])
def test_outer_products_are_added_where_they_are_needed(copies, batch, directions):
    matrix, x = matrices(12, copies, batch, np.float32)
    # Chunks that are needed come first.
    needed = np.arange(3)[:, None] < np.random.default_rng(1).integers(0, 4, batch)
    places, constraints = mirrored(directions), 6 // directions
    size = (3, places.max() + 1, constraints * copies, batch)
    weights = np.random.default_rng(2).normal(size=size).astype(np.float32)
    # A lane that does not need a chunk has weights of zero there.
    weights *= needed[:, None, None]

    def sums(flags, matrix, x, weights):
        count = flagged(flags > 0, 4)[1]
        total = outer_sums(count, matrix, x, weights)
        return jnp.where(jnp.tri(12, dtype=bool)[:, :, None, None], total, 0.0), count

    # By direction, then by constraint; D by constraint, then by copy.
    j = x.reshape(3, 12, copies, directions, constraints, batch)
    d = weights.reshape(3, -1, constraints, copies, batch)[:, places]
    wanted = matrix + np.einsum("npcasb,naescb,nqcesb->pqcb", j, d, j)
    wanted = np.where(np.tri(12, dtype=bool)[:, :, None, None], wanted, 0.0)
    args = [needed.astype(np.float32), matrix, x, weights]
    for run in (translated, by_xla):
        found, _ = run(sums, args)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.slow
def test_they_have_derivatives():
    """Forwards and in reverse, against each other: both go through XLA's form."""
    matrix, x = (jnp.asarray(a) for a in matrices(6, 1, 2, np.float32))
    one = jnp.ones((3, 1, x.shape[3], 2))

    def energy(x):
        total = outer_sums(jnp.full((1, 2), 3), matrix, x, one)
        rows, inverse, _ = eliminated(total, 0)
        return jnp.sum(jnp.log(inverse)) + jnp.sum(rows**2)

    slope = jax.jvp(energy, (x,), (x,))[1]
    assert float(jnp.sum(jax.grad(energy)(x) * x)) == pytest.approx(float(slope), rel=1e-4)
    # The determinant by NumPy, half its logarithm differentiated by finite differences.
    small = 1e-2
    ends = [
        -np.linalg.slogdet(
            np.moveaxis(
                np.asarray(matrix + jnp.einsum("npctb,nqctb->pqcb", s * x, s * x), np.float64)[
                    :, :, 0
                ],
                -1,
                0,
            )
        )[1].sum()
        for s in (1 + small, 1 - small)
    ]

    def volume(x):
        return jnp.sum(jnp.log(eliminated(outer_sums(jnp.full((1, 2), 3), matrix, x, one), 0)[1]))

    found = jax.jvp(volume, (x,), (x,))[1]
    assert float(found) == pytest.approx((ends[0] - ends[1]) / (2 * small), rel=1e-3)


def kept_where_read(matrix, x):
    """Return what loops, branches and eliminations leave of arrays that are read again."""
    rows = matrix * x[:1]  # large enough to be kept in memory

    def pivots(matrix):
        # Rows and pivots are both used, so that the elimination stays one call.
        lower, inverse, _ = eliminated(matrix, 0)
        return inverse + 0.0 * lower[0]

    def step(_, carry):
        first, second = carry
        again = first.reshape(3, -1, *first.shape[1:])
        new = where_needed(x[1:2] > 0, lambda s: (s[1] + 1.0, 2.0 * s[0]), (first, second))
        # The old values are read after the branch, by another shape.
        return new[0] + again.reshape(first.shape), new[1]

    def swap(_, carry):
        # Nobody reads the old values, and each half of the carry is made of the other.
        return where_needed(x[2:3] > 0, lambda s: (s[1] + 1.0, 2.0 * s[0]), carry)

    added = jax.lax.fori_loop(0, 3, step, (rows, 2.0 * rows))
    swapped = jax.lax.fori_loop(0, 3, swap, (rows, 2.0 * rows))

    def repeated(_, total):
        # The product does not change in the loop, so it is computed once, outside of it.
        branch = where_needed(x[3:4] > 0, lambda s: s + total, 5.0 * rows)
        return total + pivots(4.0 * matrix) + branch

    total = jax.lax.fori_loop(0, 3, repeated, jnp.zeros_like(rows))  # (12, 12, copies, batch)
    twice = 2.0 * matrix
    inverse = jax.jit(pivots)(twice)
    # What was eliminated is read again, and so is what a sum started from.
    one = jnp.ones((1, 1, matrix.shape[2], x.shape[1]))
    needed = (x[None, 0] > -9).astype(jnp.int32)
    sums = outer_sums(needed, twice, rows[None, 0, :, :, None], one)
    count = flagged(x > 0, 4)[1]
    return *added, *swapped, total, inverse, sums[0], twice, count


@pytest.mark.parametrize("batch", SIZES)
def test_what_is_read_again_is_not_changed_in_place(batch):
    """Against the same steps in NumPy."""
    matrix, _ = matrices(12, 1, batch, np.float32)
    x = np.random.default_rng(batch).normal(size=(12, batch)).astype(np.float32)
    rows = matrix * x[:1]
    first, second = rows, 2 * rows
    for _ in range(3):
        on = x[1] > 0
        new = np.where(on, second + 1, first), np.where(on, 2 * first, second)
        first, second = new[0] + first, new[1]
    one, other = rows, 2 * rows
    for _ in range(3):
        one, other = np.where(x[2] > 0, other + 1, one), np.where(x[2] > 0, 2 * one, other)
    whole = np.moveaxis(matrix[:, :, 0], -1, 0).astype(np.float64)
    # The last row is eliminated first: 1 / D are ratios of trailing minors.
    minors = np.array([[np.linalg.det(m[i:, i:]) for i in range(13)] for m in whole])
    inverse = (minors[:, 1:] / minors[:, :-1]).T[:, None]
    sums = 2 * matrix[0] + rows[0, :1] * rows[0]
    total = 0.0
    for _ in range(3):
        total = total + inverse / 4 + np.where(x[3] > 0, 5 * rows + total, 5 * rows)
    for run in (translated, by_xla):
        *found, _ = run(kept_where_read, [matrix, x])
        wanted = [first, second, one, other, total, inverse / 2, None, 2 * matrix]
        for a, b in zip(found, wanted, strict=True):
            if b is not None:
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        # The first row of the lower triangle is one number.
        np.testing.assert_allclose(found[6][0], sums[0], rtol=1e-4)


def extremes(x):
    """Return the places of the extremes of three rows, from a kernel with its arrays in memory."""
    rows = x.reshape(3, -1, x.shape[-1])
    return jnp.argmax(rows, axis=1), jnp.argmin(rows, axis=1), flagged(x > 0.5, 4)[1]


@pytest.mark.parametrize("length", [9, 16, 38, 41])
def test_the_first_extreme_of_a_row_is_found(length):
    """Rows with equal numbers and with NaN, of which the first wins; against NumPy."""
    rng = np.random.default_rng(length)
    x = rng.integers(0, 7, (3, length, 37)).astype(np.float32)
    x[rng.random(x.shape) < 0.02] = np.nan
    for run in (translated, by_xla):
        most, least, _ = run(extremes, [x.reshape(3 * length, 37)])
        np.testing.assert_array_equal(most, np.argmax(x, axis=1))
        np.testing.assert_array_equal(least, np.argmin(x, axis=1))


def test_rows_are_picked_from_a_view_that_repeats_some():
    """Known places, some of them twice, then places that differ between lanes; against NumPy."""
    rng = np.random.default_rng(0)
    x, known = rng.normal(size=(40, 37)).astype(np.float32), rng.integers(0, 40, 200)
    places = rng.integers(0, 200, (5, 37))

    def chosen(x, places):
        return picked(x[known], places.astype(jnp.int32)), flagged(x > 0.5, 4)[1]

    for run in (translated, by_xla):
        found, _ = run(chosen, [x, places.astype(np.float32)])
        np.testing.assert_array_equal(found, np.take_along_axis(x[known], places, axis=0))


def test_every_function_is_lowered_by_its_rule(monkeypatch):
    """And not inlined, which would be slower: all with sizes of their own."""
    used = []

    def noted(name, rule):
        def lowered(*args):
            used.append(name)
            return rule(*args)

        return lowered

    for name, (rule, signatures) in control_flow._FUNCTIONS.items():
        monkeypatch.setitem(control_flow._FUNCTIONS, name, (noted(name, rule), signatures))
    n, above, copies, chunks, trees, places = 7, 2, 2, 4, 5, 6

    def every(x):
        def ones(*shape):
            return jnp.ones((*shape, 1)) + x[0]

        (index, count), batch = flagged(x > 0.5, 8), x.shape[-1]
        matrix = ones(n, n, copies)
        # Three directions, so that the symmetric D has six entries; two constraints.
        total = outer_sums(count, matrix, ones(chunks, n, copies, 6), ones(chunks, 6, 2 * copies))
        found = []
        for kept in (0, above):
            rows, inverse, _ = eliminated(with_diagonal(total, ones(n - kept, copies)), kept)
            load = multiplied(total, ones(n, copies))
            scaled, left = substituted_forward(rows, inverse, load)
            found.append(substituted_backward(rows, left, scaled))
        at = jnp.zeros((chunks, 2, batch), jnp.int32)
        sums = added_at(ones(trees, places), ones(chunks, 2, places), at, count)
        kinds = [
            (
                ones(size, 2 * places, 1, directions * size),
                ones(size, directions * (directions + 1) // 2, size),
                jnp.zeros((size, 2 * size, batch), jnp.int32),
                count,
            )
            for size, directions in ((2, 1), (3, 3), (4, 6))
        ]
        tiles = 9 * jnp.eye(places)[None, :, :, None] + ones(trees, places, places)
        found += [solved_jointly(tiles, sums, sums, kinds[:k]) for k in (1, 2, 3)]
        return index, *found

    translated(every, [np.zeros((20, 3), np.float32)])
    assert Counter(used) == {
        **dict.fromkeys((FLAGGED, OUTER_SUMS, ADDED_AT), 1),
        **dict.fromkeys((ELIMINATED, FORWARD, BACKWARD, MULTIPLIED, WITH_DIAGONAL), 2),
        SOLVED_JOINTLY: 3,
    }


def whole_of(function):
    """Return a function whose results are joined to one array of rows."""

    def joined(*args):
        found = function(*args)
        return jnp.concatenate([x.reshape(-1, x.shape[-1]) for x in jax.tree.leaves(found)])

    return joined


PARTS = {
    "forward": lambda m, d, x: substituted_forward(m, d, x),
    "the rows above are not needed": lambda m, d, x: substituted_forward(m, d, x)[0],
    "backward": lambda m, d, x: substituted_backward(m, x[: len(x) - len(d)], d),
    "elimination": lambda m, d, x: (eliminated(m, len(m) - len(d)), d, x),
    "inverses": lambda m, d, x: (eliminated(m, len(m) - len(d))[1], d, x),
    "product": lambda m, d, x: (multiplied(m, x), d),
    "diagonal": lambda m, d, x: (with_diagonal(m, d)[-1, 0], x),
}


@pytest.mark.parametrize(
    "by", [(0,), (1,), (2,), *(pytest.param(x, marks=pytest.mark.slow) for x in ((0, 1), (1, 2)))]
)
@pytest.mark.parametrize("above", [0, 3])
@pytest.mark.parametrize("name", PARTS)
def test_no_part_of_a_derivative_is_taken_for_the_function(name, above, by):
    """Parts of it have the function's name; against XLA, forwards and backwards.

    With three rows of six above, what is left of the load is as large as what was eliminated.
    """
    rng = np.random.default_rng(6)
    m, d, x, dm, dd, dx = (
        rng.normal(size=(*shape, 1, 3)).astype(np.float32)
        for shape in 2 * ((6, 6), (6 - above,), (6,))
    )
    m += 9 * np.eye(6, dtype=np.float32)[:, :, None, None]

    def derivatives(m, d, x, dm, dd, dx):
        given, changes = (m, d, x), (dm, dd, dx)

        def of_some(*moving):
            each = dict(zip(by, moving, strict=True))
            return whole_of(PARTS[name])(*(each.get(i, y) for i, y in enumerate(given)))

        some, along = [given[i] for i in by], [changes[i] for i in by]
        _, change = jax.jvp(of_some, some, along)
        out, back = jax.vjp(of_some, *some)
        return change, whole_of(back)(jnp.cos(out)), listed(x[:, 0])[1]

    args = [m, d, x, dm, dd, dx]
    found, wanted = translated(derivatives, args), by_xla(derivatives, args)
    for mine, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-5)
