"""Policies and parameters of ARS in checkpoints: load_policy, load, save and network_config."""

from brax.training.agents.ars import ARS

load_policy = ARS.load_policy
load, save, network_config = ARS.load, ARS.save, ARS.network_config
