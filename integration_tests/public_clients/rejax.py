# /// script
# dependencies = ["rejax", "gymnax<1"]
# ///
"""PPO trains `brax/inverted_pendulum`, evaluated twice."""

import jax
from rejax import get_algo

settings = {
    "env": "brax/inverted_pendulum",
    "total_timesteps": 2000,
    "eval_freq": 1000,
    "num_envs": 4,
    "num_steps": 25,
    "num_minibatches": 2,
    "num_epochs": 2,
    "agent_kwargs": {"activation": "relu"},
}
algorithm = get_algo("ppo").create(**settings)
_, evaluation = jax.jit(algorithm.train)(jax.random.key(0))
print(evaluation[1].mean(1))
