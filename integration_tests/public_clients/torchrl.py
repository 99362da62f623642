# /// script
# dependencies = ["torchrl", "torch"]
# ///
"""`BraxEnv` lists the environments, checks its specs, rolls out a batch and differentiates it."""

import torch
from torchrl.envs import BraxEnv, check_env_specs

assert "ant" in BraxEnv.available_envs
env = BraxEnv("inverted_pendulum", batch_size=[3])
check_env_specs(env)
assert env.rollout(5)["next", "reward"].shape == (3, 5, 1)
env = BraxEnv("inverted_pendulum", batch_size=[3], requires_grad=True)
start = env.reset()
start["action"] = torch.zeros(3, 1, requires_grad=True)
env.step(start)["next", "observation"].sum().backward()
assert start["action"].grad.abs().sum() > 0
