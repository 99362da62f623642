"""Interquartile means and their intervals against arithmetic and enumeration."""

import itertools
import math
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from brax.training.analysis import comparison

NINE = np.array([90.0, 1.0, 5.0, 2.0, 7.0, 4.0, 8.0, 3.0, -50.0])


def test_the_middle_half():
    """The middle four of eight scores count; of nine, two are left out at each end."""
    assert comparison.interquartile_mean(np.arange(1.0, 9.0)) == (3 + 4 + 5 + 6) / 4
    assert comparison.interquartile_mean(NINE) == (2 + 3 + 4 + 5 + 7) / 5
    assert comparison.interquartile_mean(np.array([1.0, 2.0, 9.0])) == 4.0


def test_it_is_scipy_s_trimmed_mean():
    scores = np.random.default_rng(0).normal(size=(20, 13))
    got = comparison.interquartile_mean(scores)
    np.testing.assert_allclose(got, stats.trim_mean(scores, 0.25, axis=1))


def test_the_interval_is_that_of_all_resamples():
    """Four scores have 256 resamples of equal probability, so no draw is needed."""
    scores = np.array([1.0, 2.0, 4.0, 9.0])
    every = np.array(list(itertools.product(scores, repeat=4)))
    means = comparison.interquartile_mean(every)
    low, high = np.quantile(means, [0.025, 0.975], method="inverted_cdf")
    found = comparison.estimate(scores)
    assert found.value == 3.0
    assert found.low == pytest.approx(low) and found.high == pytest.approx(high)


def test_one_run_tells_nothing_of_others():
    found = comparison.estimate(np.array([3.0]))
    assert found.value == 3.0 and math.isnan(found.low) and math.isnan(found.high)
    assert math.isnan(comparison.difference(np.array([3.0]), NINE).low)


def test_the_probability_of_improvement_counts_pairs():
    """In six pairs, the first is above in three and equal in one."""
    found = comparison.improvement(np.array([2.0, 5.0]), np.array([1.0, 2.0, 9.0]))
    assert found.value == pytest.approx((3 + 0.5) / 6)
    assert found.low < found.value < found.high


def test_the_interval_of_the_probability_is_that_of_all_resamples():
    """Two groups of three runs have 27 resamples each, so no draw is needed."""
    first, second = np.array([2.0, 5.0, 7.0]), np.array([1.0, 5.0, 6.0])
    every = [np.array(list(itertools.product(group, repeat=3))) for group in (first, second)]
    x, y = every[0][:, None, :, None], every[1][None, :, None, :]
    probabilities = np.mean((x > y) + 0.5 * (x == y), axis=(2, 3))
    low, high = np.quantile(probabilities, [0.025, 0.975], method="inverted_cdf")
    found = comparison.improvement(first, second)
    assert found.low == pytest.approx(low) and found.high == pytest.approx(high)


def test_groups_of_a_hundred_runs_fit_into_memory():
    """All pairs of all resamples would take 4 GB for each array."""
    scores = np.random.default_rng(0).normal(size=(2, 100))
    tracemalloc.start()
    found = comparison.improvement(*scores)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 5e8
    assert found.low < found.value < found.high


def test_the_difference_and_its_sign():
    better = comparison.difference(NINE + 10.0, NINE)
    assert better.value == pytest.approx(10.0)
    assert comparison.difference(NINE, NINE + 10.0).value == pytest.approx(-10.0)
    assert better.low < 10.0 < better.high
