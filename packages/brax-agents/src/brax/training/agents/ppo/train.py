"""The function `train` of PPO."""

from brax.training.agents.ppo import PPO
from brax.training.agents.ppo.networks import PPOParams
from brax.training.train_function import make_train_function

train = make_train_function(
    PPO,
    PPOParams,
    summary="Train a policy with PPO.",
    source="Schulman et al. 2017 (1707.06347)",
)
