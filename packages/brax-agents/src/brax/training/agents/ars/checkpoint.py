"""ARS's policies out of checkpoints."""

from brax.training.agents.ars.trainer import ARS

load_policy = ARS.load_policy
