"""BC's policies out of checkpoints."""

from brax.training.agents.bc.trainer import BC

load_policy = BC.load_policy
