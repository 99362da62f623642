"""Policies and parameters of ES in checkpoints: load_policy, load, save and network_config."""

from brax.training.agents.es import ES

load_policy = ES.load_policy
load, save, network_config = ES.load, ES.save, ES.network_config
