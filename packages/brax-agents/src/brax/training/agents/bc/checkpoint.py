"""Policies and parameters of BC in checkpoints: load_policy, load, save and network_config."""

from brax.training.agents.bc import BC

load_policy = BC.load_policy
load, save, network_config = BC.load, BC.save, BC.network_config
