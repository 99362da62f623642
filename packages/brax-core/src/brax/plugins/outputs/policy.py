"""Policies with memory: what every place that steps a policy needs to know about them.

A policy with memory has the attribute `memory_size`, takes `policy(observation, key, memory)` and
returns the memory of the next step as `extras["memory"]`.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def first_memory(policy: Callable[..., object], *batch: int) -> tuple[jax.Array, ...]:
    """Return the memory before the first step of an episode, for `act`.

    Args:
        policy: the policy.
        *batch: leading axes, those of the observations; none for a single observation.

    Returns:
        `(memory,)`, zeros of shape (*batch, memory_size), or `()` for a policy without memory.
    """
    size = getattr(policy, "memory_size", 0)
    return (jnp.zeros((*batch, size)),) if size else ()


def act(
    policy: Callable[..., Any], observation: object, key: jax.Array, memory: tuple[jax.Array, ...]
) -> tuple[jax.Array, tuple[jax.Array, ...]]:
    """Return a policy's action and the memory after it.

    Args:
        policy: the policy.
        observation: what it acts on.
        key: random key.
        memory: the result of `first_memory`, or of the last call in the same episode.
    """
    action, extras = policy(observation, key, *memory)
    return action, ((extras["memory"],) if memory else ())
