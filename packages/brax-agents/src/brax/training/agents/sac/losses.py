"""SAC's losses: critics, policy and temperature, in `compute_sac_loss`."""

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from brax.training._removed import explain_removed
from brax.training.agents.sac.networks import SACNetworks
from brax.training.learning.replay_buffers import Sample


class SACWeights(NamedTuple):
    """The weights that SAC's losses are minimized over."""

    policy: Any
    q: Any
    log_alpha: jax.Array
    """Logarithm of the temperature, shape ()."""


class SACLossConfig(NamedTuple):
    """The numbers of SAC's losses."""

    discounting: float
    reward_scaling: float
    target_entropy: float


def compute_sac_loss(
    weights: SACWeights,
    normalizer: object,
    target_q: object,
    batch: Sample,
    key: jax.Array,
    networks: SACNetworks,
    config: SACLossConfig,
) -> tuple[jax.Array, dict[str, jax.Array]]:
    """Return the sum of SAC's three losses, each with a gradient for its own weights only.

    Args:
        weights: policy, critics and logarithm of the temperature.
        normalizer: statistics of observations.
        target_q: parameters of the target critics.
        batch: transitions, leaves (n, ...).
        key: random key for the actions that the losses draw.
        networks: SAC's networks.
        config: numbers of the losses.

    Returns:
        The loss and its parts, all scalar.

    Source: Haarnoja et al. 2018 (1812.05905), eq. 5, 9 and 18, with two critics as in algorithm 1.
    """
    next_key, now_key = jax.random.split(key)
    # The temperature weighs the entropy in the first two losses; only the third moves it.
    alpha = jax.lax.stop_gradient(jnp.exp(weights.log_alpha))
    draw = functools.partial(_draw_actions, networks, normalizer, weights.policy)
    evaluate = functools.partial(networks.q_network.apply, normalizer)

    next_action, next_log_prob = draw(batch.next_observation, next_key)
    next_q = evaluate(target_q, batch.next_observation, next_action)
    # Eq. 3, the soft value, with the smaller of the two target critics against overestimation.
    next_value = jnp.min(next_q, axis=-1) - alpha * next_log_prob
    # Eq. 5. `goes_on` is 1 for truncated steps too: only termination ends the return.
    target = batch.reward * config.reward_scaling
    target = jax.lax.stop_gradient(target + config.discounting * batch.goes_on * next_value)
    q = evaluate(weights.q, batch.observation, batch.action)
    # q is (n, critics): both critics are fitted to the same target.
    critic_loss = 0.5 * jnp.mean((q - target[:, None]) ** 2)

    action, log_prob = draw(batch.observation, now_key)
    # Critics without gradient: the policy's loss moves the policy only.
    fixed_q = jax.lax.stop_gradient(weights.q)
    value = jnp.min(evaluate(fixed_q, batch.observation, action), axis=-1)
    # Eq. 9, again with the smaller of the two critics.
    actor_loss = jnp.mean(alpha * log_prob - value)

    # Eq. 18: the temperature rises while the entropy is below its target. The policy's density
    # has no gradient here.
    excess = jax.lax.stop_gradient(-log_prob - config.target_entropy)
    alpha_loss = jnp.mean(jnp.exp(weights.log_alpha) * excess)
    return critic_loss + actor_loss + alpha_loss, {
        "critic_loss": critic_loss,
        "actor_loss": actor_loss,
        "alpha_loss": alpha_loss,
        "alpha": alpha,
        "entropy": -jnp.mean(log_prob),
    }


def _draw_actions(
    networks: SACNetworks, normalizer: object, policy: object, observation: object, key: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Draw the policy's actions at observations (n, ...), with their log densities (n,)."""
    actions = networks.parametric_action_distribution
    logits = networks.policy_network.apply(normalizer, policy, observation)
    # Reparametrized as in eq. 8: the gradient of the policy passes through the drawn action.
    raw = actions.sample_no_postprocessing(logits, key)
    return actions.postprocess(raw), actions.log_prob(logits, raw)


if not TYPE_CHECKING:  # type checkers would take any name for one of this module's
    __getattr__ = explain_removed(__name__)
