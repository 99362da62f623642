"""PPO's optimizer, with a learning rate that can follow the KL divergence of the policy or fall."""

import enum
from typing import Any

import jax
import jax.numpy as jnp
import optax

from brax.training.learning import schedules


class LRSchedule(enum.StrEnum):
    """The schedules of PPO's learning rate."""

    NONE = "NONE"
    ADAPTIVE_KL = "ADAPTIVE_KL"
    LINEAR = schedules.LINEAR


def make_optimizer(config: Any) -> optax.GradientTransformation:
    """Return Adam behind gradient clipping by the global norm, from PPO's settings."""
    clip = [optax.clip_by_global_norm(config.max_grad_norm)] if config.max_grad_norm else []
    if config.learning_rate_schedule != LRSchedule.ADAPTIVE_KL:
        updates = config.num_updates_per_batch * config.num_minibatches
        return optax.chain(*clip, optax.adam(schedules.learning_rate(config, updates)))
    # Injected, the learning rate is a number in the optimizer's state, so that it can change
    # without a compilation and is part of checkpoints.
    adam = optax.inject_hyperparams(optax.adam)(learning_rate=config.learning_rate)
    return optax.chain(*clip, adam)


def adaptive_kl_learning_rate(
    optimizer_state: object,
    kl_mean: jax.Array,
    desired_kl: float,
    min_learning_rate: float = 1e-5,
    max_learning_rate: float = 1e-2,
) -> tuple[Any, jax.Array]:
    """Divide the learning rate by 1.5 if the policy moved too far, multiply by 1.5 if too little.

    Too far is a KL divergence above twice `desired_kl`, too little one below half of it.

    Args:
        optimizer_state: state of an optimizer that keeps `learning_rate` in it.
        kl_mean: mean KL divergence of the current policy from the one that acted.
        desired_kl: KL divergence to aim at.
        min_learning_rate: lower bound of the learning rate.
        max_learning_rate: upper bound of the learning rate.

    Returns:
        The state with the new learning rate, and the learning rate.

    Source: Rudin et al. 2021 (2109.11978), appendix A.
    """
    rate = optax.tree.get(optimizer_state, "learning_rate")
    slower = kl_mean > 2.0 * desired_kl
    # Exactly zero is the first update of a training step: nothing has moved yet, which says nothing
    # about the learning rate.
    faster = (kl_mean > 0.0) & (kl_mean < 0.5 * desired_kl)
    rate = jnp.where(slower, rate / 1.5, jnp.where(faster, rate * 1.5, rate))
    rate = jnp.clip(rate, min_learning_rate, max_learning_rate)
    return optax.tree.set(optimizer_state, learning_rate=rate), rate
