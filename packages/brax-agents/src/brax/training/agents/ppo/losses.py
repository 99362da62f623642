"""PPO's loss."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.kernels.fusion_barrier import fusion_barrier
from brax.training.agents.ppo.networks import PPONetworks, PPOParams
from brax.training.learning.advantages import compute_gae as compute_gae


class Batch(NamedTuple):
    """Stretches of experience: the first axis is the stretch, the second (if any) is time."""

    observation: Any
    """What the policy saw, (n, time, ...)."""
    raw_action: jax.Array
    """Actions before squashing, (n, time, action_size)."""
    log_prob: jax.Array
    """Their log density under the policy that acted, (n, time)."""
    value: jax.Array
    """Values when the policy acted, (n, time)."""
    target: jax.Array
    """What the values should be, (n, time)."""
    advantage: jax.Array
    """How much better than expected each action was, (n, time)."""
    used: jax.Array
    """1 for a step that is learned from, else 0, (n, time)."""


class PPOLossConfig(NamedTuple):
    """Numbers of the loss."""

    clipping_epsilon: float
    entropy_cost: float
    vf_loss_coefficient: float
    normalize_advantage: bool
    clipping_epsilon_value: float | None = None


def compute_ppo_loss(
    params: PPOParams, batch: Batch, key: jax.Array, networks: PPONetworks, config: PPOLossConfig
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Computes PPO's loss: clipped surrogate, value error and entropy.

    Targets and advantages are part of the experience: they stay what they were when the policy
    acted. Made anew of the values that an update moves, they would move with them, and where
    nothing fits the value of a last observation both grow without bound.

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
    ratio = jnp.exp(actions.log_prob(logits, batch.raw_action) - batch.log_prob)
    policy_loss = _surrogate(ratio, batch.advantage, batch.used, config)
    seen = (params.normalizer, params.value, batch.observation)
    if networks.value_quantiles:
        value_error = quantile_huber_loss(networks.value_quantiles(*seen), batch.target)
    else:
        values = networks.value_network.apply(*seen)
        value_error = _value_error(values, batch.target, batch.value, config.clipping_epsilon_value)
    value_loss = 0.5 * config.vf_loss_coefficient * jnp.mean(value_error * batch.used)
    entropy_loss = -config.entropy_cost * jnp.mean(actions.entropy(logits, key))
    loss = policy_loss + value_loss + entropy_loss
    return loss, {
        "total_loss": loss,
        "policy_loss": policy_loss,
        "v_loss": value_loss,
        "entropy_loss": entropy_loss,
        "kl_estimate": jnp.mean(ratio - 1.0 - jnp.log(ratio)),
    }


def quantile_huber_loss(quantiles: jax.Array, targets: jax.Array, kappa: float = 1.0) -> jax.Array:
    """Returns how badly quantiles (..., n) fit targets (...,): the mean over quantiles, (...,).

    Quantile i of n is that of `(i + 1/2) / n`; errors beyond `kappa` count linearly.

    Source: Dabney et al. 2018 (1710.10044), eq. 10.
    """
    number = quantiles.shape[-1]
    share = (jnp.arange(number) + 0.5) / number
    error = targets[..., None] - quantiles
    size = jnp.abs(error)
    huber = jnp.where(size <= kappa, 0.5 * error**2, kappa * (size - 0.5 * kappa))
    return jnp.mean(jnp.abs(share - (error < 0)) * huber / kappa, axis=-1)


def _value_error(
    values: jax.Array, targets: jax.Array, before: jax.Array, bound: float | None
) -> jax.Array:
    """Squared errors of values; with a bound, not less than if no value moved further than that."""
    error = (targets - values) ** 2
    if bound is None:
        return error
    near = before + jnp.clip(values - before, -bound, bound)
    return jnp.maximum(error, (targets - near) ** 2)


def _surrogate(
    ratio: jax.Array, advantages: jax.Array, used: jax.Array, config: PPOLossConfig
) -> jax.Array:
    """The clipped surrogate over the steps that are used, advantages normalized over those."""
    number = jnp.maximum(jnp.sum(used), 1.0)
    if config.normalize_advantage:
        mean = jnp.sum(advantages * used) / number
        variance = jnp.sum(used * (advantages - mean) ** 2) / number
        advantages = used * (advantages - mean) / (jnp.sqrt(variance) + 1e-8)
    # XLA would compute it anew for each entry of an action in the gradient, from transposed arrays.
    advantages = fusion_barrier(advantages)
    clipped = jnp.clip(ratio, 1.0 - config.clipping_epsilon, 1.0 + config.clipping_epsilon)
    return -jnp.sum(jnp.minimum(ratio * advantages, clipped * advantages)) / number
