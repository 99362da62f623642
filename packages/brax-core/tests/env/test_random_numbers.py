"""Draws that compile quickly are those of `jax.random`."""

import jax
import numpy as np
import pytest

from brax.env import random_numbers


@pytest.mark.parametrize("shape", [(), (1,), (8,), (9,), (3, 5), (2, 0)])
def test_they_are_the_numbers_of_jax_random(shape):
    keys = jax.random.split(jax.random.key(3), 4)
    drawn = jax.vmap(
        lambda key: (
            random_numbers.uniform(key, shape, -2.0, 3.0),
            random_numbers.normal(key, shape),
        )
    )(keys)
    expected = jax.vmap(
        lambda key: (
            jax.random.uniform(key, shape, minval=-2.0, maxval=3.0),
            jax.random.normal(key, shape),
        )
    )(keys)
    for ours, theirs in zip(drawn, expected, strict=True):
        assert ours.shape == (4, *shape) and ours.dtype == theirs.dtype
        # XLA's loops for other lengths round the error function's inverse differently.
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=0)
