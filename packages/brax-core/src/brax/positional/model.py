"""The constants of a model as the positional pipeline's kernels want them."""

from typing import NamedTuple

import jax

from brax.base import System
from brax.forces.external import ExternalForces
from brax.maximal.links import Masses, Stack, masses, stacks
from brax.tree import Layout


class PositionalModel(NamedTuple):
    """Constants of all links and of the stacks of joints."""

    links: Masses
    stacks: tuple[Stack, ...]


class PositionalProblem(NamedTuple):
    """All that a step knows beside the state."""

    sys: System
    plan: Layout
    model: PositionalModel
    act: jax.Array
    external: ExternalForces


def constants(sys: System, plan: Layout) -> PositionalModel:
    """Takes a system with a trailing batch axis apart."""
    links = masses(sys, plan)
    return PositionalModel(links, stacks(sys, plan, links))
