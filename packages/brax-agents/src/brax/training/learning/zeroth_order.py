"""The likelihood-ratio estimate of a policy's gradient, beside the simulator's derivative.

Where a reward jumps or an episode ends, the derivative through the simulator misses the effect;
this estimate includes it. It has more variance.

Source: Williams (1992), Simple Statistical Gradient-Following Algorithms; mixed with the other as
in Suh et al. 2022 (2202.00817).
"""

from typing import Any

import jax
import jax.numpy as jnp

from brax.training import types
from brax.training.nn import images


def likelihood_ratio_surrogate(
    networks: Any, normalizer: object, policy: object, data: types.Transition, advantage: jax.Array
) -> jax.Array:
    """Return a number whose derivative by the policy is the estimate; its value has no meaning.

    Args:
        networks: networks with `policy_network` and `parametric_action_distribution`.
        normalizer: statistics of observations.
        policy: the policy's parameters.
        data: transitions with the policy's extras, (time, n).
        advantage: advantage of each action, (time, n).
    """
    observation, raw, advantage = jax.lax.stop_gradient(
        (data.observation, data.extras["policy_extras"]["raw_action"], advantage)
    )
    # The gradient passes through the parameters only, not through where the actions led.
    logits = networks.policy_network.apply(normalizer, policy, observation)
    log_prob = networks.parametric_action_distribution.log_prob(logits, raw)
    # REINFORCE (Williams 1992): grad log pi(a | s) times the advantage.
    return jnp.mean(log_prob * advantage)


def mix_gradients(value: jax.Array, other: jax.Array, share: float) -> jax.Array:
    """Return a value whose derivative is a mixture: `share` of it is that of `other`.

    `other` is, for example, a `likelihood_ratio_surrogate`. With a share of 1 the value is not
    differentiated at all, which saves the most expensive part.
    """
    if share == 1.0:
        return jax.lax.stop_gradient(value - other) + other
    slope = (1.0 - share) * value + share * other
    # The terms cancel in the value and not in the derivative.
    return jax.lax.stop_gradient(value - slope) + slope


def leave_one_out_advantage(observation: object, returns: jax.Array, known: jax.Array) -> jax.Array:
    """Return how much more each episode earns than a regression on the others predicts.

    At each time, a ridge regression on observations and their squares is fitted to the other
    environments. With only their mean, an action would be credited with its episode being young
    while others are about to end.

    Args:
        observation: vectors, (time, n, size), by name where there are several; images are left out.
        returns: return to go of each episode at each time, (time, n).
        known: 1 where the return is known, 0 where it is left out, (time, n).

    Returns:
        Advantages, (time, n); zero where the return is not known, or no other is.

    Source: features as in Duan et al. 2016 (1604.06778), section 4; leave-one-out residuals:
    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning (2nd ed.), section 7.10.
    """
    vectors = jax.tree.leaves(images.vectors(observation))
    vectors.append(jnp.zeros((*returns.shape, 1)))  # says nothing, where there is nothing else
    joined = jnp.concatenate(vectors, axis=-1)
    axes = (0, 1)
    scaled = (joined - jnp.mean(joined, axes)) / (jnp.std(joined, axes) + 1e-6)
    # A single observation far out would otherwise determine the fit by its square.
    scaled = jnp.clip(scaled, -4.0, 4.0)
    features = jnp.concatenate([scaled, scaled**2], axis=-1)
    # With the few bits of a GPU's products the matrix might not stay positive definite.
    with jax.default_matmul_precision("highest"):
        return jax.vmap(_leave_one_out_residuals)(features, returns, known)


def _leave_one_out_residuals(
    features: jax.Array, returns: jax.Array, known: jax.Array
) -> jax.Array:
    """Return the residuals of returns, (n,), by regressions on features, (n, k), without each."""
    # Features and returns are centred, so that the regression has an intercept without a penalty.
    count = jnp.maximum(jnp.sum(known), 1.0)
    features = known[:, None] * (features - known @ features / count)
    returns = known * (returns - known @ returns / count)
    # The penalty is 1, in units of features of variance 1.
    solved = features @ _sweep_inverse(features.T @ features + jnp.eye(features.shape[1]))
    left = returns - solved @ (features.T @ returns)
    # The diagonal of the hat matrix H: the residual without point i is left[i] / (1 - H[i, i]).
    leverage = 1.0 / count + jnp.sum(solved * features, axis=1)
    # A point that alone determines the fit has leverage 1: the bound keeps its residual finite.
    return left / jnp.maximum(1.0 - leverage, 0.1)


def _sweep_inverse(matrix: jax.Array) -> jax.Array:
    """Return the inverse of a positive definite matrix, (k, k), by sweeps (Goodnight 1979).

    LAPACK is not used: `brax.generalized.linalg.elimination` says why.
    """

    def sweep(i: jax.Array, matrix: jax.Array) -> jax.Array:
        pivot, column = matrix[i, i], matrix[:, i]
        row = matrix[i] / pivot
        swept = matrix - jnp.outer(column, row)
        return swept.at[i].set(row).at[:, i].set(-column / pivot).at[i, i].set(1.0 / pivot)

    return jax.lax.fori_loop(0, len(matrix), sweep, matrix)
