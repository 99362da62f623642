"""The function `train` of ARS."""

from typing import Unpack

from brax.env import Env
from brax.training.agents.ars import ARS
from brax.training.agents.settings import ARSSettings
from brax.training.policies import PolicyParams
from brax.training.train_function import Trained, documented


@documented(ARS, PolicyParams, source="Mania et al. 2018 (1803.07055)")
def train(
    environment: Env, num_timesteps: int, **settings: Unpack[ARSSettings]
) -> Trained[PolicyParams]:
    """Train a policy with augmented random search."""
    return ARS.train(environment, num_timesteps=num_timesteps, **settings)
