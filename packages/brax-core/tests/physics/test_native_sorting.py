"""Sorts in translated kernels, beside NumPy's."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from native_lab import native

from brax.kernels.codegen import cpu
from brax.kernels.codegen.lowering.sorting import comparators

pytestmark = pytest.mark.usefixtures("code_generator")


@pytest.mark.parametrize("count", range(1, 13))
def test_the_network_sorts_all_zeros_and_ones(count):
    """Knuth's 0-1 principle: a network that sorts those sorts everything."""
    rows = np.array(list(itertools.product((0, 1), repeat=count)))
    for low, high in comparators(count):
        rows[:, [low, high]] = np.sort(rows[:, [low, high]], axis=1)
    assert (np.diff(rows, axis=1) >= 0).all()


def test_the_network_has_few_comparators():
    assert [len(list(comparators(n))) for n in (2, 4, 8, 16, 128)] == [1, 5, 19, 63, 1471]


def numbers(count, batch, dtype):
    """Numbers with equal ones, infinities, zeros of both signs and NaN among them."""
    rng = np.random.default_rng(count)
    x = np.round(rng.normal(size=(count, batch)) * 3) / 2
    odd = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], size=x.shape)
    return np.where(rng.random(x.shape) < 0.2, odd, x).astype(dtype)


@pytest.mark.parametrize("count", [2, 7, pytest.param(33, marks=pytest.mark.slow)])
def test_sorts_of_one_and_several_arrays(count):
    x, y = numbers(count, 21, np.float32), numbers(count, 21, np.float32)[::-1].copy()
    whole = (np.arange(count * 21).reshape(count, 21) * 7919 % 13 - 6).astype(np.int32)

    def several(x, y, whole):
        return (
            jnp.sort(x),
            jnp.sort(x, descending=True),
            jnp.argsort(x),
            jnp.sort(whole),
            *lax.sort((x, y, whole), num_keys=1),
            *lax.sort((x, y, whole), num_keys=2),
            x[jnp.argsort(whole, stable=False)].sum(),
            jnp.median(jnp.where(jnp.isfinite(x), x, 0)),
        )

    found = native(several, x, y, whole)
    order = np.argsort(x, axis=0, kind="stable")
    both = np.stack([np.lexsort((y[:, k], x[:, k])) for k in range(21)], axis=1)
    wanted = [
        np.sort(x, axis=0),
        -np.sort(-x, axis=0),
        order,
        np.sort(whole, axis=0),
        *(np.take_along_axis(a, order, 0) for a in (x, y, whole)),
        *(np.take_along_axis(a, both, 0) for a in (x, y, whole)),
        x.sum(0),
        np.median(np.where(np.isfinite(x), x, 0), axis=0),
    ]
    wanted[1] = np.where(np.isnan(wanted[1]), np.nan, wanted[1])
    for i, (got, want) in enumerate(zip(found, wanted, strict=True)):
        if i == 1:  # NaN first, as XLA has it
            want = np.asarray(jax.jit(lambda x: jnp.sort(x, axis=0, descending=True))(x))
        if i == 10:  # the sum of whatever order
            assert (np.isnan(got) == np.isnan(want)).all()
            continue
        np.testing.assert_array_equal(got, want, err_msg=str(i))


def test_a_stable_sort_keeps_the_order_of_zeros_of_both_signs():
    x = np.array([[0, 0, -0.0, -1], [-0.0, 0, 1, 0], [0, -0.0, 0, -0.0]], np.float32).T
    # No zero moves past another: each column below has its zeros as above, between the rest.
    wanted = np.array([[-1, 0, 0, -0.0], [-0.0, 0, 0, 1], [0, -0.0, 0, -0.0]], np.float32).T
    (got,) = native(jnp.sort, x)
    np.testing.assert_array_equal(np.asarray(got).view(np.int32), wanted.view(np.int32))


def test_sorts_in_double_precision_and_of_other_types():
    with jax.enable_x64(True):
        x = numbers(11, 3, np.float64)
        truth, small = x > 0, np.nan_to_num(x).clip(-100, 100).astype(np.int8)
        found = native(
            lambda *a: [jnp.sort(v) for v in a] + [jnp.argsort(v) for v in a], x, truth, small
        )
    for got, want in zip(found, (x, truth, small), strict=False):
        np.testing.assert_array_equal(got, np.sort(want, axis=0))
    for got, want in zip(found[3:], (x, truth, small), strict=True):
        np.testing.assert_array_equal(got, np.argsort(want, axis=0, kind="stable"))


def test_many_sorts_of_a_long_kernel_are_a_loop(monkeypatch):
    monkeypatch.setattr(cpu, "MAX_UNROLLED_ELEMENTS", -1)
    monkeypatch.setattr(cpu, "MIN_LOOPED_ELEMENTS", 4)
    x = np.random.default_rng(0).normal(size=(10, 9, 20)).astype(np.float32)
    x.round(1, out=x)
    found = native(lambda x: (jnp.sort(x, axis=1), jnp.argsort(x, axis=1)), x)
    np.testing.assert_array_equal(found[0], np.sort(x, axis=1))
    np.testing.assert_array_equal(found[1], np.argsort(x, axis=1, kind="stable"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [4, 21])
def test_the_largest_numbers_are_found_in_total_order(count, dtype):
    """By their bits as whole numbers: -NaN, numbers, -0, 0, numbers, NaN; beside XLA's too."""
    x = numbers(count, 35, dtype)
    # The sign of NaN changes too.
    x[::3] = np.negative(x[::3])
    whole = np.dtype(f"i{x.itemsize}")
    bits = x.view(whole)
    order = np.where(bits < 0, bits ^ np.iinfo(whole).max, bits).astype(object)
    with jax.enable_x64(x.itemsize == 8):
        values, places = native(lambda x: lax.top_k(x, 3, axis=0), x)
        by_xla = lax.top_k(jnp.asarray(x), 3, axis=0)[1]
    wanted = np.argsort(-order, axis=0, kind="stable")[:3]
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(by_xla, wanted)
    right = np.take_along_axis(bits, wanted, axis=0)
    np.testing.assert_array_equal(np.asarray(values).view(whole), right)


def test_the_derivative_of_a_sort_is_translated_too():
    x = np.random.default_rng(0).normal(size=(12, 9)).astype(np.float32)
    weights = jnp.arange(12.0)
    (got,) = native(jax.grad(lambda x: (jnp.sort(x) * weights).sum()), x)
    np.testing.assert_array_equal(got, np.argsort(np.argsort(x, axis=0), axis=0))
