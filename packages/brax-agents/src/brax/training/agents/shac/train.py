"""The function `train` of SHAC."""

from typing import Unpack

from brax.env import Env
from brax.training.agents.settings import SHACSettings
from brax.training.agents.shac import SHAC
from brax.training.policies import ActorCriticParams
from brax.training.train_function import Trained, documented


@documented(SHAC, ActorCriticParams, source="Xu et al. 2022 (2204.07137)")
def train(
    environment: Env, num_timesteps: int, **settings: Unpack[SHACSettings]
) -> Trained[ActorCriticParams]:
    """Train a policy with SHAC."""
    return SHAC.train(environment, num_timesteps=num_timesteps, **settings)
