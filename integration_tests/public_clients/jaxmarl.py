# /// script
# dependencies = ["jaxmarl"]
# ///
"""`ant_4x2` of MABrax, four agents on one ant: reset and steps."""

import jax
from jaxmarl import make

env = make("ant_4x2")
key = jax.random.PRNGKey(0)
obs, state = jax.jit(env.reset)(key)
step = jax.jit(env.step)
for _ in range(5):
    actions = {agent: env.action_space(agent).sample(key) for agent in env.agents}
    obs, state, reward, done, info = step(key, state, actions)
assert set(reward) >= set(env.agents)
