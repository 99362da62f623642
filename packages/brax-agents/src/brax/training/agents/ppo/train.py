"""The function `train` of PPO."""

from typing import Unpack

from brax.env import Env
from brax.training.agents.ppo import PPO
from brax.training.agents.ppo.networks import PPOParams
from brax.training.agents.settings import PPOSettings
from brax.training.train_function import Trained, documented


@documented(PPO, PPOParams, source="Schulman et al. 2017 (1707.06347)")
def train(
    environment: Env, num_timesteps: int, **settings: Unpack[PPOSettings]
) -> Trained[PPOParams]:
    """Train a policy with PPO."""
    return PPO.train(environment, num_timesteps=num_timesteps, **settings)
