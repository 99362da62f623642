"""BC's policies and parameters, in checkpoints."""

from brax.training.agents.bc import BC

load_policy = BC.load_policy
load, save, network_config = BC.load, BC.save, BC.network_config
