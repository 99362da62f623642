"""PPO's optimizer, and a step size that follows how far the policy moves."""

import enum
from typing import Any

import jax
import jax.numpy as jnp
import optax


class LRSchedule(enum.StrEnum):
    """How the step size goes on from the first."""

    NONE = "NONE"
    ADAPTIVE_KL = "ADAPTIVE_KL"


def make_optimizer(config: Any) -> optax.GradientTransformation:
    """Returns Adam behind a bound on the gradient's norm, from PPO's settings."""
    clip = [optax.clip_by_global_norm(config.max_grad_norm)] if config.max_grad_norm else []
    if config.learning_rate_schedule != LRSchedule.ADAPTIVE_KL:
        return optax.chain(*clip, optax.adam(config.learning_rate))
    adam = optax.inject_hyperparams(optax.adam)(learning_rate=config.learning_rate)
    return optax.chain(*clip, adam)


def adaptive_kl_learning_rate(
    optimizer_state: Any,
    kl_mean: jax.Array,
    desired_kl: float,
    min_learning_rate: float = 1e-5,
    max_learning_rate: float = 1e-2,
) -> tuple[Any, jax.Array]:
    """Adapts the step size: down by 1.5 where the policy moved twice as far as desired, up by 1.5
    where it moved, but less than half as far.

    Args:
        optimizer_state: state of an optimizer that keeps `learning_rate` in it.
        kl_mean: mean KL divergence of the policy now from the one that acted.
        desired_kl: what it should be.
        min_learning_rate: least step size.
        max_learning_rate: greatest step size.

    Returns:
        The state with the new step size, and that.

    Source: Rudin et al. 2021 (2109.11978), appendix A.
    """
    rate = optax.tree.get(optimizer_state, "learning_rate")
    slower = kl_mean > 2.0 * desired_kl
    faster = (kl_mean > 0.0) & (kl_mean < 0.5 * desired_kl)
    rate = jnp.where(slower, rate / 1.5, jnp.where(faster, rate * 1.5, rate))
    rate = jnp.clip(rate, min_learning_rate, max_learning_rate)
    return optax.tree.set(optimizer_state, learning_rate=rate), rate
