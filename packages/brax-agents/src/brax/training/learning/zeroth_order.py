"""The likelihood-ratio estimate of a policy's gradient, beside the one through the simulator.

Where a reward jumps, or an episode ends, the derivative through the simulator has no share in it;
this one has. It has more noise.

Source: Williams (1992), Simple Statistical Gradient-Following Algorithms; mixed with the other as
in Suh et al. 2022 (2202.00817).
"""

from typing import Any

import jax
import jax.numpy as jnp

from brax.training import types
from brax.training.nn import images


def likelihood_ratio_surrogate(
    networks: Any, normalizer: Any, policy: Any, data: types.Transition, advantage: jax.Array
) -> jax.Array:
    """What has the estimate as its derivative by the policy; its value means nothing.

    Args:
        networks: with `policy_network` and `parametric_action_distribution`.
        normalizer: statistics of observations.
        policy: the policy's parameters.
        data: transitions with the policy's extras, (time, n).
        advantage: how much more than expected each action earned, (time, n).
    """
    observation, raw, advantage = jax.lax.stop_gradient(
        (data.observation, data.extras["policy_extras"]["raw_action"], advantage)
    )
    logits = networks.policy_network.apply(normalizer, policy, observation)
    log_prob = networks.parametric_action_distribution.log_prob(logits, raw)
    return jnp.mean(log_prob * advantage)


def mix_gradients(value: jax.Array, other: jax.Array, share: float) -> jax.Array:
    """Returns a value, of whose derivative a share is that of another.

    The other one is its `likelihood_ratio_surrogate`, for example.

    With all of it, the value is not differentiated, which costs most.
    """
    if share == 1.0:
        return jax.lax.stop_gradient(value - other) + other
    slope = (1.0 - share) * value + share * other
    return jax.lax.stop_gradient(value - slope) + slope


def leave_one_out_advantage(observation: Any, returns: jax.Array, known: jax.Array) -> jax.Array:
    """How much more each episode earns than the others let expect of what is observed in it.

    At each time a ridge regression on observations and their squares, fitted to the other
    environments. Their mean alone would count it to an action's credit that its episode is young
    where others are about to end.

    Args:
        observation: vectors, (time, n, size), by name where there are several; images are left out.
        returns: what each episode earns from each time on, (time, n).
        known: 1 where the return is known, 0 where it counts for nothing, (time, n).

    Returns:
        (time, n); zero where it is not known, or nothing else is.

    Source: features as in Duan et al. 2016 (1604.06778), section 4; what a fit without one of its
    points leaves of that point: Hastie, Tibshirani and Friedman, The Elements of Statistical
    Learning (2nd ed.), section 7.10.
    """
    vectors = jax.tree.leaves(images.vectors(observation))
    vectors.append(jnp.zeros((*returns.shape, 1)))  # says nothing, where there is nothing else
    joined = jnp.concatenate(vectors, axis=-1)
    axes = (0, 1)
    scaled = (joined - jnp.mean(joined, axes)) / (jnp.std(joined, axes) + 1e-6)
    scaled = jnp.clip(scaled, -4.0, 4.0)
    features = jnp.concatenate([scaled, scaled**2], axis=-1)
    # With the few bits of a GPU's products the matrix might not stay positive definite.
    with jax.default_matmul_precision("highest"):
        return jax.vmap(_leave_one_out_residuals)(features, returns, known)


def _leave_one_out_residuals(
    features: jax.Array, returns: jax.Array, known: jax.Array
) -> jax.Array:
    """What is left of each return, (n,), by a regression on features, (n, k), without itself."""
    count = jnp.maximum(jnp.sum(known), 1.0)
    features = known[:, None] * (features - known @ features / count)
    returns = known * (returns - known @ returns / count)
    solved = features @ _sweep_inverse(features.T @ features + jnp.eye(features.shape[1]))
    left = returns - solved @ (features.T @ returns)
    leverage = 1.0 / count + jnp.sum(solved * features, axis=1)
    return left / jnp.maximum(1.0 - leverage, 0.1)


def _sweep_inverse(matrix: jax.Array) -> jax.Array:
    """Of a positive definite matrix, (k, k), by sweeps (Goodnight 1979), which no thread waits for.

    `brax.generalized.linalg.elimination` says why it is not LAPACK's.
    """

    def sweep(i: jax.Array, matrix: jax.Array) -> jax.Array:
        pivot, column = matrix[i, i], matrix[:, i]
        row = matrix[i] / pivot
        swept = matrix - jnp.outer(column, row)
        return swept.at[i].set(row).at[:, i].set(-column / pivot).at[i, i].set(1.0 / pivot)

    return jax.lax.fori_loop(0, len(matrix), sweep, matrix)
