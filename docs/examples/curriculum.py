"""A curriculum: targets move away as the agent learns to reach them.

A slow cart earns 1 in each step within 5 cm of its target, and otherwise nothing. Random actions
move it by some 20 cm, so with targets 1.5 m away from the start, an agent finds a reward only by
chance. With targets at 0.2 m first, it finds many. The program prints what the agent earns with
targets at 1.5 m after the last stage: more than 15, of about 28 that are possible.
"""

import jax
import jax.numpy as jnp
from cart import Cart

from brax.training.agents.ppo import train as ppo


class SparseCart(Cart):
    """The cart of cart.py with much damping, `reach` from its target, left or right."""

    def __init__(self, reach):
        super().__init__(reach=reach)
        self.sys = self.sys.replace(dof_damping=jnp.array([5.0]))  # so it drives at most 1 m/s

    def reset(self, rng):
        """Start at rest in the middle."""
        state = super().reset(rng)
        target = jnp.where(jax.random.bernoulli(rng), self.reach, -self.reach)
        obs = self.observe(state.pipeline_state, target)
        return state.replace(obs=obs, info={"target": target})

    def step(self, state, action):
        """Advance by 0.05 s; the reward is 1 at the target."""
        state = super().step(state, action)
        return state.replace(reward=jnp.where(state.metrics["distance"] < 0.05, 1.0, 0.0))


def train(reach, num_timesteps, params=None):
    """Continue training with targets at `reach`; return parameters and the return for 1.5 m."""
    _, params, metrics = ppo.train(
        SparseCart(reach),
        eval_env=SparseCart(1.5),
        restore_params=params,
        num_timesteps=num_timesteps,
        episode_length=60,
        num_envs=128,
        batch_size=128,
        num_minibatches=8,
        num_updates_per_batch=4,
        unroll_length=10,
        learning_rate=2e-3,
        discounting=0.95,
        entropy_cost=3e-3,
        deterministic_eval=True,
        network_factory={"policy_hidden_layer_sizes": [16, 16]},
    )
    return params, metrics["eval/episode_reward"]


params = None
for reach in (0.2, 0.5, 1.0, 1.5):
    params, earned = train(reach, 100_000, params)
print(f"return {earned:.1f}")
