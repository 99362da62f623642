"""The function `train` of SAC."""

from brax.training.agents.sac import SAC
from brax.training.policies import PolicyParams
from brax.training.train_function import make_train_function

train = make_train_function(
    SAC,
    PolicyParams,
    summary="Train a policy with SAC. The steps that first fill the replay buffer count.",
    source="Haarnoja et al. 2018 (1812.05905)",
)
