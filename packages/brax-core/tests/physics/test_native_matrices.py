"""Factorizations and solutions of small systems in translated kernels, beside NumPy's."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from jax import lax
from native_lab import native

from brax.kernels.batch_last import batch_last
from brax.kernels.codegen import cpu
from brax.kernels.codegen.explain import collected

pytestmark = pytest.mark.usefixtures("code_generator")


def precision(x64):
    """Return the context and the type of single or double precision."""
    return jax.enable_x64(x64), np.float64 if x64 else np.float32


def matrices(size, batch, dtype, kind="random"):
    """Matrices (size, size, batch): random ones, or Hilbert's with small changes."""
    rng = np.random.default_rng(size + batch)
    a = rng.normal(size=(size, size, batch))
    if kind == "hilbert":  # condition number 1.5e7 for six rows
        a = scipy.linalg.hilbert(size)[..., None] * (1 + 1e-3 * a)
    return a.astype(dtype), rng.normal(size=(size, batch)).astype(dtype)


def first(x):
    """Return an array with the batch first, in double precision, as NumPy's functions take it."""
    return np.moveaxis(np.asarray(x, float), -1, 0)


@pytest.mark.parametrize(
    ("size", "batch", "x64"),
    [(3, 70, False), (6, 5, True), (1, 1, False)],
)
def test_lu_has_lapacks_pivots_and_its_factors_give_the_matrix(size, batch, x64):
    context, dtype = precision(x64)
    with context:
        a, _ = matrices(size, batch, dtype)
        lu, pivots, order = native(lambda a: lax.linalg.lu(a), a)
    for one, both, at, to in zip(*map(first, (a, lu, pivots, order)), strict=True):
        np.testing.assert_array_equal(at, scipy.linalg.lu_factor(one)[1])
        lower, upper = np.tril(both, -1) + np.eye(size), np.triu(both)
        error = np.abs(lower @ upper - one[to.astype(int)])
        assert (error <= size * np.finfo(dtype).eps * (np.abs(lower) @ np.abs(upper))).all()


def test_lu_of_singular_matrices_and_of_equal_pivots_is_lapacks():
    with jax.enable_x64(True):
        cases = np.array(
            [
                [[0.0, 0, 0], [0, 0, 0], [0, 0, 0]],
                [[0.0, 1, 2], [0, 3, 4], [0, 5, 6]],
                [[1.0, 2, 3], [-1, 1, 1], [1, -2, 5]],
                [[2.0, 4, 2], [1, 2, 1], [4, 8, 4]],
            ]
        )
        lu, pivots, _ = native(lambda a: lax.linalg.lu(a), np.moveaxis(cases, 0, -1))
    for case, got, rows in zip(cases, first(lu), first(pivots), strict=True):
        want, at, _ = scipy.linalg.lapack.dgetrf(case)
        np.testing.assert_array_equal(rows, at)
        np.testing.assert_allclose(got, want, atol=1e-15)


def test_lu_of_wide_and_tall_matrices():
    rng = np.random.default_rng(0)
    for shape in ((2, 4), (4, 2)):
        a = rng.normal(size=(*shape, 5)).astype(np.float32)
        p, lower, upper = native(lambda a: jax.scipy.linalg.lu(a), a)
        np.testing.assert_allclose(first(p) @ first(lower) @ first(upper), first(a), atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "x64"), [("random", False), ("hilbert", False), ("hilbert", True)]
)
def test_a_solution_is_that_of_a_matrix_next_to_the_one_given(kind, x64):
    """The backward error does not depend on the condition of the matrix."""
    context, dtype = precision(x64)
    with context:
        a, b = matrices(6, 77, dtype, kind)
        (x,) = native(jnp.linalg.solve, a, b)
    a, b, x = first(a), first(b)[..., None], first(x)[..., None]
    size = np.abs(a).sum((1, 2)) * np.abs(x).sum((1, 2))
    error = np.abs(a @ x - b).sum((1, 2)) / size
    assert error.max() < 3 * np.finfo(dtype).eps  # .9


def test_other_solutions():
    with jax.enable_x64(True):
        a, b = matrices(5, 6, np.float64)
        spd = np.einsum("ijb,kjb->ikb", a, a) + np.eye(5)[..., None]

        def several(a, spd, b):
            lu, pivots = jax.scipy.linalg.lu_factor(a)
            return (
                jnp.linalg.inv(a),
                jnp.linalg.det(a),
                jnp.linalg.slogdet(a),
                jax.scipy.linalg.lu_solve((lu, pivots), b),
                jax.scipy.linalg.lu_solve((lu, pivots), b, trans=1),
                jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(spd), b),
                jax.scipy.linalg.solve(spd, b, assume_a="pos"),
            )

        found = native(several, a, spd, b)
    a, spd, b = first(a), first(spd), first(b)[..., None]
    wanted = [
        np.linalg.inv(a),
        np.linalg.det(a),
        *np.linalg.slogdet(a),
        np.linalg.solve(a, b)[..., 0],
        np.linalg.solve(a.swapaxes(1, 2), b)[..., 0],
        *[np.linalg.solve(spd, b)[..., 0]] * 2,
    ]
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(first(got), want, rtol=1e-11)


