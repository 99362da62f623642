"""Update of limits and dry friction in a pass; the rows are those of `brax.maximal.limits`."""

import jax
import jax.numpy as jnp

from brax.impacts import MAX_SPEED
from brax.maximal.limits import Limits, asked
from brax.positional.contacts import MAX_PUSH_RATIO


def change_within_limits(
    limits: Limits,
    impulse: jax.Array,
    first: jax.Array,
    ahead: jax.Array,
    rate: jax.Array,
    over: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the change of impulse that each limit asks for, within its largest impulse.

    Args:
        limits: the limits.
        impulse: impulses so far.
        first: impulses of the position level.
        ahead: impulses extrapolated by momentum, from which the change starts.
        rate: rates of the rows.
        over: True at the position level, False at the velocity level.

    Returns:
        The change, the rate errors, and a mask that is 1 where the error and not the largest
        impulse determines the impulse.
    """
    # At the velocity level limits that have pushed ask for rest, and the others for nothing. Limits
    # have no restitution.
    low = jnp.where(over, limits.low, jnp.where(first > 0, 0.0, -MAX_SPEED))
    high = jnp.where(over, limits.high, jnp.where(first < 0, 0.0, MAX_SPEED))
    # Equation (4), and the error against the bound that acts, or has acted.
    new, bounded = asked(limits, ahead, rate, low, high)
    missing = jnp.where((new > 0) | (impulse > 0), low, high) - rate
    return bounded - impulse, missing, (bounded == new).astype(new.dtype)


def physical(limits: Limits, impulse: jax.Array, rate: jax.Array) -> jax.Array:
    """Return the share of each impulse that stops a motion at `rate`; see `contacts.physical`."""
    # As in `contacts.physical`: the rate that the motion needs to stop, over the rate that the
    # limit asked for at the position level.
    pressing = jnp.where(impulse > 0, -rate, rate)
    excess = jnp.where(impulse > 0, limits.low - rate, rate - limits.high)
    return jnp.clip(MAX_PUSH_RATIO * pressing / jnp.maximum(excess, 1e-9), 0.0, 1.0)
