"""The likelihood-ratio estimate of a policy's gradient, beside the one through the simulator.

Where a reward jumps, or an episode ends, the derivative through the simulator has no share in it;
this one has. It has more noise.

Source: Williams (1992), Simple Statistical Gradient-Following Algorithms; mixed with the other as
in Suh et al. 2022 (2202.00817).
"""

from typing import Any

import jax
import jax.numpy as jnp

from brax.training import types


def likelihood(
    networks: Any, normalizer: Any, policy: Any, data: types.Transition, advantage: jax.Array
) -> jax.Array:
    """What has the estimate as its derivative by the policy; its value means nothing.

    Args:
        networks: with `policy_network` and `parametric_action_distribution`.
        normalizer: statistics of observations.
        policy: the policy's parameters.
        data: transitions with the policy's extras, (time, n).
        advantage: how much more than expected each action earned, (time, n).
    """
    observation, raw, advantage = jax.lax.stop_gradient(
        (data.observation, data.extras["policy_extras"]["raw_action"], advantage)
    )
    logits = networks.policy_network.apply(normalizer, policy, observation)
    log_prob = networks.parametric_action_distribution.log_prob(logits, raw)
    return jnp.mean(log_prob * advantage)


def mixed(value: jax.Array, other: jax.Array, share: float) -> jax.Array:
    """A value, of whose derivative a share is that of another, such as its `likelihood`.

    With all of it, the value is not differentiated, which costs most.
    """
    if share == 1.0:
        return jax.lax.stop_gradient(value - other) + other
    slope = (1.0 - share) * value + share * other
    return jax.lax.stop_gradient(value - slope) + slope
