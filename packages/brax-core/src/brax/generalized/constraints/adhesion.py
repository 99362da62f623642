"""Adhesion: actuators that pull a body against all that it touches.

An actuator's force is shared evenly by the contacts of its body, and each share pulls the two geoms
together along the normal. Contacts count within their margin, and beyond it within their gap, where
nothing yet pushes them apart. There is no force where there is no contact.

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
    NEAREST_CONTACT,
    ConstraintFamily,
)
from brax.generalized.constraints.contact import FamilyContacts, ModelContacts, family_contacts
from brax.generalized.newton import Constraints, Solver, Violation
from brax.generalized.problem import GeneralizedProblem


def adhering(sys: System) -> tuple[int, ...]:
    """The actuators that let a body adhere."""
    return tuple(a for a, body in enumerate(sys.actuator_body) if body is not None)


def adhesion(
    problem: GeneralizedProblem,
    solver: Solver,
    held: Constraints,
    contacts: ModelContacts,
    driven: ActuatorsAtState,
    like: jax.Array,
) -> jax.Array:
    """What adhesion does along the degrees of freedom.

    Args:
        problem: with an actuator that lets a body adhere.
        solver: of its constraints.
        held: the constraints at the state.
        contacts: the contacts at it.
        driven: the actuators at it.
        like: an array of the shape of what is returned.

    Returns:
        Shape (nv, batch), in the order of elimination.
    """
    sys, families = problem.sys, problem.plan.families
    near = [
        _near(sys, family, family_contacts(sys, family, soft, contacts))
        if family.kind in (CONTACT, NEAREST_CONTACT)
        else None
        for family, soft in zip(families, problem.soft.families, strict=True)
    ]
    count = sum(jnp.sum(mine, axis=1) for mine in near if mine is not None)
    share = rows(driven.force, adhering(sys)) / jnp.maximum(count, 1)
    pulls = tuple(
        _along(mine, share, joined.reference)
        for mine, joined in zip(near, held.families, strict=True)
    )
    return solver.apply_transpose(held, Violation(jnp.zeros_like(held.signs), pulls), like)


def _near(sys: System, family: ConstraintFamily, contacts: FamilyContacts) -> jax.Array:
    """Return whether each contact is one of each adhering body, (actuators, slots, batch)."""
    bodies = [sys.actuator_body[a] for a in adhering(sys)]
    of_body = jnp.asarray([[mine == body for mine in sys.geom_body] for body in bodies])
    first, second = (of_body[:, geoms] for geoms in contacts.geoms)
    close = contacts.touch.dist < contacts.soft.margin + contacts.soft.gap
    real = np.isin(np.arange(len(family.order)), list(family.places.values()))
    return (first | second) & close & real[:, None]


def _along(near: jax.Array | None, share: jax.Array, like: Along) -> Along:
    """The pulls along a family's directions, of which the first is a contact's normal."""
    normal, *across = map(jnp.zeros_like, like)
    if near is not None:
        normal = -jnp.sum(jnp.where(near, share[:, None], 0.0), axis=0)
    return (normal, *across)
