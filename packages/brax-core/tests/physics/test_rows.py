"""Functions of rows, weighted sums of terms and their gradients, against formulas in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.kernels.rows import MIN_ROWS, map_rows, weighted_sum


def _terms(outputs, rows):
    """Return terms of each row: of vectors (..., n), of numbers (...,), and an infinite one."""
    x, y = outputs
    return jnp.sum(jnp.exp(-x) * rows, axis=-1), jnp.log1p(y**2), 1.0 / (x[..., 0] - x[..., 0])


def _case(seed=0, rows=200):
    """Return outputs, other data and weights."""
    draw = np.random.default_rng(seed).normal
    numbers = (
        (draw(size=(rows, 3)), draw(size=rows)),
        draw(size=(rows, 3)),
        (np.array(0.3), draw(size=rows)),
    )
    return jax.tree.map(np.float32, numbers)


def _expected(outputs, rows, weights):
    """Return the sum, its gradient by the outputs, and the terms."""
    (x, y), rows, (a, b) = jax.tree.map(np.float64, (outputs, rows, weights))
    first, second = (np.exp(-x) * rows).sum(-1), np.log1p(y**2)
    gradient = -a * np.exp(-x) * rows, b * 2 * y / (1 + y**2)
    return (a * first + b * second).sum(), gradient, (first, second, np.full(len(y), np.inf))


def _found(outputs, rows, weights):
    """Return the same, by the function under test."""

    def loss(outputs):
        return weighted_sum(_terms, outputs, rows, weights)

    (total, terms), gradient = jax.value_and_grad(loss, has_aux=True)(outputs)
    return total, gradient, terms


def _close(found, expected):
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        atol = 2e-6 * np.max(abs(y)) if np.isfinite(y).all() else 0
        np.testing.assert_allclose(x, y, rtol=2e-6, atol=atol)


@pytest.mark.parametrize("native", ["0", "1"])
def test_a_sum_and_its_gradient(native, monkeypatch):
    monkeypatch.setenv("BRAX_NATIVE", native)
    case = _case()
    found = jax.jit(lambda *x: _found(*x))(*case)
    _close(found, _expected(*case))
    assert ("batch_last" in str(jax.make_jaxpr(lambda *x: _found(*x))(*case))) == (native == "1")


def test_sums_of_several_seeds():
    cases = [_case(seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *x: np.stack(x), *cases)
    found = jax.jit(jax.vmap(_found))(*stacked)
    for i, case in enumerate(cases):
        _close(jax.tree.map(lambda x, i=i: x[i], found), _expected(*case))


def test_only_the_outputs_have_a_gradient():
    outputs, rows, weights = _case()
    zero = jax.grad(lambda rows: weighted_sum(_terms, outputs, rows, weights)[0])(rows)
    np.testing.assert_array_equal(zero, 0.0)


def test_derivatives_of_a_sums_gradient():
    """The Hessian times a direction, forwards over reverse and reverse over reverse."""
    (x, y), rows, (a, b) = _case()
    along = jax.tree.map(lambda z: np.ones_like(z), (x, y))

    def gradient(outputs):
        return jax.grad(lambda o: weighted_sum(_terms, o, rows, (a, b))[0])(outputs)

    expected = a * np.exp(-x) * rows, b * 2 * (1 - y**2) / (1 + y**2) ** 2
    _close(jax.jvp(gradient, ((x, y),), (along,))[1], expected)
    _close(jax.grad(lambda o: sum(map(jnp.sum, gradient(o))))((x, y)), expected)


def test_a_function_of_rows_and_its_derivatives(monkeypatch):
    draw = np.random.default_rng(0).normal
    x, y = draw(size=(MIN_ROWS, 3)).astype(np.float32), draw(size=MIN_ROWS).astype(np.float32)

    def mapped(x, y):
        return map_rows(lambda x, y: {"a": jnp.exp(x), "b": jnp.sum(x, axis=-1) * y}, x, y)

    def gradient(x, y):
        return jax.grad(lambda *z: sum(map(jnp.sum, mapped(*z).values())), argnums=(0, 1))(x, y)

    expected = np.exp(x), x.sum(-1) * y
    slopes = np.exp(x) + y[:, None], x.sum(-1)
    for native in ("1", "0"):
        monkeypatch.setenv("BRAX_NATIVE", native)
        has_kernel = "batch_last" in str(jax.make_jaxpr(lambda *z: mapped(*z))(x, y))
        assert has_kernel == (native == "1")
        _close((mapped(x, y)["a"], mapped(x, y)["b"]), expected)
        _close(gradient(x, y), slopes)
    monkeypatch.setenv("BRAX_NATIVE", "1")
    few = str(jax.make_jaxpr(lambda *z: mapped(*z))(x[1:], y[1:]))
    assert "batch_last" not in few
