"""Policies and parameters of APG in checkpoints: load_policy, load, save and network_config."""

from brax.training.agents.apg import APG

load_policy = APG.load_policy
load, save, network_config = APG.load, APG.save, APG.network_config
