"""The direction that augmented random search takes."""

from typing import Any

import jax
import jax.numpy as jnp


def best_direction(noise: Any, plus: jax.Array, minus: jax.Array, top: int) -> Any:
    """Averages the best directions, weighted by what they gained.

    Args:
        noise: directions, a tree of leaves (directions, ...).
        plus: returns forwards, (directions,).
        minus: returns backwards, (directions,).
        top: number of directions to use, those with the greatest return either way.

    Returns:
        A tree like the parameters: the mean of `(plus - minus) * noise` over the directions that
        are used, divided by the deviation of their returns.

    Source: Mania et al. 2018, algorithm 2, lines 6 and 7 (version V2-t).
    """
    _, best = jax.lax.top_k(jnp.maximum(plus, minus), top)
    used = jnp.stack([plus[best], minus[best]])
    weight = (used[0] - used[1]) / (top * (jnp.std(used) + 1e-8))
    return jax.tree.map(lambda n: jnp.tensordot(weight, n[best], axes=1), noise)
