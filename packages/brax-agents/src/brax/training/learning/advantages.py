"""Advantages of actions and targets of values: GAE and V-trace, in `compute_gae`."""

import jax
import jax.numpy as jnp

UNROLLED = 8
"""Steps of the sum over time that are unrolled."""


def compute_gae(
    truncation: jax.Array,
    termination: jax.Array,
    rewards: jax.Array,
    values: jax.Array,
    bootstrap_value: jax.Array,
    lambda_: float = 0.95,
    discount: float = 0.99,
    timeout_value: jax.Array | None = None,
    estimator: str = "v_trace",
) -> tuple[jax.Array, jax.Array]:
    """Return value targets, and advantages by V-trace (the default) or GAE.

    Every array is (time, n). Actions come from the current policy, so V-trace's ratios are 1, and
    its targets are the values plus GAE's sums.

    Args:
        truncation: 1 where the time limit cut an episode.
        termination: 1 where an episode terminated.
        rewards: rewards.
        values: values of the observations before each step.
        bootstrap_value: values after the last step, (n,).
        lambda_: weight of longer returns.
        discount: discount factor of one step.
        timeout_value: values after each step, used where it was truncated. Without it truncated
            steps teach nothing: their advantage is 0 and their target the value itself.
        estimator: `v_trace` for advantages `r[t] + discount V'[t+1] - V[t]`, `gae` for GAE's own,
            `V'[t] - V[t]`, with the same targets `V'` in both.

    Returns:
        Targets `V'` and advantages, both without gradient.

    Source: Schulman et al. 2016 (GAE), eq. 16; Espeholt et al. 2018 (V-trace), section 4.2.
    """
    # Without a value for the last observation, the next row, of another episode, must not count.
    weight = 1.0 - truncation if timeout_value is None else jnp.ones_like(rewards)
    known = jnp.zeros_like(rewards) if timeout_value is None else truncation * timeout_value
    continues = (1.0 - termination) * (1.0 - truncation)

    def after(later: jax.Array) -> jax.Array:
        """Return the discounted value after a step: the later value if the episode continues."""
        return discount * (continues * later + known)

    next_values = jnp.concatenate([values[1:], bootstrap_value[None]])
    # GAE's temporal difference: delta_t = r_t + discount V(s_t+1) - V(s_t).
    deltas = weight * (rewards + after(next_values) - values)

    def back(sum_: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        delta, continues = step
        # GAE eq. 16 as a recursion from the end. The sum stops at the end of an episode.
        sum_ = delta + discount * lambda_ * continues * sum_
        return sum_, sum_

    start = jnp.zeros_like(bootstrap_value)
    # Unrolled in part: one iteration is a handful of operations, less than a loop's own cost.
    steps = deltas, continues
    _, corrections = jax.lax.scan(back, start, steps, reverse=True, unroll=UNROLLED)
    # V-trace eq. 1 on policy: with ratios of 1 its target is V plus GAE's sum.
    targets = corrections + values
    if estimator == "gae":
        return jax.lax.stop_gradient(targets), jax.lax.stop_gradient(corrections)
    next_targets = jnp.concatenate([targets[1:], bootstrap_value[None]])
    # V-trace section 4.2: the one-step advantage with the next target in place of the next value.
    advantages = weight * (rewards + after(next_targets) - values)
    return jax.lax.stop_gradient(targets), jax.lax.stop_gradient(advantages)
