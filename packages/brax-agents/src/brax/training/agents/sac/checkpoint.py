"""Policies and parameters of SAC in checkpoints: load_policy, load, save and network_config."""

from brax.training.agents.sac import SAC

load_policy = SAC.load_policy
load, save, network_config = SAC.load, SAC.save, SAC.network_config
