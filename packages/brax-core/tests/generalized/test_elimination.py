"""Systems of equations that are not symmetric, for which no LAPACK is called."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.generalized.linalg.elimination import solve

N, BATCH = 5, 3


@pytest.fixture
def systems():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(2, N, N, BATCH)) + 4.0 * np.eye(N)[..., None]
    return matrix, rng.normal(size=(2, N, BATCH))


def theirs(matrix, right):
    found = np.linalg.solve(np.moveaxis(matrix, -1, 1), np.moveaxis(right, -1, 1)[..., None])
    return np.moveaxis(found[..., 0], 1, -1)


def test_the_solution_is_numpys(systems):
    matrix, right = systems
    np.testing.assert_allclose(solve(*map(jnp.asarray, systems)), theirs(matrix, right), rtol=1e-4)
    one = matrix[:, :1, :1], right[:, :1]
    np.testing.assert_allclose(solve(*map(jnp.asarray, one)), theirs(*one), rtol=1e-5)


def test_a_singular_matrix_spoils_its_own_environment_alone(systems):
    matrix, right = systems
    matrix[0, 1, :, 2] = matrix[0, 0, :, 2] = 0.0
    found = np.isfinite(solve(jnp.asarray(matrix), jnp.asarray(right)))
    assert not found[0, :, 2].any()
    assert found.sum() == found.size - N


def test_derivatives_are_those_of_the_solution(systems):
    """With A x = b, a weight w and A' y = w: y by b, and -y x' by A."""
    matrix, right = systems
    weight = np.random.default_rng(1).normal(size=right.shape)
    by_matrix, by_right = jax.grad(
        lambda a, b: jnp.sum(solve(a, b) * weight), argnums=(0, 1)
    )(*map(jnp.asarray, systems))  # fmt: skip
    x, y = theirs(matrix, right), theirs(np.swapaxes(matrix, 1, 2), weight)
    np.testing.assert_allclose(by_right, y, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(by_matrix, -y[:, :, None] * x[:, None], rtol=1e-3, atol=1e-5)
