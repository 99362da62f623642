"""The function `train` of APG."""

from brax.training.agents.apg import APG
from brax.training.policies import PolicyParams
from brax.training.train_function import make_train_function

train = make_train_function(
    APG,
    PolicyParams,
    summary="Train a policy with the gradient of the rewards through the simulator.",
    source="Freeman et al. 2021 (2106.13281), section 4",
    training_steps="policy_updates",
)
