"""Policies and parameters of PPO in checkpoints: load_policy, load, save and network_config."""

from brax.training.agents.ppo import PPO

load_policy = PPO.load_policy
load, save, network_config = PPO.load, PPO.save, PPO.network_config
