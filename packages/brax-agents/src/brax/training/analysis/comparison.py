"""What the returns of several runs tell: interquartile means, and how sure they are.

Source: Agarwal et al. 2021 (2108.13264), for one task.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

REPETITIONS = 50_000
"""Resamples of a bootstrap."""

Scores = NDArray[np.float64]


class Estimate(NamedTuple):
    """A number, and the interval that it is in with a confidence of 95 %."""

    value: float
    low: float
    """Not a number where one run alone tells nothing of others."""
    high: float


def interquartile_mean(scores: Scores) -> Scores:
    """Mean of the middle half along the last axis: a quarter of the scores, rounded down, is left
    out at each end."""
    cut = scores.shape[-1] // 4
    return np.mean(np.sort(scores, axis=-1)[..., cut : scores.shape[-1] - cut], axis=-1)


def probability_of_improvement(scores: Scores, others: Scores) -> Scores:
    """How likely one of the first is above one of the others; equal counts half."""
    above = scores[..., :, None] > others[..., None, :]
    equal = scores[..., :, None] == others[..., None, :]
    return np.mean(above + 0.5 * equal, axis=(-2, -1))


def estimate(scores: Scores) -> Estimate:
    """The interquartile mean of runs, (runs,), with its bootstrap interval."""
    return _interval(
        interquartile_mean(scores), interquartile_mean(_bootstrap_samples(scores, 0)), scores
    )


def difference(scores: Scores, others: Scores) -> Estimate:
    """How far the interquartile mean of runs is above that of others."""
    value = interquartile_mean(scores) - interquartile_mean(others)
    drawn = interquartile_mean(_bootstrap_samples(scores, 0)) - interquartile_mean(
        _bootstrap_samples(others, 1)
    )
    return _interval(value, drawn, scores, others)


def improvement(scores: Scores, others: Scores) -> Estimate:
    """The probability that a run is above one of the others."""
    value = probability_of_improvement(scores, others)
    drawn = probability_of_improvement(_bootstrap_samples(scores, 0), _bootstrap_samples(others, 1))
    return _interval(value, drawn, scores, others)


def _bootstrap_samples(scores: Scores, seed: int) -> Scores:
    """As many draws with replacement as there are scores, many times, (repetitions, runs)."""
    return np.random.default_rng(seed).choice(scores, (REPETITIONS, len(scores)))


def _interval(value: Scores, drawn: Scores, *samples: Scores) -> Estimate:
    """The percentile interval, where every sample has at least two scores."""
    if min(len(sample) for sample in samples) < 2:
        return Estimate(float(value), float("nan"), float("nan"))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Estimate(float(value), float(low), float(high))
