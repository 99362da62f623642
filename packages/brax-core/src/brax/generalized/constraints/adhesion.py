"""Adhesion: actuators that pull a body toward everything that it touches.

The force of an actuator is shared evenly by the contacts of its body. Each share pulls the two
geoms together along the normal. Contacts count within their margin, and beyond it within their gap,
where nothing yet pushes them apart. Without a contact there is no force.

Source: MuJoCo's documentation, chapter XML reference, actuator/adhesion.
"""

import jax
import jax.numpy as jnp
import numpy as np

from brax.actuators.actuator_forces import ActuatorsAtState
from brax.base import System
from brax.components import rows
from brax.generalized.constraints.constraint_laws import Along
from brax.generalized.constraints.constraint_layout import (
    CONTACT,
    LISTED_CONTACT,
    ConstraintFamily,
)
from brax.generalized.constraints.contact import FamilyContacts, ModelContacts, family_contacts
from brax.generalized.newton import Constraints, ConstraintVector, Solver
from brax.generalized.problem import GeneralizedProblem


def adhering(sys: System) -> tuple[int, ...]:
    """Return the actuators of adhesion."""
    return tuple(a for a, body in enumerate(sys.actuator_body) if body is not None)


def adhesion(
    problem: GeneralizedProblem,
    solver: Solver,
    constraints: Constraints,
    contacts: ModelContacts,
    driven: ActuatorsAtState,
    like: jax.Array,
) -> jax.Array:
    """Return the force of adhesion along the degrees of freedom.

    Args:
        problem: what is constant during the step; some actuator is an adhesion.
        solver: the solver of its constraints.
        constraints: the constraints at the state.
        contacts: the contacts at it.
        driven: the actuators at it.
        like: an array of the shape of the result.

    Returns:
        Shape (nv, batch), in the order of elimination.
    """
    sys, families = problem.sys, problem.plan.families
    near = [
        _near(sys, family, family_contacts(sys, family, soft, contacts))
        if family.kind in (CONTACT, LISTED_CONTACT)
        else None
        for family, soft in zip(families, problem.soft.families, strict=True)
    ]
    count = sum(jnp.sum(mine, axis=1) for mine in near if mine is not None)
    # The contacts are counted over all families; without any the force goes nowhere, and 1 avoids 0
    # / 0.
    share = rows(driven.force, adhering(sys)) / jnp.maximum(count, 1)
    pulls = tuple(
        _along(mine, share, joined.aref)
        for mine, joined in zip(near, constraints.families, strict=True)
    )
    # Jᵀf with the rows that the contacts have already: adhesion needs no Jacobian of its own.
    return solver.apply_transpose(
        constraints, ConstraintVector(jnp.zeros_like(constraints.signs), pulls), like
    )


def _near(sys: System, family: ConstraintFamily, contacts: FamilyContacts) -> jax.Array:
    """Return whether each contact is one of each adhering body, (actuators, slots, batch)."""
    bodies = [sys.actuator_body[a] for a in adhering(sys)]
    of_body = jnp.asarray([[mine == body for mine in sys.geom_body] for body in bodies])
    first, second = (of_body[:, geoms] for geoms in contacts.geoms)
    close = contacts.touch.dist < contacts.soft.margin + contacts.soft.gap
    # An empty slot holds a copy of some contact, which must not be counted twice.
    real = np.isin(np.arange(len(family.order)), list(family.places.values()))
    return (first | second) & close & real[:, None]


def _along(near: jax.Array | None, share: jax.Array, like: Along) -> Along:
    """Return the pulls along a family's directions, of which the first is the normal."""
    normal, *across = map(jnp.zeros_like, like)
    if near is not None:
        # A contact pushes along the normal; adhesion pulls.
        normal = -jnp.sum(jnp.where(near, share[:, None], 0.0), axis=0)
    return (normal, *across)
