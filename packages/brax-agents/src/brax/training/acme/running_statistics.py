"""Mean and standard deviation of all samples so far, updated batch by batch."""

from typing import Any

import jax
import jax.numpy as jnp

from brax.base import Base, dataclass, static
from brax.errors import ConfigError, ShapeError, closest

_WORD = 2.0**32

_LEAST_STD, _GREATEST_STD = 1e-6, 1e6

MODES = ("welford", "ema")
"""Google's words for two forms of the same statistics. Both have the form of `ema` here."""


@dataclass
class Count(Base):
    """A count of samples, exact up to 2^64: `high * 2^32 + low`."""

    high: jax.Array
    """Upper half, uint32, shape ()."""
    low: jax.Array
    """Lower half, uint32, shape ()."""

    def plus(self, amount: jax.Array) -> "Count":
        """Add a number of samples below 2^32, a scalar."""
        low = self.low + amount.astype(jnp.uint32)
        # An unsigned sum that is below one of its terms has overflowed: carry one.
        return Count(self.high + (low < self.low).astype(jnp.uint32), low)

    def to_float(self) -> jax.Array:
        """Return the count, rounded to float32, shape ()."""
        return self.high.astype(jnp.float32) * _WORD + self.low.astype(jnp.float32)

    def __int__(self) -> int:
        """Return the exact count, on the host."""
        return (int(self.high) << 32) + int(self.low)


@dataclass
class NestedMeanStd(Base):
    """The statistics that `normalize` needs."""

    mean: Any
    """Mean of each feature, a tree like one observation."""
    std: Any
    """Standard deviation of each feature, clipped away from zero."""


@dataclass
class Rest(Base):
    """The rounding errors of the statistics so far, to be added to them.

    After millions of samples, a batch changes the statistics by less than their last digit.
    """

    mean: Any
    """Rounding error of the mean."""
    variance: Any
    """Rounding error of the variance."""


@dataclass
class RunningStatisticsState(NestedMeanStd):
    """Statistics of all samples so far."""

    variance: Any
    """Variance of each feature. It is stored in place of the sum of squares, which would lose
    digits as the count grows.
    """
    rest: Rest
    """Rounding errors to be added to mean and variance."""
    count: Count
    """Number of samples."""
    std_eps: float = static(default=0.0)
    """Added to the standard deviations."""


@dataclass
class RowStatistics(Base):
    """Statistics of each row of some batches by itself.

    Sums over rows in every step would make the devices that share the rows wait for each other.
    """

    origin: Any
    """A tree like one sample, which means are relative to."""
    number: jax.Array
    """Number of samples of each row, float32, (rows,)."""
    mean: Any
    """Mean of the samples minus the origin, leaves (rows, ...)."""
    variance: Any
    """Variance of the samples, leaves (rows, ...)."""


def init_state(nest: object, std_eps: float = 0.0, mode: str = "welford") -> RunningStatisticsState:
    """Return the statistics of no samples: mean 0, standard deviation 1.

    Args:
        nest: tree of arrays or of anything with a shape and a dtype, shaped like one sample.
        std_eps: added to the standard deviations.
        mode: `welford` or `ema`, which give the same statistics.

    Raises:
        ConfigError: if the mode is neither.
    """
    if mode not in MODES:
        raise ConfigError(f"mode={mode!r} must be {' or '.join(MODES)}.{closest(str(mode), MODES)}")
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, _real(x.dtype)), nest)
    ones = jax.tree.map(jnp.ones_like, zeros)
    return RunningStatisticsState(
        mean=zeros,
        std=ones,
        variance=zeros,
        rest=Rest(zeros, zeros),
        count=Count(jnp.zeros((), jnp.uint32), jnp.zeros((), jnp.uint32)),
        std_eps=float(std_eps),
    )


def update(
    state: RunningStatisticsState,
    batch: object,
    *,
    weights: jax.Array | None = None,
    std_min_value: float = _LEAST_STD,
    std_max_value: float = _GREATEST_STD,
    pmap_axis_name: str | None = None,
    until_count: int | None = None,
) -> RunningStatisticsState:
    """Merge a batch into the statistics; samples that are not finite are left out.

    With `n` samples of mean `m` and variance `v`, `N` samples in all, and `a = n / N`, the mean
    moves by `a (m - mean)` and the variance by `a (v - variance + (1 - a) (m - mean)^2)`. The
    result is the mean and the variance of all samples.

    Args:
        state: statistics so far.
        batch: tree of samples; each leaf has the leading batch axes, then the feature's shape.
        weights: 0 or 1 for each sample, in the shape of the batch axes; 0 leaves it out.
        std_min_value: lower bound of the standard deviation.
        std_max_value: upper bound of the standard deviation.
        pmap_axis_name: axis of `jax.pmap` or `jax.vmap` whose batches are merged together.
        until_count: number of samples after which the statistics stay fixed.

    Returns:
        The statistics of old and new samples together.

    Raises:
        ShapeError: if the batch does not fit the statistics.

    Source: Chan, Golub, LeVeque (1979), pairwise merge of means and variances, with compensated
    sums (Kahan 1965). The batch's own variance is computed in two passes about a sample, so that a
    large mean costs no digits.
    """
    axes = _batch_axes(state.mean, batch)
    valid = _finite_samples(batch, axes)
    if weights is not None:
        valid = valid & (weights > 0)
    if until_count is not None:
        valid = valid & (state.count.to_float() < float(until_count))
    number = jnp.sum(valid, dtype=jnp.uint32)
    moments = jax.tree.map(
        lambda mean, x: _moments(x.astype(mean.dtype), valid, number), state.mean, batch
    )
    if pmap_axis_name is not None:
        number, moments = _over_axis(state.mean, number, moments, pmap_axis_name)
    return _merged(state, number, moments, std_min_value, std_max_value)


