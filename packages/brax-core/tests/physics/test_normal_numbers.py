"""Normal numbers that a kernel draws, against the inverse error function in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from brax.kernels.normal_numbers import normal
from brax.kernels.rows import MIN_ROWS


def _has_kernel(*arguments):
    return "batch_last" in str(
        jax.make_jaxpr(lambda key: normal(key, *arguments[1:]))(arguments[0])
    )


@pytest.mark.parametrize("shape", [(1, 1_000_000), (8, 2560), (3, MIN_ROWS + 5)])
def test_numbers_are_those_of_jax_and_more_exact(shape):
    key = jax.random.key(3)
    assert _has_kernel(key, *shape)
    found = np.asarray(jax.jit(normal, static_argnums=(1, 2))(key, *shape))
    low = np.nextafter(np.float32(-1), np.float32(0))
    uniform = np.float64(jax.random.uniform(key, shape, minval=low, maxval=1))
    expected = np.sqrt(2) * special.erfinv(uniform)
    # In units of the last place; measured is 4.3, and 92 for JAX's own numbers.
    assert np.max(abs(found - expected) / np.spacing(abs(np.float32(expected)))) < 6


def test_several_keys_at_once():
    keys = jax.random.split(jax.random.key(0), 3)
    found = jax.jit(jax.vmap(lambda key: normal(key, 2, MIN_ROWS)))(keys)
    for key, mine in zip(keys, found, strict=True):
        np.testing.assert_array_equal(mine, normal(key, 2, MIN_ROWS))


def test_old_keys_are_new_keys():
    new = normal(jax.random.key(5), 2, MIN_ROWS)
    np.testing.assert_array_equal(normal(jax.random.PRNGKey(5), 2, MIN_ROWS), new)


def test_where_jax_draws(monkeypatch):
    key, rows = jax.random.key(1), MIN_ROWS
    assert _has_kernel(key, 2, rows)
    assert not _has_kernel(key, 2, rows - 1)
    assert not _has_kernel(key, 2, rows, jnp.bfloat16)
    assert not _has_kernel(jax.random.key(1, impl="rbg"), 2, rows)
    with jax.threefry_partitionable(False):
        assert not _has_kernel(key, 2, rows)
    monkeypatch.setenv("BRAX_NATIVE", "0")
    assert not _has_kernel(key, 2, rows)
    expected = jax.random.normal(key, (2, rows))
    np.testing.assert_array_equal(normal(key, 2, rows), expected)
