"""PPO's advantages and loss."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

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


def compute_gae(
    truncation: jax.Array,
    termination: jax.Array,
    rewards: jax.Array,
    values: jax.Array,
    bootstrap_value: jax.Array,
    lambda_: float = 0.95,
    discount: float = 0.99,
    timeout_value: jax.Array | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Computes value targets and advantages, time first: every array (time, n).

    Args:
        truncation: 1 where an episode was cut by the time limit.
        termination: 1 where it ended of itself.
        rewards: rewards.
        values: values of the observations before each step.
        bootstrap_value: values after the last step, (n,).
        lambda_: weight of longer returns.
        discount: discount of one step.
        timeout_value: values after a step, used where it was truncated; without it truncated
            steps teach nothing: their advantage is 0 and their target the value itself.

    Returns:
        Targets `vs` and advantages, both without gradient.

    Source: Schulman et al. 2016 (GAE), targets as in Espeholt et al. 2018 (V-trace) on policy. The
    advantage is V-trace's, `r + discount vs[t+1] - V[t]`, not GAE's own.
    """
    weight = 1.0 - truncation if timeout_value is None else jnp.ones_like(rewards)
    known = jnp.zeros_like(rewards) if timeout_value is None else truncation * timeout_value
    goes_on = (1.0 - termination) * (1.0 - truncation)

    def after(later: jax.Array) -> jax.Array:
        """What a step leads to: the later value if the episode goes on."""
        return discount * (goes_on * later + known)

    next_values = jnp.concatenate([values[1:], bootstrap_value[None]])
    deltas = weight * (rewards + after(next_values) - values)

    def back(sum_: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        delta, goes_on = step
        sum_ = delta + discount * lambda_ * goes_on * sum_
        return sum_, sum_

    start = jnp.zeros_like(bootstrap_value)
    _, corrections = jax.lax.scan(back, start, (deltas, goes_on), reverse=True)
    vs = corrections + values
    next_vs = jnp.concatenate([vs[1:], bootstrap_value[None]])
    advantages = weight * (rewards + after(next_vs) - values)
    return jax.lax.stop_gradient(vs), jax.lax.stop_gradient(advantages)


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
