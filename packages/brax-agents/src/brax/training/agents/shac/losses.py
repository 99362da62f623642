"""What SHAC's policy is improved by."""

import jax
import jax.numpy as jnp


def short_horizon_return(
    rewards: jax.Array,
    termination: jax.Array,
    truncation: jax.Array,
    next_values: jax.Array,
    discount: float,
) -> jax.Array:
    """Adds up what the episodes in a window earn, discounted from where each begins in it.

    Args:
        rewards: rewards, time first, (time, n), as all of these.
        termination: 1 where an episode ended of itself: nothing comes after it.
        truncation: 1 where it was cut by the time limit: the value of what would come counts.
        next_values: values of the true observations after each step.
        discount: discount of one step.

    Returns:
        The sum of the returns, shape (n,); each ends with the value of where it stopped.

    Source: Xu et al. 2022 (2204.07137), eq. 5.
    """
    goes_on = (1.0 - termination) * (1.0 - truncation)

    def back(
        carry: tuple[jax.Array, jax.Array], step: tuple[jax.Array, ...]
    ) -> tuple[tuple[jax.Array, jax.Array], None]:
        later, total = carry
        reward, goes_on, truncation, next_value = step
        total = total + (1.0 - goes_on) * later  # an episode that begins after this step
        after = goes_on * later + truncation * next_value
        return (reward + discount * after, total), None

    steps = (rewards, goes_on, truncation, next_values)
    last = goes_on[-1] * next_values[-1]  # nothing begins after the window
    (first, total), _ = jax.lax.scan(back, (last, jnp.zeros_like(last)), steps, reverse=True)
    return first + total
