"""SAC's policies out of checkpoints."""

from brax.training.agents.sac.trainer import SAC

load_policy = SAC.load_policy
