"""Policies and parameters of REPPO in checkpoints: load_policy, load, save and network_config."""

from brax.training.agents.reppo import REPPO

load_policy = REPPO.load_policy
load, save, network_config = REPPO.load, REPPO.save, REPPO.network_config
