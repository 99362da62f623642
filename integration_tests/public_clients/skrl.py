# /// script
# dependencies = ["skrl[jax]", "playground", "mujoco-mjx"]
# ///
"""`load_playground_env` and `wrap_env`: CartpoleBalance, reset and steps."""

import jax.numpy as jnp
from skrl.envs.loaders.jax import load_playground_env
from skrl.envs.wrappers.jax import wrap_env

env = wrap_env(load_playground_env(task_name="CartpoleBalance", num_envs=4, episode_length=10))
obs, _ = env.reset()
for _ in range(12):
    obs, reward, terminated, truncated, info = env.step(jnp.zeros((4, 1)))
assert obs.shape[0] == 4 and reward.shape == (4, 1)
