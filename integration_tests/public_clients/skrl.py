# /// script
# dependencies = ["skrl[jax]", "playground", "mujoco-mjx"]
# ///
"""`load_playground_env` and `wrap_env`: CartpoleBalance, reset and steps."""

import jax.numpy as jnp
from skrl.envs.loaders.jax import load_playground_env
from skrl.envs.wrappers.jax import wrap_env

# On a CPU, a process that uses Warp (1.19), the default, in Playground's wrapper does not end, also
# with Google's brax: jaxlib (0.10.2) waits for a thread.
made = load_playground_env(
    task_name="CartpoleBalance", num_envs=4, episode_length=10, cfg_overrides={"impl": "jax"}
)
env = wrap_env(made)
obs, _ = env.reset()
for _ in range(12):
    obs, reward, terminated, truncated, info = env.step(jnp.zeros((4, 1)))
assert obs.shape[0] == 4 and reward.shape == (4, 1)
