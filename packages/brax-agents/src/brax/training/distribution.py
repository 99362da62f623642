"""Distributions of actions, under the path that users import."""

from typing import TYPE_CHECKING

from brax.training._removed import explain_removed
from brax.training.nn.distribution import NormalDistribution as NormalDistribution
from brax.training.nn.distribution import NormalTanhDistribution as NormalTanhDistribution
from brax.training.nn.distribution import ParametricDistribution as ParametricDistribution
from brax.training.nn.distribution import of_type as of_type

if not TYPE_CHECKING:  # type checkers would take any name for one of this module's
    __getattr__ = explain_removed(__name__)
