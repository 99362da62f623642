"""Environments without physics, and small settings, for tests of agents."""

import jax
import jax.numpy as jnp

from brax.env import Env, State

SMALL = {
    "episode_length": 20,
    "num_envs": 16,
    "batch_size": 16,
    "num_minibatches": 2,
    "unroll_length": 5,
    "num_updates_per_batch": 4,
    "num_eval_envs": 64,
    "normalize_observations": True,
    "discounting": 0.9,
    "learning_rate": 5e-3,
    "network_factory": {
        "policy_hidden_layer_sizes": [16],
        "value_hidden_layer_sizes": [16],
    },
}
"""Settings of PPO that all tests start from, so that few programs are compiled."""

STEP = 160
"""Environment steps of one training step with these settings."""


class Point(Env):
    """A point on a line that is paid for being near the origin; it moves by its action.

    An episode of 20 steps earns at most 20, and 10 on average by doing nothing.
    """

    action_size = 1

    def reset(self, rng: jax.Array) -> State:
        x = jax.random.uniform(rng, (2,), minval=-1.0, maxval=1.0)
        zero = jnp.zeros(())
        return State(x, x, zero, zero, {"distance": zero}, {})

    def step(self, state: State, action: jax.Array) -> State:
        x = state.pipeline_state
        x = jnp.stack([jnp.clip(x[0] + 0.2 * action[0], -2.0, 2.0), x[1]])
        distance = jnp.abs(x[0])
        return state.replace(
            pipeline_state=x, obs=x, reward=1.0 - distance, metrics={"distance": distance}
        )
