"""The function `train` of ES."""

from typing import TYPE_CHECKING

from brax.training._removed import explain_removed
from brax.training.agents.es import ES
from brax.training.agents.es.config import FitnessShaping as FitnessShaping
from brax.training.policies import PolicyParams
from brax.training.train_function import make_train_function

train = make_train_function(
    ES,
    PolicyParams,
    summary="Train a policy with evolution strategies.",
    source="Salimans et al. 2017 (1703.03864)",
)

if not TYPE_CHECKING:  # type checkers would take any name for one of this module's
    __getattr__ = explain_removed(__name__)
