"""The function `train` of APG."""

from typing import Unpack

from brax.env import Env
from brax.training.agents.apg import APG
from brax.training.agents.settings import APGSettings
from brax.training.policies import PolicyParams
from brax.training.train_function import Trained, documented


@documented(APG, PolicyParams, source="Freeman et al. 2021 (2106.13281), section 4")
def train(
    environment: Env,
    num_timesteps: int | None = None,
    *,
    policy_updates: int | None = None,
    **settings: Unpack[APGSettings],
) -> Trained[PolicyParams]:
    """Train a policy with the gradient of the rewards through the simulator."""
    steps = APG.timesteps(num_timesteps, policy_updates, "policy_updates", settings)
    return APG.train(environment, num_timesteps=steps, **settings)
