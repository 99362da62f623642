"""The function `train` of BC."""

from brax.training.agents.bc import BC
from brax.training.policies import PolicyParams
from brax.training.train_function import make_train_function

train = make_train_function(
    BC,
    PolicyParams,
    summary="Train a policy to act as a teacher does in the states that its own actions lead to.",
    source="Ross, Gordon, Bagnell 2011 (1011.0686)",
    training_steps="dagger_steps",
    environment="env",
)
