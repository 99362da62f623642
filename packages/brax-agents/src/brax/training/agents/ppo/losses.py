"""PPO's loss."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.training.advantages import compute_gae as compute_gae
from brax.training.agents.ppo.networks import PPONetworks, PPOParams


class Batch(NamedTuple):
    """Stretches of experience: the first axis is the stretch, the second (if any) is time."""

    observation: Any
    """What the policy saw, (n, time, ...)."""
    last_observation: Any
    """True observation after the last step, (n, ...)."""
    raw_action: jax.Array
    """Actions before squashing, (n, time, action_size)."""
    log_prob: jax.Array
    """Their log density under the policy that acted, (n, time)."""
    reward: jax.Array
    """Scaled rewards, (n, time)."""
    termination: jax.Array
    """1 where the episode ended of itself, (n, time)."""
    truncation: jax.Array
    """1 where it ended by the time limit, (n, time)."""
    timeout_value: jax.Array | None
    """Value of the true observation after a step, used where it was truncated, (n, time);
    None to leave truncated steps out of the loss."""


class LossConfig(NamedTuple):
    """Numbers of the loss."""

    discounting: float
    gae_lambda: float
    clipping_epsilon: float
    entropy_cost: float
    vf_loss_coefficient: float
    normalize_advantage: bool


def compute_ppo_loss(
    params: PPOParams, batch: Batch, key: jax.Array, networks: PPONetworks, config: LossConfig
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Computes PPO's loss: clipped surrogate, value error and entropy.

    Args:
        params: parameters; the gradient with respect to `policy` and `value` is meant.
        batch: experience.
        key: for the estimate of the entropy.
        networks: PPO's networks.
        config: numbers of the loss.

    Returns:
        The loss and its parts.

    Source: Schulman et al. 2017, eq. 7 and 9.
    """
    actions = networks.parametric_action_distribution
    logits = networks.policy_network.apply(params.normalizer, params.policy, batch.observation)
    values = networks.value_network.apply(params.normalizer, params.value, batch.observation)
    bootstrap = networks.value_network.apply(
        params.normalizer, params.value, batch.last_observation
    )
    timeout_value = batch.timeout_value
    targets, advantages = compute_gae(
        batch.truncation.T,
        batch.termination.T,
        batch.reward.T,
        values.T,
        bootstrap,
        config.gae_lambda,
        config.discounting,
        None if timeout_value is None else timeout_value.T,
    )
    used = jnp.ones_like(values) if timeout_value is not None else 1.0 - batch.truncation
    ratio = jnp.exp(actions.log_prob(logits, batch.raw_action) - batch.log_prob)
    policy_loss = _surrogate(ratio, advantages.T, used, config)
    value_loss = 0.5 * config.vf_loss_coefficient * jnp.mean((targets.T - values) ** 2)
    entropy_loss = -config.entropy_cost * jnp.mean(actions.entropy(logits, key))
    loss = policy_loss + value_loss + entropy_loss
    return loss, {
        "total_loss": loss,
        "policy_loss": policy_loss,
        "v_loss": value_loss,
        "entropy_loss": entropy_loss,
        "kl_estimate": jnp.mean(ratio - 1.0 - jnp.log(ratio)),
    }


def _surrogate(
    ratio: jax.Array, advantages: jax.Array, used: jax.Array, config: LossConfig
) -> jax.Array:
    """The clipped surrogate over the steps that are used, advantages normalized over those."""
    number = jnp.maximum(jnp.sum(used), 1.0)
    if config.normalize_advantage:
        mean = jnp.sum(advantages * used) / number
        variance = jnp.sum(used * (advantages - mean) ** 2) / number
        advantages = used * (advantages - mean) / (jnp.sqrt(variance) + 1e-8)
    clipped = jnp.clip(ratio, 1.0 - config.clipping_epsilon, 1.0 + config.clipping_epsilon)
    return -jnp.sum(jnp.minimum(ratio * advantages, clipped * advantages)) / number
