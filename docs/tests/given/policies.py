"""An agent that was trained a little, for policies.md."""

from brax import envs
from brax.training.agents.es import train as es

env = envs.get_environment("inverted_pendulum")
make_policy, params, _ = es.train(env, num_timesteps=0, episode_length=10)
