"""Types of a step of the generalized pipeline: what is constant during it, and what changes."""

from typing import NamedTuple

import jax

from brax.base import System
from brax.forces.external import ExternalForces
from brax.generalized.constraints.constraint_layout import ConstraintLayout
from brax.generalized.constraints.evaluation import Softness
from brax.impulses import Impulses
from brax.tree import Layout


class GeneralizedProblem(NamedTuple):
    """Everything that does not change during a step."""

    sys: System
    """The model, its leaves with a trailing batch axis."""
    links: Layout
    """The layout of the links in kernels."""
    plan: ConstraintLayout
    """The blocks of degrees of freedom, and the constraint rows on them."""
    soft: Softness
    """The softness parameters of all constraints."""
    act: jax.Array
    """Controls, (nu, batch)."""
    external: ExternalForces
    """Fluid, gravity compensation and the user's wrenches on links."""


class StepState(NamedTuple):
    """The state inside a step, batch last."""

    q: jax.Array
    """Coordinates, MuJoCo's `qpos`, (nq, batch)."""
    qd: jax.Array
    """Rates, MuJoCo's `qvel`, (nv, batch)."""
    warmstart: jax.Array
    """The last accelerations of the solver, MuJoCo's `qacc_warmstart`, (nv, batch)."""
    activation: jax.Array | None
    """Activations of the actuators, MuJoCo's `act`, (na, batch); None if there are none."""
    overflow: jax.Array | None = None
    """The largest number of contacts so far that the lists left out, (batch,); None without
    lists."""
    acted: Impulses | None = None
    """The impulses of the step so far; None if nobody asks for them."""
