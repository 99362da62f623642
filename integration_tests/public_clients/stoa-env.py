# /// script
# dependencies = ["stoa-env"]
# ///
"""`BraxToStoa`, Stoix's adapter, steps the ant over the end of an episode."""

import jax
import jax.numpy as jnp
from stoa.env_adapters.brax import BraxToStoa

from brax import envs

env = BraxToStoa(envs.create("ant", episode_length=3))
state, timestep = jax.jit(env.reset)(jax.random.PRNGKey(0))
step = jax.jit(env.step)
for _ in range(4):
    state, timestep = step(state, jnp.zeros(8))
print(timestep.step_type)
