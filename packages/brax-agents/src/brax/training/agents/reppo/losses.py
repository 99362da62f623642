"""REPPO's targets and losses: critic, policy, temperature and multiplier of the KL divergence.

Start reading at `compute_reppo_loss`. The critic's targets are `soft_lambda_returns`.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.training.agents.reppo.networks import REPPONetworks
from brax.training.learning.advantages import UNROLLED

SMOOTHING = 0.75
"""Standard deviation of the Gaussian that smooths a target, in bins (Farebrother et al. 2024)."""


class Batch(NamedTuple):
    """Steps that an update learns from, in any order."""

    observation: Any
    """Observations that the policy acted on, leaves (n, ...)."""
    action: jax.Array
    """Actions, in (-1, 1), (n, action_size)."""
    logits: jax.Array
    """Outputs of the policy that acted, which describe its distribution, (n, 2 action_size)."""
    target: jax.Array
    """Targets of the critic, (n,)."""


class REPPOWeights(NamedTuple):
    """The weights that REPPO's losses are minimized over."""

    policy: Any
    q: Any
    log_temperature: jax.Array
    """Logarithm of the weight of the entropy, shape ()."""
    log_multiplier: jax.Array
    """Logarithm of the weight of the KL divergence where it exceeds its bound, shape ()."""


class REPPOLossConfig(NamedTuple):
    """The numbers of REPPO's losses."""

    v_min: float
    v_max: float
    kl_bound: float
    target_entropy: float


def compute_reppo_loss(
    weights: REPPOWeights,
    normalizer: object,
    batch: Batch,
    key: jax.Array,
    networks: REPPONetworks,
    config: REPPOLossConfig,
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Return the sum of REPPO's four losses, each with a gradient for its own weights only.

    The KL divergence of two squashed normal distributions is that of the normal distributions, so
    it is computed exactly; the paper estimates it from samples. The paper's auxiliary loss, which
    predicts the critic's next features, is left out.

    Args:
        weights: policy, critic and logarithms of both multipliers.
        normalizer: statistics of observations.
        batch: experience.
        key: random key for the actions that the policy's loss draws.
        networks: REPPO's networks.
        config: numbers of the losses.

    Returns:
        The loss and its parts, all scalar.

    Source: Voelcker et al. 2025 (2507.11019), section 4; Farebrother et al. 2024 (2403.03950).
    """
    actions = networks.parametric_action_distribution
    # The multipliers weigh terms of the policy's loss; only their own losses move them.
    temperature, multiplier = (
        jax.lax.stop_gradient(jnp.exp(x)) for x in (weights.log_temperature, weights.log_multiplier)
    )
    found = networks.q_network.apply(normalizer, weights.q, batch.observation, batch.action)
    expected = smoothed_histogram(batch.target, found.shape[-1], config.v_min, config.v_max)
    critic_loss = -jnp.mean(jnp.sum(expected * jax.nn.log_softmax(found), axis=-1))

    logits = networks.policy_network.apply(normalizer, weights.policy, batch.observation)
    # Reparametrized: the gradient of the value passes through the drawn action into the policy.
    raw = actions.sample_no_postprocessing(logits, key)
    log_prob, action = actions.log_prob(logits, raw), actions.postprocess(raw)
    # A critic without gradient: the policy's loss moves the policy only.
    fixed_q = jax.lax.stop_gradient(weights.q)
    value = histogram_mean(
        networks.q_network.apply(normalizer, fixed_q, batch.observation, action),
        config.v_min,
        config.v_max,
    )
    kl = actions.kl_divergence(batch.logits, logits)
    # Where the policy is within the bound it improves, elsewhere it returns to the one that acted.
    improve = temperature * log_prob - value
    policy_loss = jnp.mean(jnp.where(kl < config.kl_bound, improve, multiplier * kl))

    entropy = -jax.lax.stop_gradient(jnp.mean(log_prob))
    mean_kl = jax.lax.stop_gradient(jnp.mean(kl))
    # The temperature rises while the entropy is below its target, and the multiplier while the
    # divergence is above its bound.
    temperature_loss = jnp.exp(weights.log_temperature) * (entropy - config.target_entropy)
    multiplier_loss = jnp.exp(weights.log_multiplier) * (config.kl_bound - mean_kl)
    outside = (batch.target < config.v_min) | (batch.target > config.v_max)
    return critic_loss + policy_loss + temperature_loss + multiplier_loss, {
        "critic_loss": critic_loss,
        "policy_loss": policy_loss,
        "temperature_loss": temperature_loss,
        "multiplier_loss": multiplier_loss,
        "temperature": temperature,
        "kl_multiplier": multiplier,
        "entropy": entropy,
        "kl": mean_kl,
        "clipped_targets": jnp.mean(outside, dtype=kl.dtype),
    }


def soft_lambda_returns(
    rewards: jax.Array,
    termination: jax.Array,
    truncation: jax.Array,
    next_value: jax.Array,
    log_prob: jax.Array,
    temperature: jax.Array,
    lambda_: float,
    discount: float,
) -> jax.Array:
    """Return the TD(lambda) targets of a critic whose value includes the entropy to come.

    The entropy of the action itself is not part of its target, as in SAC. Every array is (time, n).

    Args:
        rewards: scaled rewards.
        termination: 1 where an episode terminated: nothing comes after it.
        truncation: 1 where the time limit cut an episode: the next value stands for the rest.
        next_value: soft values of the true observations after each step.
        log_prob: log densities of the actions taken.
        temperature: weight of the entropy, shape ().
        lambda_: weight of longer returns.
        discount: discount factor of one step.

    Source: Voelcker et al. 2025 (2507.11019), section 4.
    """
    continues = (1.0 - termination) * (1.0 - truncation)

    def back(later: jax.Array, step: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
        reward, termination, continues, value, log_prob = step
        # `later` is the soft return after this step, which belongs to this episode if it continues.
        mixed = value + lambda_ * continues * (later - value)
        target = reward + discount * (1.0 - termination) * mixed
        return target - temperature * log_prob, target

    steps = rewards, termination, continues, next_value, log_prob
    # After the last step only its next value is known.
    _, targets = jax.lax.scan(back, next_value[-1], steps, reverse=True, unroll=UNROLLED)
    return targets


def smoothed_histogram(target: jax.Array, bins: int, low: float, high: float) -> jax.Array:
    """Return HL-Gauss histograms of targets (n,): normal distributions, cut into bins, (n, bins).

    Targets beyond `low` and `high` count as these. What a normal distribution has beyond them is
    shared out by scaling.

    Source: Farebrother et al. 2024 (2403.03950), section 3.1.
    """
    edges = jnp.linspace(low, high, bins + 1)
    deviation = SMOOTHING * (high - low) / bins
    distance = (edges - jnp.clip(target, low, high)[:, None]) / deviation
    # Twice the share below each edge, minus 1: the scaling leaves neither in the result.
    below = jax.lax.erf(distance / math.sqrt(2.0))
    # Rounded, erf falls by a last digit here and there; a share is never negative.
    return jnp.maximum(jnp.diff(below, axis=1), 0.0) / (below[:, -1:] - below[:, :1])


def histogram_mean(logits: jax.Array, low: float, high: float) -> jax.Array:
    """Return the means of histograms (..., bins) over [low, high], each bin at its centre."""
    bins = logits.shape[-1]
    half = 0.5 * (high - low) / bins
    return jax.nn.softmax(logits) @ jnp.linspace(low + half, high - half, bins)
