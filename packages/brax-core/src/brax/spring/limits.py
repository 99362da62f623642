"""Targets and bounds of limits and dry friction; the rows are those of `brax.maximal.limits`."""

import jax
import jax.numpy as jnp

from brax.maximal.limits import Limits


def with_targets(limits: Limits, rate: jax.Array, erp: jax.Array) -> Limits:
    """Return the rows with bounds of the change of their rates in the step.

    Args:
        limits: the rows.
        rate: their rates before the step.
        erp: share of a violation that a step takes back (Baumgarte 1972).
    """
    # As for contacts: a gap may close within one step, a share of a violation is taken back.
    low = jnp.where(limits.low > 0, erp * limits.low, limits.low) - rate
    high = jnp.where(limits.high < 0, erp * limits.high, limits.high) - rate
    return limits._replace(low=low, high=high)


def project(limits: Limits, asked: jax.Array, impulse: jax.Array) -> jax.Array:
    """Return the nearest impulses within the bounds.

    Of a limit's two ends, `asked` says by its sign which one pushes. Dry friction acts either way,
    whatever the sweep asked for.
    """
    most = limits.most
    dry = most < jnp.inf
    least = jnp.where(dry | (asked < 0), -most, 0.0)
    greatest = jnp.where(dry | (asked > 0), most, 0.0)
    return jnp.clip(impulse, least, greatest)
