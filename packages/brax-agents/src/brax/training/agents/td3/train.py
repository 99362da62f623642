"""The function `train` of TD3."""

from brax.training.agents.td3 import TD3
from brax.training.policies import PolicyParams
from brax.training.train_function import make_train_function

train = make_train_function(
    TD3,
    PolicyParams,
    summary="Train a policy with TD3. The steps that first fill the replay buffer count.",
    source="Fujimoto et al. 2018 (1802.09477), Seo et al. 2025 (2505.22642)",
)
