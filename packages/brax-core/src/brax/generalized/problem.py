"""What a step of the generalized pipeline knows, and what it changes."""

from typing import NamedTuple

import jax

from brax.base import System
from brax.forces.external import ExternalForces
from brax.generalized.constraints.constraint_layout import ConstraintLayout
from brax.generalized.constraints.evaluation import Softness
from brax.impulses import Impulses
from brax.tree import Layout


class GeneralizedProblem(NamedTuple):
    """All that does not change during a step."""

    sys: System
    links: Layout
    plan: ConstraintLayout
    soft: Softness
    act: jax.Array
    external: ExternalForces


class StepState(NamedTuple):
    """The state inside a step."""

    q: jax.Array
    qd: jax.Array
    warmstart: jax.Array
    activation: jax.Array | None
    overflow: jax.Array | None = None
    """The most contacts so far that were not followed, (batch,); None where all are."""
    acted: Impulses | None = None
    """The impulses so far of the step; None if nobody asks for them."""
