"""The function `train` of SHAC."""

from brax.training.agents.shac import SHAC
from brax.training.policies import ActorCriticParams
from brax.training.train_function import make_train_function

train = make_train_function(
    SHAC,
    ActorCriticParams,
    summary="Train a policy with SHAC.",
    source="Xu et al. 2022 (2204.07137)",
)
