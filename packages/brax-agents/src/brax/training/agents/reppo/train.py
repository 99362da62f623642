"""The function `train` of REPPO."""

from brax.training.agents.reppo import REPPO
from brax.training.policies import ActorCriticParams
from brax.training.train_function import make_train_function

train = make_train_function(
    REPPO,
    ActorCriticParams,
    summary="Train a policy with REPPO.",
    source="Voelcker et al. 2025 (2507.11019)",
)
