"""Values of few of many observations, such as of those that episodes end with."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from brax.kernels.codegen import cpu
from brax.training.nn.layers import MIN_KERNEL_ROWS

CHUNK = MIN_KERNEL_ROWS
"""Observations whose values are computed at once. Dense layers of fewer are no kernel on a CPU."""


def values_of_some(
    value: Callable[[Any], jax.Array], observations: Any, chosen: jax.Array, split: bool
) -> jax.Array:
    """Return the values of the chosen observations and of the last ones, (time, n).

    The others may be any numbers: on a CPU they are not computed, and the chosen ones are gathered,
    `CHUNK` at a time.

    Args:
        value: takes observations, leaves (..., size), and returns their values, (...,).
        observations: the observations, leaves (time, n, size).
        chosen: whether an observation is chosen, (time, n).
        split: True if several devices share the observations; gathering would make them wait for
            each other.
    """
    if split or chosen.size <= 2 * CHUNK or not cpu.is_default():
        return value(observations)
    flags = chosen[:-1].reshape(-1)
    rows = jax.tree.map(lambda x: x[:-1].reshape(flags.size, *x.shape[2:]), observations)
    last = value(jax.tree.map(lambda x: x[-1], observations))

    def gathered(found: jax.Array) -> jax.Array:
        """Return the values with those of the chosen observations."""
        # Behind the last place there is one that no row has, which is not written.
        (places,) = jnp.nonzero(flags, size=flags.size, fill_value=flags.size)

        def chunk(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            first, found = state
            mine = jax.lax.dynamic_slice_in_dim(places, first, CHUNK)
            values = value(jax.tree.map(lambda x: x.at[mine].get(mode="clip"), rows))
            return first + CHUNK, found.at[mine].set(values, mode="drop")

        number = jnp.sum(flags, dtype=jnp.int32)
        return jax.lax.while_loop(lambda state: state[0] < number, chunk, (jnp.int32(0), found))[1]

    # Where no episode ends, testing for it takes less time than listing the places.
    none = jnp.zeros(flags.shape, last.dtype)
    found = jax.lax.cond(jnp.any(flags), gathered, lambda found: found, none)
    return jnp.concatenate([found.reshape(-1, *last.shape), last[None]])
