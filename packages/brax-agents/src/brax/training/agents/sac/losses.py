"""SAC's losses."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.training.agents.sac.networks import SACNetworks
from brax.training.learning.replay_buffers import Sample


class SACWeights(NamedTuple):
    """What SAC's losses are minimized over."""

    policy: Any
    q: Any
    log_alpha: jax.Array
    """Logarithm of the temperature, shape ()."""


class SACLossConfig(NamedTuple):
    """Numbers of the losses."""

    discounting: float
    reward_scaling: float
    target_entropy: float


def compute_sac_loss(
    weights: SACWeights,
    normalizer: Any,
    target_q: Any,
    batch: Sample,
    key: jax.Array,
    networks: SACNetworks,
    config: SACLossConfig,
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Computes the sum of SAC's three losses, each with a gradient for its own weights only.

    Args:
        weights: what is learned.
        normalizer: statistics of observations.
        target_q: slowly following critics.
        batch: experience.
        key: for the actions that the losses draw.
        networks: SAC's networks.
        config: numbers of the losses.

    Returns:
        The loss and its parts.

    Source: Haarnoja et al. 2018 (1812.05905), eq. 5, 9 and 18, with two critics as its algorithm 1.
    """
    actions = networks.parametric_action_distribution
    next_key, now_key = jax.random.split(key)
    alpha = jax.lax.stop_gradient(jnp.exp(weights.log_alpha))

    def draw(policy: Any, observation: Any, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        logits = networks.policy_network.apply(normalizer, policy, observation)
        raw = actions.sample_no_postprocessing(logits, key)
        return actions.postprocess(raw), actions.log_prob(logits, raw)

    next_action, next_log_prob = draw(weights.policy, batch.next_observation, next_key)
    next_q = networks.q_network.apply(normalizer, target_q, batch.next_observation, next_action)
    next_value = jnp.min(next_q, axis=-1) - alpha * next_log_prob
    target = batch.reward * config.reward_scaling
    target = jax.lax.stop_gradient(target + config.discounting * batch.goes_on * next_value)
    q = networks.q_network.apply(normalizer, weights.q, batch.observation, batch.action)
    critic_loss = 0.5 * jnp.mean((q - target[:, None]) ** 2)

    action, log_prob = draw(weights.policy, batch.observation, now_key)
    fixed_q = jax.lax.stop_gradient(weights.q)
    value = jnp.min(
        networks.q_network.apply(normalizer, fixed_q, batch.observation, action), axis=-1
    )
    actor_loss = jnp.mean(alpha * log_prob - value)

    excess = jax.lax.stop_gradient(-log_prob - config.target_entropy)
    alpha_loss = jnp.mean(jnp.exp(weights.log_alpha) * excess)
    return critic_loss + actor_loss + alpha_loss, {
        "critic_loss": critic_loss,
        "actor_loss": actor_loss,
        "alpha_loss": alpha_loss,
        "alpha": alpha,
        "entropy": -jnp.mean(log_prob),
    }
