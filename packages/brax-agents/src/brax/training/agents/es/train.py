"""The function `train` of ES."""

from typing import TYPE_CHECKING, Unpack

from brax.env import Env
from brax.training._removed import explain_removed
from brax.training.agents.es import ES
from brax.training.agents.es.config import FitnessShaping as FitnessShaping
from brax.training.agents.settings import ESSettings
from brax.training.policies import PolicyParams
from brax.training.train_function import Trained, documented


@documented(ES, PolicyParams, source="Salimans et al. 2017 (1703.03864)")
def train(
    environment: Env, num_timesteps: int, **settings: Unpack[ESSettings]
) -> Trained[PolicyParams]:
    """Train a policy with evolution strategies."""
    return ES.train(environment, num_timesteps=num_timesteps, **settings)


if not TYPE_CHECKING:  # type checkers would take any name for one of this module's
    __getattr__ = explain_removed(__name__)
