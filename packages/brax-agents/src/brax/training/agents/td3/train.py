"""The function `train` of TD3."""

from typing import Unpack

from brax.env import Env
from brax.training.agents.settings import TD3Settings
from brax.training.agents.td3 import TD3
from brax.training.policies import PolicyParams
from brax.training.train_function import Trained, documented


@documented(
    TD3, PolicyParams, source="Fujimoto et al. 2018 (1802.09477), Seo et al. 2025 (2505.22642)"
)
def train(
    environment: Env, num_timesteps: int, **settings: Unpack[TD3Settings]
) -> Trained[PolicyParams]:
    """Train a policy with TD3. The steps that first fill the replay buffer count."""
    return TD3.train(environment, num_timesteps=num_timesteps, **settings)
