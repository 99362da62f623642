"""SHAC's policies out of checkpoints."""

from brax.training.agents.shac.trainer import SHAC

load_policy = SHAC.load_policy
