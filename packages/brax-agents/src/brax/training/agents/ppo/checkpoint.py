"""PPO's policies out of checkpoints."""

from brax.training.agents.ppo.trainer import PPO

load_policy = PPO.load_policy
