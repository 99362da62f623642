"""Two short trajectories of the hopper, for viewer.md."""

import jax
import jax.numpy as jnp
import numpy as np

from brax import envs
from brax.colliders import GeometryType

env = envs.get_environment("hopper")
sys = env.sys


def roll(action):
    state = env.reset(jax.random.key(0))

    def step(state, _):
        state = env.step(state, jnp.full(3, action))
        return state, state.pipeline_state

    return jax.lax.scan(step, state, length=3)[1]


states, others = jax.jit(roll)(0.1), jax.jit(roll)(-0.1)
