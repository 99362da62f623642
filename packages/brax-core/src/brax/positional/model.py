"""The constants of a model, in the layout of the positional pipeline's kernels."""

from typing import NamedTuple

import jax

from brax.base import System
from brax.forces.external import ExternalForces
from brax.maximal.links import Masses, Stack, masses, stacks
from brax.tree import Layout


class PositionalModel(NamedTuple):
    """Constants of all links and joints."""

    links: Masses
    """Masses and inertias of the links, in the layout's order."""
    stacks: tuple[Stack, ...]
    """Constants of the joints, by stack."""


class PositionalProblem(NamedTuple):
    """The inputs of a step other than the state."""

    sys: System
    """The model, its leaves with a trailing batch axis."""
    plan: Layout
    """The layout of the links."""
    model: PositionalModel
    """The model's constants."""
    act: jax.Array
    """Controls, (nu, batch)."""
    external: ExternalForces
    """External forces and fluid."""


def constants(sys: System, plan: Layout) -> PositionalModel:
    """Return the constants of a system with a trailing batch axis."""
    links = masses(sys, plan)
    return PositionalModel(links, stacks(sys, plan, links))
