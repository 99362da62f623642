"""The function `train` of ARS."""

from brax.training.agents.ars import ARS
from brax.training.policies import PolicyParams
from brax.training.train_function import make_train_function

train = make_train_function(
    ARS,
    PolicyParams,
    summary="Train a policy with augmented random search.",
    source="Mania et al. 2018 (1803.07055)",
)
