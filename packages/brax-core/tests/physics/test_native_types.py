"""Truth values, unsigned integers and indices of all types in translated kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
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


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_quotients_of_known_integers_are_those_of_others(dtype):
    """Towards zero, exact, and with all bits set for a division by zero."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    wanted = {(5, 0): -1, (least, 0): -1, (most, 2): most // 2, (7, 3): 2, (most - 1, 1): most - 1}
    if least:
        wanted |= {(-7, 3): -2, (7, -3): -2, (least, -1): least, (-7, -3): 2}
    with jax.enable_x64(np.dtype(dtype).itemsize == 8):
        numbers = [[dtype(n) for n in pair] for pair in wanted]

        def quotients(x):
            known = [lax.div(jnp.asarray(a), jnp.asarray(b)) for a, b in numbers]
            unknown = [lax.div(x + a, x + b) for a, b in numbers]
            return jnp.stack([x + n for n in known]), jnp.stack(unknown)

        found = native(quotients, np.zeros(BATCH, dtype))
    for mine in found:
        right = np.array([np.asarray(n).astype(dtype) for n in wanted.values()])
        np.testing.assert_array_equal(mine, right[:, None] * np.ones(BATCH, dtype))


LARGE = {np.uint32: 2**32 - 1, np.int64: 2**32, np.uint64: 2**63 + 1, np.int8: 100, np.int16: 9999}
"""For types of indices, numbers beyond the end, of which some are within once they have 32 bits."""


@MEMORY
@pytest.mark.parametrize("dtype", LARGE)
def test_indices_of_every_type_are_clipped_at_the_ends(dtype, in_memory, monkeypatch):
    """The places are those of NumPy's `clip`; updates that are out of range are dropped."""
    keep_in_memory(monkeypatch, in_memory)
    size = 200 if dtype is np.int16 else 20
    # JAX's slices count a negative index from the end, once.
    low = 0 if np.dtype(dtype).kind == "u" else -size - 1
    index = np.array([LARGE[dtype], 0, 3, size - 1, low], dtype)
    # In 64 bits that hold all of them, but for the largest one.
    place = np.array([min(int(i), size) for i in index])
    clipped, within = np.clip(place, 0, size - 1), (place >= 0) & (place < size)
    x = np.arange(size * BATCH, dtype=np.float32).reshape(size, BATCH)

    def read_and_write(x, i):
        dims = lax.GatherDimensionNumbers((), (0,), (0,))
        row = i[None]
        clip, fill = (
            lax.gather(x, row, dims, (1,), mode=mode, fill_value=-7)
            for mode in (lax.GatherScatterMode.CLIP, lax.GatherScatterMode.FILL_OR_DROP)
        )
        to = lax.ScatterDimensionNumbers((), (0,), (0,))
        new = jnp.float32(-1)
        return (
            lax.dynamic_slice(x, (i,), (1,))[0],
            clip,
            fill,
            lax.dynamic_update_slice(x, new[None], (i,)),
            lax.scatter(x, row, new, to, mode=lax.GatherScatterMode.CLIP),
            lax.scatter(x, row, new, to, mode=lax.GatherScatterMode.FILL_OR_DROP),
            lax.dynamic_slice(x, (i,), (2,))[0],
        )

    with jax.enable_x64(np.dtype(dtype).itemsize == 8):
        found = [np.asarray(x) for x in native(read_and_write, x, index)]
    lanes = np.arange(BATCH)
    taken, changed, dropped = x[clipped, lanes], x.copy(), x.copy()
    changed[clipped, lanes] = -1
    dropped[place[within], lanes[within]] = -1
    wanted = taken, taken, np.where(within, taken, -7), changed, changed, dropped
    for mine, right in zip(found, wanted, strict=False):
        np.testing.assert_array_equal(mine, right)
    np.testing.assert_array_equal(found[-1], x[np.clip(place, 0, size - 2), lanes])
