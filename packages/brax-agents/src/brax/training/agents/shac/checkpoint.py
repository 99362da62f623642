"""Policies and parameters of SHAC in checkpoints: load_policy, load, save and network_config."""

from brax.training.agents.shac import SHAC

load_policy = SHAC.load_policy
load, save, network_config = SHAC.load, SHAC.save, SHAC.network_config
