"""The direction in which augmented random search moves."""

from typing import Any

import jax
import jax.numpy as jnp


def best_direction(noise: object, plus: jax.Array, minus: jax.Array, top: int) -> Any:
    """Return the average of the best directions, weighted by their differences of returns.

    Args:
        noise: directions, a tree with leaves (directions, ...).
        plus: returns along each direction, (directions,).
        minus: returns against each direction, (directions,).
        top: number of directions to use: those with the greatest return of either sign.

    Returns:
        A tree like the parameters: the mean of `(plus - minus) * noise` over the directions that
        are used, divided by the standard deviation of their returns.

    Source: Mania et al. 2018 (1803.07055), algorithm 2, lines 6 and 7 (version V2-t).
    """
    _, best = jax.lax.top_k(jnp.maximum(plus, minus), top)
    used = jnp.stack([plus[best], minus[best]])
    # The standard deviation is over both signs of the directions used (line 7); the small number
    # keeps equal returns at zero instead of 0 / 0.
    weight = (used[0] - used[1]) / (top * (jnp.std(used) + 1e-8))
    return jax.tree.map(lambda n: jnp.tensordot(weight, n[best], axes=1), noise)
