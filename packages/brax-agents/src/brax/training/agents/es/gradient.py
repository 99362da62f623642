"""The gradient that evolution strategies estimate from returns."""

from typing import Any

import jax
import jax.numpy as jnp

from brax.training.agents.es.config import FitnessShaping


def shape_fitness(returns: jax.Array, shaping: str) -> jax.Array:
    """Return the weights of returns, both (n,).

    Where weights depend on ranks, equal returns share the weights of their ranks evenly.

    Source: centered ranks: Salimans et al. 2017, section 2.1. Utilities: Wierstra et al. 2014,
    section 3.1.
    """
    if shaping == FitnessShaping.ORIGINAL:
        return returns
    number = returns.shape[0]
    rank = jnp.arange(number)  # 0 for the worst
    if shaping == FitnessShaping.CENTERED_RANK:
        return _by_rank(returns, rank / (number - 1) - 0.5)
    # The worse half has utility 0 before the mean is subtracted; rank 0 is the worst.
    utility = jnp.maximum(0.0, jnp.log(number / 2 + 1) - jnp.log(number - rank))
    return _by_rank(returns, utility / jnp.sum(utility) - 1.0 / number)


def _by_rank(returns: jax.Array, weights: jax.Array) -> jax.Array:
    """Return the weight of each return, given the weights from the worst to the best, all (n,)."""
    # A population whose returns are all equal must not move: by its order alone, each tie would get
    # another weight, and the noise would be followed in the order of the environments.
    ordered = jnp.sort(returns)
    first = jnp.searchsorted(ordered, ordered)  # the first of those that are equal
    sums, number = (jnp.zeros_like(weights).at[first].add(w) for w in (weights, 1.0))
    at = jnp.searchsorted(ordered, returns)
    return sums[at] / number[at]


def search_gradient(noise: object, plus: jax.Array, minus: jax.Array, std: float) -> Any:
    """Estimate the gradient of the expected fitness from mirrored samples.

    Args:
        noise: standard normal noise, a tree with leaves (pairs, ...).
        plus: fitness of the parameters plus `std * noise`, (pairs,).
        minus: fitness of the parameters minus `std * noise`, (pairs,).
        std: standard deviation of the noise.

    Returns:
        A tree like the parameters: the mean of `(plus - minus) / (2 std) * noise`.

    Source: Salimans et al. 2017 (1703.03864), eq. 1 with mirrored sampling.
    """
    # A central difference along each direction of noise: even terms of the fitness cancel.
    weight = (plus - minus) / (2.0 * std * plus.shape[0])
    return jax.tree.map(lambda n: jnp.tensordot(weight, n, axes=1), noise)