def rows_of(batch: object) -> RowStatistics:
    """Return the statistics of no samples, for rows like those of a batch, leaves (rows, ...)."""
    rows = jax.tree.leaves(batch)[0].shape[0]
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, _real(x.dtype)), batch)
    # Means are relative to the first sample, so that a large mean costs no digits of the variance.
    origin = jax.tree.map(
        lambda zero, x: jnp.nan_to_num(x[0].astype(zero.dtype), posinf=0.0, neginf=0.0),
        zeros,
        batch,
    )
    return RowStatistics(origin, jnp.zeros(rows, jnp.float32), zeros, zeros)


def update_rows(rows: RowStatistics, batch: object, weights: jax.Array) -> RowStatistics:
    """Add one sample to each row, except those that are not finite or have weight 0, (rows,).

    Source: Welford (1962).
    """
    valid = _finite_samples(batch, (0,)) & (weights > 0)
    number = rows.number + valid
    shares = valid / jnp.maximum(number, 1.0)

    def add(
        origin: jax.Array, mean: jax.Array, variance: jax.Array, x: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        share = _along_rows(shares, mean)
        # A sample that is not finite must not reach the sums, not even times zero.
        delta = jnp.where(share > 0, x - origin - mean, 0.0)
        return mean + share * delta, variance + share * (delta**2 * (1.0 - share) - variance)

    added = jax.tree.map(add, rows.origin, rows.mean, rows.variance, batch)
    mean, variance = jax.tree.transpose(jax.tree.structure(batch), None, added)
    return rows.replace(number=number, mean=mean, variance=variance)


def update_by_rows(
    state: RunningStatisticsState,
    rows: RowStatistics,
    *,
    until_count: int | None = None,
) -> RunningStatisticsState:
    """Merge the samples of all rows, fewer than 2^32, into the statistics.

    Args:
        state: statistics so far.
        rows: statistics of the rows.
        until_count: number of earlier samples from which on nothing is merged.
    """
    number = jnp.sum(rows.number.astype(jnp.uint32), dtype=jnp.uint32)
    if until_count is not None:
        number = jnp.where(state.count.to_float() < float(until_count), number, 0)
    shares = rows.number / jnp.maximum(jnp.sum(rows.number), 1.0)

    def of_all(
        origin: jax.Array, mean: jax.Array, variance: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        share = _along_rows(shares, mean)
        offset = jnp.sum(share * mean, axis=0)
        # The variance of all is the mean of the variances plus the variance of the means.
        return origin + offset, jnp.sum(share * (variance + (mean - offset) ** 2), axis=0)

    moments = jax.tree.map(of_all, rows.origin, rows.mean, rows.variance)
    return _merged(state, number, moments, _LEAST_STD, _GREATEST_STD)


def _along_rows(numbers: jax.Array, like: jax.Array) -> jax.Array:
    """Return numbers of rows, (rows,), with the dimensions and type of leaves (rows, ...)."""
    return numbers.reshape(numbers.shape + (1,) * (like.ndim - 1)).astype(like.dtype)


def _merged(
    state: RunningStatisticsState,
    number: jax.Array,
    moments: object,
    std_min_value: float,
    std_max_value: float,
) -> RunningStatisticsState:
    """Return the statistics merged with `number` more samples of these means and variances."""
    count = state.count.plus(number)
    new_share = number.astype(jnp.float32) / jnp.maximum(count.to_float(), 1.0)

    def merge(
        mean: jax.Array, variance: jax.Array, rest: Rest, new: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array, Rest]:
        batch_mean, batch_variance = new
        # Chan et al. 1979: M2 = M2_a + M2_b + delta^2 n_a n_b / n, divided by n.
        delta = (batch_mean - mean) - rest.mean
        spread = (batch_variance - variance) - rest.variance + delta**2 * (1.0 - new_share)
        mean, mean_rest = _plus(mean, rest.mean, delta * new_share)
        variance, variance_rest = _plus(variance, rest.variance, spread * new_share)
        return mean, variance, Rest(mean_rest, variance_rest)

    rests = jax.tree.map(Rest, state.rest.mean, state.rest.variance)
    merged = jax.tree.map(merge, state.mean, state.variance, rests, moments)
    mean, variance, rest = jax.tree.transpose(jax.tree.structure(state.mean), None, merged)
    std = jax.tree.map(
        lambda v: jnp.clip(jnp.sqrt(v), std_min_value, std_max_value) + state.std_eps, variance
    )
    # Before the first valid sample the standard deviation stays 1.
    std = jax.tree.map(lambda new, old: jnp.where(count.to_float() > 0, new, old), std, state.std)
    return state.replace(mean=mean, std=std, variance=variance, rest=rest, count=count)


def normalize(batch: object, mean_std: NestedMeanStd, max_abs_value: float | None = None) -> Any:
    """Scale every feature to mean 0 and standard deviation 1, optionally clipped; skip integers."""

    def scale(x: jax.Array, mean: jax.Array, std: jax.Array) -> jax.Array:
        if not jnp.issubdtype(x.dtype, jnp.inexact):
            return x
        x = (x - mean) / std
        return x if max_abs_value is None else jnp.clip(x, -max_abs_value, max_abs_value)

    return jax.tree.map(scale, batch, mean_std.mean, mean_std.std)


def denormalize(batch: object, mean_std: NestedMeanStd) -> Any:
    """Undo `normalize`."""
    return jax.tree.map(lambda x, m, s: x * s + m, batch, mean_std.mean, mean_std.std)


def _real(dtype: Any) -> Any:
    """Return the type of the statistics of numbers of a type: float32 for integers."""
    return dtype if jnp.issubdtype(dtype, jnp.inexact) else jnp.float32


def _batch_axes(sample: object, batch: object) -> tuple[int, ...]:
    """Return the leading axes that all leaves of a batch have in front of the sample's shape."""
    sample_leaves, batch_leaves = jax.tree.leaves(sample), jax.tree.leaves(batch)
    shape = batch_leaves[0].shape[: batch_leaves[0].ndim - sample_leaves[0].ndim]
    for wanted, got in zip(sample_leaves, batch_leaves, strict=True):
        if got.shape != shape + wanted.shape:
            raise ShapeError(
                f"running_statistics.update: batch has shape {got.shape}; "
                f"expected {shape + wanted.shape}: batch axes {shape}, then the sample's."
            )
    return tuple(range(len(shape)))


def _finite_samples(batch: object, axes: tuple[int, ...]) -> jax.Array:
    """Return whether each sample is finite in all of its features, with the batch axes as shape."""
    finite = [
        jnp.all(jnp.isfinite(x), axis=tuple(range(len(axes), x.ndim)))
        for x in jax.tree.leaves(batch)
    ]
    return jnp.stack(finite).all(axis=0)


def _plus(total: jax.Array, rest: jax.Array, amount: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Add an amount to a compensated sum; return the sum and its new rounding error.

    Source: Knuth, The Art of Computer Programming, volume 2, section 4.2.2, theorem B.
    """
    amount = amount + rest
    new = total + amount
    added = new - total
    return new, (total - (new - added)) + (amount - added)


def _over_axis(
    nest: object, number: jax.Array, moments: object, axis_name: str
) -> tuple[jax.Array, Any]:
    """Return number, means and variances of the samples of all members of a mapped axis."""
    total = jax.lax.psum(number, axis_name)

    def of_all(
        like: jax.Array, moments: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        own_mean, variance = moments
        share = (number / jnp.maximum(total, 1)).astype(like.dtype)
        mean = jax.lax.psum(share * own_mean, axis_name)
        # The variance of all is the mean of the variances plus the variance of the means.
        return mean, jax.lax.psum(share * (variance + (own_mean - mean) ** 2), axis_name)

    return total, jax.tree.map(of_all, nest, moments)


def _moments(x: jax.Array, valid: jax.Array, number: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return mean and variance of the valid samples over the batch axes; zero without any."""
    axes = tuple(range(valid.ndim))
    mask = valid.reshape(valid.shape + (1,) * (x.ndim - valid.ndim))
    total = jnp.maximum(number.astype(x.dtype), 1)
    # The first sample as origin: differences from it are small where the mean is large.
    some = jnp.nan_to_num(x[(0,) * valid.ndim], posinf=0.0, neginf=0.0)
    offset = jnp.sum(jnp.where(mask, x - some, 0), axes) / total
    mean = some + offset
    variance = jnp.sum(jnp.where(mask, (x - mean) ** 2, 0), axes) / total
    return mean, variance
