"""Comparison of the returns of several runs: interquartile means and their confidence intervals.

Source: Agarwal et al. 2021 (2108.13264), for one task.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

REPETITIONS = 50_000
"""Number of bootstrap resamples."""

Scores = NDArray[np.float64]


class Estimate(NamedTuple):
    """A number with its 95 % confidence interval."""

    value: float
    low: float
    """Lower bound; NaN if there is only one run."""
    high: float


def interquartile_mean(scores: Scores) -> Scores:
    """Return the mean of the middle half along the last axis.

    A quarter of the scores, rounded down, is left out at each end.
    """
    cut = scores.shape[-1] // 4
    return np.mean(np.sort(scores, axis=-1)[..., cut : scores.shape[-1] - cut], axis=-1)


def _wins(scores: Scores, others: Scores) -> Scores:
    """Return 1 for each pair whose score is above the other, 1/2 if equal, (scores, others)."""
    return (scores[:, None] > others) + 0.5 * (scores[:, None] == others)


def estimate(scores: Scores) -> Estimate:
    """Return the interquartile mean of runs, (runs,), with its bootstrap interval."""
    return _interval(
        interquartile_mean(scores), interquartile_mean(_bootstrap_samples(scores, 0)), scores
    )


def difference(scores: Scores, others: Scores) -> Estimate:
    """Return the difference of the interquartile means of two groups of runs."""
    value = interquartile_mean(scores) - interquartile_mean(others)
    # The groups are resampled independently, with different seeds.
    drawn = interquartile_mean(_bootstrap_samples(scores, 0)) - interquartile_mean(
        _bootstrap_samples(others, 1)
    )
    return _interval(value, drawn, scores, others)


def improvement(scores: Scores, others: Scores) -> Estimate:
    """Return the probability that a run is above one of the others; equal scores count half."""
    wins = _wins(scores, others)
    # A resample is the number of times that it has each run: it needs no pairs of its own, whose
    # number, repetitions * runs * runs, would fill the memory.
    times, of_others = (_bootstrap_counts(len(x), i) for i, x in enumerate((scores, others)))
    drawn = np.sum((times @ wins) * of_others, axis=1) / wins.size
    return _interval(np.asarray(np.mean(wins)), drawn, scores, others)


def _bootstrap_samples(scores: Scores, seed: int) -> Scores:
    """Return resamples with replacement, of the same size as the scores, (repetitions, runs)."""
    return scores[_bootstrap_indices(len(scores), seed)]


def _bootstrap_indices(runs: int, seed: int) -> NDArray[np.intp]:
    """Return the runs that make up each resample, (repetitions, runs)."""
    # A fixed seed: the same runs give the same interval.
    return np.random.default_rng(seed).choice(runs, (REPETITIONS, runs))


def _bootstrap_counts(runs: int, seed: int) -> Scores:
    """Return how many times each resample has each run, (repetitions, runs)."""
    # Each resample counts into a row of its own.
    place = _bootstrap_indices(runs, seed) + runs * np.arange(REPETITIONS)[:, None]
    counts = np.bincount(place.ravel(), minlength=REPETITIONS * runs)
    return counts.reshape(REPETITIONS, runs).astype(np.float64)


def _interval(value: Scores, drawn: Scores, *samples: Scores) -> Estimate:
    """Return the percentile interval if every sample has at least two scores, else NaN bounds."""
    if min(len(sample) for sample in samples) < 2:
        return Estimate(float(value), float("nan"), float("nan"))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Estimate(float(value), float(low), float(high))
