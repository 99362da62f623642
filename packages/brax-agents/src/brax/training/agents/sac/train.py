"""The function `train` of SAC."""

from typing import Unpack

from brax.env import Env
from brax.training.agents.sac import SAC
from brax.training.agents.settings import SACSettings
from brax.training.policies import PolicyParams
from brax.training.train_function import Trained, documented


@documented(SAC, PolicyParams, source="Haarnoja et al. 2018 (1812.05905)")
def train(
    environment: Env, num_timesteps: int, **settings: Unpack[SACSettings]
) -> Trained[PolicyParams]:
    """Train a policy with SAC. The steps that first fill the replay buffer count."""
    return SAC.train(environment, num_timesteps=num_timesteps, **settings)
