"""Truth values, unsigned integers and indices of all types in translated kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from native_lab import native

from brax.kernels.codegen import cpu

pytestmark = pytest.mark.usefixtures("code_generator")

BATCH = 5

MEMORY = pytest.mark.parametrize("in_memory", [False, True])
"""Unrolled, and with arrays in memory."""


def keep_in_memory(monkeypatch, in_memory):
    """Have kernels keep their arrays in memory."""
    if in_memory:
        monkeypatch.setattr(cpu, "MAX_UNROLLED_ELEMENTS", -1)
        monkeypatch.setattr(cpu, "MIN_LOOPED_ELEMENTS", 2)


@MEMORY
@pytest.mark.parametrize("depth", [2, 12])
def test_a_product_of_truth_values_is_true_where_some_term_is(depth, in_memory, monkeypatch):
    """Against sums of whole numbers, of which many are even."""
    keep_in_memory(monkeypatch, in_memory)
    rng = np.random.default_rng(depth)
    x, y = rng.random((3, depth, BATCH)) < 0.6, rng.random((depth, 4, BATCH)) < 0.6
    (found,) = native(jnp.matmul, x, y)
    count = np.einsum("ijb,jkb->ikb", x.astype(int), y.astype(int))
    assert found.dtype == bool and (count % 2 == 0).sum() > 20
    np.testing.assert_array_equal(found, count > 0)


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8, np.uint32, bool])
def test_reductions_of_nothing_are_numpys(dtype):
    def empty(x):
        none = jnp.zeros((0, 2), dtype)
        every = jnp.bitwise_and.reduce(none), jnp.bitwise_or.reduce(none)
        return *every, jnp.where(x[:2] > 0, x[:2], every[0])

    x = np.zeros((3, BATCH), dtype)
    none = np.zeros((0, 2), dtype)
    wanted = np.bitwise_and.reduce(none), np.bitwise_or.reduce(none)
    for found, right in zip(native(empty, x), (*wanted, wanted[0]), strict=True):
        np.testing.assert_array_equal(found, right[:, None] * np.ones(BATCH, dtype))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_bits_and_signs_of_unsigned_numbers_are_numpys(dtype):
    x = np.array([0, 1, 7, np.iinfo(dtype).max, np.iinfo(dtype).max // 2 + 1], dtype)
    found = native(lambda x: (~x, jnp.sign(x)), x)
    for mine, right in zip(found, (~x, np.sign(x)), strict=True):
        assert mine.dtype == dtype
        np.testing.assert_array_equal(mine, right)
