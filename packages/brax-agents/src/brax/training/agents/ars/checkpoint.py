"""ARS's policies and parameters, in checkpoints."""

from brax.training.agents.ars import ARS

load_policy = ARS.load_policy
load, save, network_config = ARS.load, ARS.save, ARS.network_config
