"""SHAC's loss of the policy: the short-horizon return that it maximizes."""

import jax
import jax.numpy as jnp


def short_horizon_return(
    rewards: jax.Array,
    termination: jax.Array,
    truncation: jax.Array,
    next_values: jax.Array,
    discount: float,
) -> jax.Array:
    """Return the sum of the discounted returns of the episodes in a window, shape (n,).

    Each episode is discounted from its first step in the window, and ends with the value of the
    observation where the window or the time limit cuts it.

    Args:
        rewards: rewards, (time, n), like the next three.
        termination: 1 where an episode terminated: nothing comes after it.
        truncation: 1 where the time limit cut an episode: the value of the rest counts.
        next_values: values of the true observations after each step.
        discount: discount factor of one step.

    Source: Xu et al. 2022 (2204.07137), eq. 5.
    """
    goes_on = (1.0 - termination) * (1.0 - truncation)

    def back(
        carry: tuple[jax.Array, jax.Array], step: tuple[jax.Array, ...]
    ) -> tuple[tuple[jax.Array, jax.Array], None]:
        # From the last step backwards: `later` is the return after this step within its episode,
        # `total` the sum of the returns of episodes that begin later in the window.
        later, total = carry
        reward, goes_on, truncation, next_value = step
        total = total + (1.0 - goes_on) * later  # an episode that begins after this step
        after = goes_on * later + truncation * next_value
        return (reward + discount * after, total), None

    steps = (rewards, goes_on, truncation, next_values)
    last = goes_on[-1] * next_values[-1]  # nothing begins after the window
    (first, total), _ = jax.lax.scan(back, (last, jnp.zeros_like(last)), steps, reverse=True)
    return first + total
