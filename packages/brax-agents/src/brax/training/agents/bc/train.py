"""The function `train` of BC."""

from typing import Unpack

from brax.env import Env
from brax.training.agents.bc import BC
from brax.training.agents.settings import BCSettings
from brax.training.policies import PolicyParams
from brax.training.train_function import Trained, documented


@documented(BC, PolicyParams, source="Ross, Gordon, Bagnell 2011 (1011.0686)")
def train(
    env: Env,
    num_timesteps: int | None = None,
    *,
    dagger_steps: int | None = None,
    **settings: Unpack[BCSettings],
) -> Trained[PolicyParams]:
    """Train a policy to act as a teacher does in the states that its own actions lead to."""
    steps = BC.timesteps(num_timesteps, dagger_steps, "dagger_steps", settings)
    return BC.train(env, num_timesteps=steps, **settings)