@pytest.mark.parametrize(("batch", "x64"), [(33, False), (5, True)])
def test_cholesky_and_what_is_not_positive_definite(batch, x64):
    context, dtype = precision(x64)
    with context:
        a, _ = matrices(6, batch, dtype)
        spd = np.einsum("ijb,kjb->ikb", a, a) + np.eye(6, dtype=dtype)[..., None]
        spd[5, 5, ::3] = -1
        spd[0, 0, 1::3] = np.nan
        (lower,) = native(jnp.linalg.cholesky, spd)
    for k in range(batch):
        got = np.asarray(lower[..., k])
        if k % 3 < 2:
            assert np.isnan(got[np.tril_indices(6)]).all()
            assert (got[np.triu_indices(6, 1)] == 0).all()
        else:
            want = np.linalg.cholesky(spd[..., k].astype(float))
            np.testing.assert_allclose(got, want, atol=50 * np.finfo(dtype).eps)


def test_triangular_solves_with_all_settings():
    rng = np.random.default_rng(3)
    a = (rng.normal(size=(3, 3, 5)) + 2 * np.eye(3)[..., None]).astype(np.float32)
    left, right = rng.normal(size=(2, 3, 3, 5))[:, :, :2].astype(np.float32)
    settings = list(itertools.product((True, False), repeat=4))
    names = ("left_side", "lower", "transpose_a", "unit_diagonal")

    def several(a, left, right):
        return [
            lax.linalg.triangular_solve(
                a, left if s[0] else right.T, **dict(zip(names, s, strict=True))
            )
            for s in settings
        ]

    found = native(several, a, left, right)
    for (on_left, lower, transposed, unit), got in zip(settings, found, strict=True):
        m = np.tril(first(a)) if lower else np.triu(first(a))
        if unit:
            m = m * (1 - np.eye(3)) + np.eye(3)
        m = m.swapaxes(1, 2) if transposed else m
        x = first(got)
        product = m @ x if on_left else x @ m
        want = first(left) if on_left else first(right).swapaxes(1, 2)
        np.testing.assert_allclose(product, want, atol=2e-5)


def test_derivatives_of_a_solution_are_translated_too():
    """Derivatives of x = A⁻¹ b: dx = A⁻¹ (db - dA x), and b̄ = A⁻ᵀ x̄, Ā = -b̄ xᵀ."""
    with jax.enable_x64(True):
        a, b = matrices(4, 5, np.float64)
        da, db = matrices(4, 5, np.float64, "hilbert")

        def forward(a, b, da, db):
            return jax.jvp(jnp.linalg.solve, (a, b), (da, db))

        x, dx = native(forward, a, b, da, db)
        back = native(jax.grad(lambda a, b: jnp.linalg.solve(a, b).sum(), argnums=(0, 1)), a, b)
        (factor,) = native(jax.grad(lambda a: jnp.linalg.cholesky(a @ a.T + jnp.eye(4)).sum()), a)
    a, b, da, db, x, dx = map(first, (a, b, da, db, x, dx))
    for k in range(5):
        np.testing.assert_allclose(dx[k], np.linalg.solve(a[k], db[k] - da[k] @ x[k]), rtol=1e-9)
        b_bar = np.linalg.solve(a[k].T, np.ones(4))
        np.testing.assert_allclose(first(back[1])[k], b_bar, rtol=1e-9)
        np.testing.assert_allclose(first(back[0])[k], -np.outer(b_bar, x[k]), rtol=1e-9)
        step = np.zeros((4, 4))
        step[1, 2] = 1e-6
        high, low = (
            np.linalg.cholesky(m @ m.T + np.eye(4)).sum() for m in (a[k] + step, a[k] - step)
        )
        np.testing.assert_allclose(first(factor)[k, 1, 2], (high - low) / 2e-6, rtol=1e-6)


def test_many_matrices_of_a_long_kernel_are_factorized_in_a_loop(monkeypatch):
    monkeypatch.setattr(cpu, "MAX_UNROLLED_ELEMENTS", -1)
    monkeypatch.setattr(cpu, "MIN_LOOPED_ELEMENTS", 4)
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(5, *s, 20)).astype(np.float32) for s in ((3, 3), (3,)))
    (x,) = native(lambda a, b: jax.vmap(jnp.linalg.solve)(a, b), a, b)
    residual = np.einsum("kijb,kjb->kib", a, x) - b
    assert np.abs(residual).max() < 3e-5 * np.abs(x).max()


def test_a_function_behind_the_boundary_solves_natively():
    """As a joint of a plugin has it: elements by batch, a matrix for each element."""

    def fun(a, b):
        x = jnp.linalg.solve(jnp.moveaxis(a, -1, 0), jnp.moveaxis(b, -1, 0)[..., None])
        return jnp.moveaxis(x[..., 0], 0, -1)

    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(7, 2, 3, 3)), rng.normal(size=(7, 2, 3))
    with jax.enable_x64(True), collected() as outcomes:
        got = jax.jit(jax.vmap(batch_last(fun)))(a, b)
    assert outcomes and all(o.native for o in outcomes)
    np.testing.assert_allclose(got, np.linalg.solve(a, b[..., None])[..., 0], rtol=1e-9)
