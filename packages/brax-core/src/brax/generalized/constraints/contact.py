"""Contacts as constraints: where they are, what they are like, and their force law.

Source: MuJoCo's documentation, chapter Computation, sections Constraint model and Contact.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.colliders.broad_phase import (
    NearestContacts,
    contact_widths,
    links_of,
    nearest_contacts,
    picked,
)
from brax.colliders.interface import Touch
from brax.colliders.narrow_phase import (
    MIN_FRICTION,
    LinkFrames,
    find_touches,
    local_shapes,
    surfaces,
)
from brax.components import Vec3, rows, total
from brax.generalized.constraints.constraint_laws import (
    EllipticCone,
    PyramidalCone,
    impedance,
    reference_parameters,
)
from brax.generalized.constraints.constraint_layout import (
    NEAREST_CONTACT,
    ConstraintFamily,
    ConstraintLayout,
)
from brax.generalized.constraints.jacobians import AttachmentPoints, FamilyConstraints, jacobian
from brax.generalized.constraints.scalar import MIN_COMPLIANCE, stacked
from brax.generalized.smooth_dynamics.smooth import SmoothDynamics


class ModelContacts(NamedTuple):
    """All contacts of a model at a state."""

    touches: list[Touch]
    """By collision group, (points, pairs, batch); none where the nearest are followed."""
    near: list[NearestContacts]
    """Those, by the number of their directions."""

    @property
    def overflow(self) -> jax.Array | None:
        """How many more there are within their margins, (batch,)."""
        return total(n.overflow for n in self.near)[0] if self.near else None


def find_contacts(sys: System, margins: jax.Array | None, frames: LinkFrames) -> ModelContacts:
    """Finds the contacts; the nearest alone if their pairs' margins are given."""
    if margins is not None:
        return ModelContacts([], nearest_contacts(sys, margins, frames))
    return ModelContacts(find_touches(sys, local_shapes(sys), frames), [])


class ContactSoftness(NamedTuple):
    """What contacts are like, constant during a step, (slots, 1 or batch)."""

    friction: jax.Array
    sideways: jax.Array
    """Friction of sliding along the second tangent."""
    turning: tuple[jax.Array, ...]
    """Friction of torsion and, twice, of rolling, as far as they have any."""
    sliding: jax.Array
    """One where there is friction, zero where `condim` is 1."""
    solimp: tuple[jax.Array, ...]
    reference_stiffness: jax.Array
    """Stiffness and damping of the acceleration asked for."""
    reference_damping: jax.Array
    margin: jax.Array
    gap: jax.Array
    """How much farther adhesion reaches."""
    inverse_weight: jax.Array
    """Inverse weight of the two links."""


def contact_softness(sys: System, family: ConstraintFamily) -> ContactSoftness:
    """The parameters of a family of contacts, slot by slot; of the nearest, by pair."""
    parts = _by_pair(sys, family.width)
    if family.kind == NEAREST_CONTACT:
        return jax.tree.map(stacked, *parts)
    counts = (group.collider.n_contacts for group in sys.collisions)
    every = [mine for mine, count in zip(parts, counts, strict=True) for _ in range(count)]
    return rows(jax.tree.map(stacked, *every), family.order)


def _by_pair(sys: System, width: int) -> list[ContactSoftness]:
    """What contacts of each group are like, pair by pair."""
    parts = []
    weights = sys.geom.invweight
    for group, surface in zip(sys.collisions, surfaces(sys), strict=True):
        reference_stiffness, reference_damping = reference_parameters(
            surface.solref, surface.solimp[1], sys.opt.timestep
        )
        inverse_weight = rows(weights, group.geom1) + rows(weights, group.geom2)
        slide = jnp.full_like(surface.friction, group.condim > 1)
        turning = tuple(jnp.maximum(x, MIN_FRICTION) for x in surface.turning)
        mine = ContactSoftness(
            jnp.maximum(surface.friction, MIN_FRICTION) * slide,
            jnp.maximum(surface.sideways, MIN_FRICTION) * slide,
            turning[: width - 3],
            slide, surface.solimp, reference_stiffness, reference_damping,
            surface.margin, surface.gap, inverse_weight,
        )  # fmt: skip
        parts.append(mine)
    return parts


