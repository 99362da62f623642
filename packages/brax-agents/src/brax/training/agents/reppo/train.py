"""The function `train` of REPPO."""

from typing import Unpack

from brax.env import Env
from brax.training.agents.reppo import REPPO
from brax.training.agents.settings import REPPOSettings
from brax.training.policies import ActorCriticParams
from brax.training.train_function import Trained, documented


@documented(REPPO, ActorCriticParams, source="Voelcker et al. 2025 (2507.11019)")
def train(
    environment: Env, num_timesteps: int, **settings: Unpack[REPPOSettings]
) -> Trained[ActorCriticParams]:
    """Train a policy with REPPO."""
    return REPPO.train(environment, num_timesteps=num_timesteps, **settings)
