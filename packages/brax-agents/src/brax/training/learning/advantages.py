"""Advantages of actions, and targets of values, from stretches of experience."""

import jax
import jax.numpy as jnp


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
        estimator: `v_trace` for advantages `r + discount vs[t+1] - V[t]`, `gae` for GAE's own,
            `vs[t] - V[t]`; the targets are the same.

    Returns:
        Targets `vs` and advantages, both without gradient.

    Source: Schulman et al. 2016 (GAE), eq. 16; Espeholt et al. 2018 (V-trace), section 4.2, on
    policy.
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
    if estimator == "gae":
        return jax.lax.stop_gradient(vs), jax.lax.stop_gradient(corrections)
    next_vs = jnp.concatenate([vs[1:], bootstrap_value[None]])
    advantages = weight * (rewards + after(next_vs) - values)
    return jax.lax.stop_gradient(vs), jax.lax.stop_gradient(advantages)
