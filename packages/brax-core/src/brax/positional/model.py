"""The constants of a model as the positional pipeline's kernels want them."""

from typing import NamedTuple

import jax

from brax.base import System
from brax.forces.external import ExternalForces
from brax.maximal.links import Masses, Stack, masses, stacks
from brax.tree import Layout


class Model(NamedTuple):
    """Constants of all links and of the stacks of joints."""

    links: Masses
    stacks: tuple[Stack, ...]


class Problem(NamedTuple):
    """All that a step knows beside the state."""

    sys: System
    plan: Layout
    model: Model
    act: jax.Array
    surroundings: ExternalForces


def constants(sys: System, plan: Layout) -> Model:
    """Takes a system with a trailing batch axis apart."""
    links = masses(sys, plan)
    return Model(links, stacks(sys, plan, links))