def contact_constraints(
    sys: System,
    plan: ConstraintLayout,
    family: ConstraintFamily,
    soft: ContactSoftness,
    dynamics: SmoothDynamics,
    contacts: ModelContacts,
) -> FamilyConstraints:
    """Evaluates a family of contacts."""
    touch, soft, geoms = family_contacts(sys, family, soft, contacts)
    links = None
    if family.kind == NEAREST_CONTACT:
        links = links_of(sys, geoms[0]), links_of(sys, geoms[1])
    dist, point, axes = _located(touch)
    ends = AttachmentPoints(point, None, axes, axes[: family.width - 3], links)
    law, normal = _law(sys, soft, dist)
    across = (jnp.zeros_like(normal),) * (family.width - 1)
    return FamilyConstraints(
        law, jacobian(plan, family, dynamics, ends), (normal, *across), soft.reference_damping, ends
    )


class FamilyContacts(NamedTuple):
    """The contacts of a family, slot by slot; an empty slot has any."""

    touch: Touch
    soft: ContactSoftness
    geoms: tuple[jax.Array, jax.Array]
    """First and second, (slots, 1 or batch)."""


def family_contacts(
    sys: System, family: ConstraintFamily, soft: ContactSoftness, contacts: ModelContacts
) -> FamilyContacts:
    """Finds them among all; `soft` as `contact_softness` has it."""
    if family.kind == NEAREST_CONTACT:
        near = contacts.near[list(contact_widths(sys)).index(family.width)]
        first = min(family.places)
        order = [max(n - first, 0) for n in family.order]
        touch, pair, geoms = rows((near.touch, near.pair, near.geoms), order)
        return FamilyContacts(touch, picked(soft, pair), geoms)
    every = [np.tile([g.geom1, g.geom2], g.collider.n_contacts) for g in sys.collisions]
    first, second = jnp.asarray(np.concatenate(every, axis=1)[:, list(family.order), None])
    return FamilyContacts(_flat(family, contacts.touches), soft, (first, second))


def _flat(family: ConstraintFamily, found: Sequence[Touch]) -> Touch:
    """The contacts of a family, of all by collision group."""
    sized = [t._replace(along=t.edge()) for t in found]
    flat = [jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), t) for t in sized]
    return rows(jax.tree.map(stacked, *flat), family.order)


def _located(touch: Touch) -> tuple[jax.Array, Vec3, tuple[Vec3, Vec3, Vec3]]:
    """Distances, points and axes, normal first, of contacts."""
    return touch.dist, touch.pos, (touch.normal, *touch.across())


def _law(
    sys: System, soft: ContactSoftness, dist: jax.Array
) -> tuple[PyramidalCone | EllipticCone, jax.Array]:
    """The contacts' force law, and the acceleration along the normal that they ask for at rest."""
    distance = dist - soft.margin
    share = impedance(soft.solimp, distance)
    active = distance < 0
    mu, inverse_weight = soft.friction, soft.inverse_weight
    if sys.opt.cone == "elliptic":
        compliance = jnp.maximum((1.0 - share) / share * inverse_weight, MIN_COMPLIANCE)
        normal = jnp.where(active, 1.0 / compliance, 0.0)
        ratio = sys.opt.impratio
        some = jnp.maximum(mu, MIN_FRICTION)
        tangent = normal * ratio * soft.sliding
        ratios = tuple(x / some for x in soft.turning)
        across = soft.sideways / some if any(sys.pair_uneven) else None
        law: PyramidalCone | EllipticCone = EllipticCone(
            normal, tangent, mu, some / jnp.sqrt(ratio), ratios, across
        )
    else:
        compliance = jnp.maximum(
            (1.0 - share) / share * inverse_weight * (1.0 + mu * mu), MIN_COMPLIANCE
        )
        edge = 2.0 * mu * mu / sys.opt.impratio
        compliance = jnp.where(soft.sliding > 0, compliance * edge, compliance)
        stiffness = jnp.where(active, 1.0 / compliance, 0.0)
        law = PyramidalCone(stiffness, (mu, soft.sideways, *soft.turning), soft.sliding)
    return law, -soft.reference_stiffness * share * distance
