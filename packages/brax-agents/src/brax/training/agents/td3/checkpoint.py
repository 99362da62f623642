"""Policies and parameters of TD3 in checkpoints: load_policy, load, save and network_config."""

from brax.training.agents.td3 import TD3

load_policy = TD3.load_policy
load, save, network_config = TD3.load, TD3.save, TD3.network_config
