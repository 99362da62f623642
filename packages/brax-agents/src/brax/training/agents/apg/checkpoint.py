"""APG's policies out of checkpoints."""

from brax.training.agents.apg.trainer import APG

load_policy = APG.load_policy
