"""Distributions of actions, under the path that users import."""

from brax.training.nn.distribution import NormalDistribution as NormalDistribution
from brax.training.nn.distribution import NormalTanhDistribution as NormalTanhDistribution
from brax.training.nn.distribution import ParametricDistribution as ParametricDistribution
from brax.training.nn.distribution import of_type as of_type
