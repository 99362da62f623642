"""Running statistics against numpy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.errors import ConfigError, ShapeError
from brax.training.acme import running_statistics as rs

update = jax.jit(rs.update)


def _merge(batches):
    state = rs.init_state(jax.ShapeDtypeStruct((3,), jnp.float32))
    for batch in batches:
        state = update(state, jnp.asarray(batch))
    return state


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    return rng.normal([1e3, 0.0, -5.0], [1.0, 1e-3, 20.0], (40, 50, 8, 3)).astype(np.float32)


def test_batches_merge_to_the_statistics_of_all_samples(samples):
    # T90
    state = _merge(samples)
    every = samples.reshape(-1, 3).astype(np.float64)
    np.testing.assert_allclose(state.mean, every.mean(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state.std, every.std(0), rtol=1e-4)
    assert int(state.count) == len(every)


def test_order_and_size_of_the_batches_do_not_matter(samples):
    one, other = _merge(samples), _merge(samples[::-1].reshape(8, 250, 8, 3))
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(one.std, other.std, rtol=1e-5)


@pytest.mark.parametrize(
    ("count", "mean"), [(10**6, 1.0), (3 * 10**8, 1.0), (3 * 10**8, -1e3), (2 * 10**9, 10.0)]
)
def test_late_samples_count_as_much_as_early_ones(count, mean):
    """A late batch of 16 changes the statistics by a hundredth of their last digit.

    The samples in between have mean 1 more and variance 4; the reference merges all in float64.
    """
    # T90
    batches, size = 200_000, 16
    state = rs.init_state(jnp.zeros(1)).replace(
        mean=jnp.full(1, mean),
        variance=jnp.ones(1),
        count=rs.Count(jnp.uint32(count >> 32), jnp.uint32(count & (2**32 - 1))),
    )
    some = np.random.default_rng(0).normal(mean + 1.0, 2.0, (64, size, 1)).astype(np.float32)
    seen = jnp.asarray(some)

    @jax.jit
    def all_of_them(state):
        return jax.lax.fori_loop(
            0, batches, lambda i, state: rs.update(state, seen[i % len(seen)]), state
        )

    state = all_of_them(state)
    share = batches * size / (count + batches * size)
    some = some.astype(np.float64)
    moved = share * (some.mean() - mean)
    variance = 1 - share + share * some.var() + share * (1 - share) * (some.mean() - mean) ** 2
    # Measured, of what they moved: 1e-6, with what rounding left out, and 4e-6 of the variance.
    both = np.float64(state.mean) + np.float64(state.rest.mean)
    np.testing.assert_allclose(both - mean, moved, rtol=1e-5)
    np.testing.assert_allclose(state.mean, both, rtol=1e-7)
    np.testing.assert_allclose(np.float64(state.variance) - 1, variance - 1, rtol=1e-4)
    np.testing.assert_allclose(state.std, np.sqrt(variance), rtol=1e-6)
    assert int(state.count) == count + batches * size


@pytest.mark.parametrize(
    ("start", "amount"), [(2**32 - 5, 10), (2**32 - 1, 1), (7 * 2**32 + 3, 2**32 - 1), (0, 0)]
)
def test_the_count_is_exact_beyond_32_bits(start, amount):
    # T90
    count = rs.Count(jnp.uint32(start >> 32), jnp.uint32(start & (2**32 - 1)))
    assert int(count.plus(jnp.uint32(amount))) == start + amount


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_samples_that_are_not_finite_never_enter(samples, bad):
    spoilt = samples[0].copy()
    spoilt[0, 0, 1] = spoilt[3, 2, 0] = bad
    good = samples[0].reshape(-1, 3)[np.isfinite(spoilt).reshape(-1, 3).all(1)]
    state = _merge([spoilt])
    assert int(state.count) == len(good) == 398
    np.testing.assert_allclose(state.mean, good.astype(np.float64).mean(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state.std, good.astype(np.float64).std(0), rtol=1e-4)


def test_nothing_finite_changes_nothing():
    state = _merge([np.full((4, 3), np.nan, np.float32)])
    assert int(state.count) == 0
    np.testing.assert_array_equal(state.mean, 0.0)
    np.testing.assert_array_equal(state.std, 1.0)


@pytest.mark.parametrize("mode", ["welford", "ema"])
def test_a_batch_moves_the_statistics_by_its_share_of_all_samples(samples, mode):
    """The definition, in float64: a = n/N; mean by a d, variance by a (v - V + (1 - a) d^2)."""
    state = rs.init_state(jnp.zeros(3), std_eps=0.5, mode=mode)
    mean, variance, count = np.zeros(3), np.zeros(3), 0
    flat = samples.reshape(-1, 3).astype(np.float64)
    for batch in np.split(flat, np.cumsum([5, 1, 300, 40, 2000])):
        count += len(batch)
        share, delta = len(batch) / count, batch.mean(0) - mean
        mean = mean + share * delta
        variance = variance + share * (batch.var(0) - variance + (1 - share) * delta**2)
        state = update(state, jnp.asarray(batch, jnp.float32))
        np.testing.assert_allclose(state.mean, mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(state.std, np.sqrt(variance) + 0.5, rtol=1e-4)
    np.testing.assert_allclose(mean, flat.mean(0))
    np.testing.assert_allclose(variance, flat.var(0))


def test_batches_of_a_mapped_axis_are_merged(samples):
    """One member has a sample that is not finite; all members get the same statistics."""
    parts = samples[:4].reshape(4, -1, 3).copy()
    parts[2, 5, 0] = np.nan
    start = rs.init_state(jnp.zeros(3))
    found = jax.vmap(lambda x: rs.update(start, x, pmap_axis_name="i"), axis_name="i")(parts)
    every = parts.reshape(-1, 3).astype(np.float64)
    every = every[np.isfinite(every).all(-1)]
    assert found.count.low.tolist() == [len(every)] * 4
    for mean, std in zip(found.mean, found.std, strict=True):
        np.testing.assert_allclose(mean, every.mean(0), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(std, every.std(0), rtol=1e-4)


def test_an_unknown_mode_is_rejected():
    with pytest.raises(ConfigError, match=r"mode='emma' must be welford or ema.*'ema'"):
        rs.init_state(jnp.zeros(1), mode="emma")


def test_weight_zero_leaves_a_sample_out(samples):
    batch, weights = samples[0], np.ones((50, 8), np.float32)
    weights[10:] = 0
    some = update(rs.init_state(jnp.zeros(3)), jnp.asarray(batch), weights=jnp.asarray(weights))
    np.testing.assert_allclose(some.mean, _merge([batch[:10]]).mean, rtol=1e-5)
    assert int(some.count) == 80


def test_rows_merge_to_the_statistics_of_all_their_samples(samples):
    """Statistics by rows are those of all samples of the rows.

    Some rows end early and one has no sample. Samples that are not finite are left out. Leaves may
    have more axes, or be integers.
    """
    rng = np.random.default_rng(1)
    steps = samples[:, :, 0]
    ends = rng.integers(0, 41, 50)
    ends[3] = 0
    active = (np.arange(40)[:, None] < ends).astype(np.float32)
    steps[5, 7, 1], steps[9, 8] = np.nan, np.inf
    whole = rng.integers(0, 9, (40, 50, 2, 2)).astype(np.int32)
    state = rs.init_state(
        {"a": jnp.zeros(3), "b": jax.ShapeDtypeStruct((2, 2), jnp.int32)},
    )
    before = {"a": samples[0, :, 1], "b": whole[0] + 100}
    state = update(state, before)
    rows = rs.rows_of({"a": steps[0], "b": whole[0]})
    add = jax.jit(rs.update_rows)
    for x, y, weights in zip(steps, whole, active, strict=True):
        rows = add(rows, {"a": x, "b": y}, weights)
    merged = jax.jit(rs.update_by_rows)(state, rows)
    used = (active > 0) & np.isfinite(steps).all(-1)
    assert int(merged.count) == 50 + used.sum()
    for name, seen, first in (("a", steps, before["a"]), ("b", whole, before["b"])):
        every = np.concatenate([first, seen[used]]).astype(np.float64)
        np.testing.assert_allclose(merged.mean[name], every.mean(0), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(merged.std[name], every.std(0), rtol=1e-5)
    kept = rs.update_by_rows(state, rows, until_count=50)
    assert int(kept.count) == 50
    jax.tree.map(np.testing.assert_array_equal, kept.mean, state.mean)
    assert int(rs.update_by_rows(state, rows, until_count=51).count) == int(merged.count)


def test_rows_keep_their_types_in_double_precision():
    """So that they can be carried through a loop."""
    with jax.enable_x64(True):
        batch = {
            name: jnp.ones((2, 3), kind)
            for name, kind in (("a", jnp.float32), ("b", jnp.float64), ("c", jnp.int32))
        }
        rows = rs.rows_of(batch)
        added = rs.update_rows(rows, batch, jnp.ones(2))
        merged = rs.update_by_rows(rs.init_state(jax.tree.map(lambda x: x[0], batch)), added)
    assert [x.dtype for x in jax.tree.leaves(added)] == [x.dtype for x in jax.tree.leaves(rows)]
    assert merged.count.low.dtype == jnp.uint32 and merged.mean["b"].dtype == jnp.float64


def test_a_constant_feature_gets_the_least_deviation():
    state = _merge([np.full((10, 3), 2.5, np.float32)])
    np.testing.assert_allclose(state.std, 1e-6)


def test_normalize_and_back(samples):
    state, batch = _merge(samples), jnp.asarray(samples[0])
    scaled = rs.normalize(batch, state)
    assert abs(float(scaled[..., 0].mean())) < 0.2
    assert float(scaled[..., 2].std()) == pytest.approx(1.0, abs=0.1)
    np.testing.assert_allclose(rs.denormalize(scaled, state), batch, rtol=1e-5, atol=1e-5)
    assert float(jnp.abs(rs.normalize(batch, state, max_abs_value=0.5)).max()) == 0.5


def test_trees_share_one_count():
    nest = {"a": jnp.zeros(2), "b": jnp.zeros(())}
    batch = {"a": jnp.ones((5, 2)), "b": jnp.arange(5.0).at[0].set(jnp.nan)}
    state = update(rs.init_state(nest), batch)
    assert int(state.count) == 4
    assert float(state.mean["b"]) == pytest.approx(2.5)


def test_whole_numbers_have_statistics_and_stay_as_they_are():
    batch = {"id": jnp.array([[1], [2], [6]]), "x": jnp.zeros((3, 2))}
    start = rs.init_state(jax.tree.map(lambda x: x[0], batch))
    state = jax.lax.fori_loop(0, 2, lambda _, s: rs.update(s, batch), start)
    assert state.mean["id"].tolist() == [3.0] and int(state.count) == 6
    assert rs.normalize(batch, state)["id"].tolist() == [[1], [2], [6]]


@pytest.mark.parametrize("count", [5, 2**31, 2**40])
def test_statistics_stop_at_any_count(count):
    state = rs.init_state(jnp.zeros(1))
    for x in (1.0, 3.0):
        batch = jnp.full((5, 1), x)
        state = jax.jit(lambda s, b: rs.update(s, b, until_count=count))(state, batch)
    assert state.mean.tolist() == [1.0 if count == 5 else 2.0]


def test_a_batch_of_another_shape_is_refused():
    with pytest.raises(ShapeError, match=r"batch has shape \(5, 4\); expected \(5, 3\)"):
        rs.update(rs.init_state(jnp.zeros(3)), jnp.zeros((5, 4)))
