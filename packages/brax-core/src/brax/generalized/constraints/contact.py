"""Contacts as constraints: their points, softness, and friction cones.

The cones themselves are in `constraint_laws`.

Source: MuJoCo's documentation, chapter Computation, sections Constraint model and Contact.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.colliders.broad_phase import (
    ListedContacts,
    contact_widths,
    links_of,
    listed_contacts,
)
from brax.colliders.interface import CollisionGroup, Touch
from brax.colliders.narrow_phase import (
    MIN_FRICTION,
    ContactSurface,
    LinkFrames,
    find_touches,
    local_shapes,
    surfaces,
)
from brax.components import Vec3, quat, rows, total, vec3
from brax.generalized.constraints.constraint_laws import (
    Along,
    EllipticCone,
    PyramidalCone,
    are_mixed,
    impedance,
    reference_parameters,
)
from brax.generalized.constraints.constraint_layout import (
    LISTED_CONTACT,
    ConstraintFamily,
    ConstraintLayout,
)
from brax.generalized.constraints.jacobians import (
    AttachmentPoints,
    FamilyConstraints,
    ListedJacobian,
    ListedRows,
    jacobian,
)
from brax.generalized.constraints.scalar import MIN_REGULARIZER, stacked
from brax.generalized.constraints.surface_adhesion import AdhesiveLaw
from brax.generalized.linalg import joined_trees
from brax.generalized.smooth_dynamics.smooth import SmoothDynamics
from brax.kernels.gather import picked
from brax.kernels.skip import empty, in_chunks, map_needed, unread
from brax.spatial import Spatial


class ModelContacts(NamedTuple):
    """All contacts of a model at a state."""

    touches: list[Touch]
    """Contacts by collision group, (points, pairs, batch); empty with a broad phase."""
    near: list[ListedContacts]
    """Listed contacts by number of directions; empty without lists. Others than the solver read
    them by `ListedContacts.whole`."""
    surface: Spatial | None = None
    """Velocities of the geoms' surfaces about the world's origin, (geoms, batch); None if none
    moves."""

    @property
    def overflow(self) -> jax.Array | None:
        """Number of contacts left out, (batch,); None without a broad phase."""
        return total(n.overflow for n in self.near)[0] if self.near else None


def find_contacts(sys: System, reach: jax.Array | None, frames: LinkFrames) -> ModelContacts:
    """Return the contacts: those within the pairs' reach if it is given, else all."""
    surface = surface_velocities(sys, frames) if any(sys.geom_moving) else None
    if reach is not None:
        return ModelContacts([], listed_contacts(sys, reach, frames), surface)
    return ModelContacts(find_touches(sys, local_shapes(sys), frames), [], surface)


def surface_velocities(sys: System, frames: LinkFrames) -> Spatial:
    """Return the velocities of all geoms' surfaces relative to the geoms, world axes.

    Source: MuJoCo's documentation, XML reference, body/geom/surfacevel.
    """
    pos, rot = frames(sys.geom_link)
    frame, field = sys.geom.transform, sys.geom.surface_velocity
    centre, axes = pos + rot.rotate(vec3(frame.pos)), rot.mul(quat(frame.rot))
    lin, ang = axes.rotate(vec3(field[:, :3])), axes.rotate(vec3(field[:, 3:]))
    # The field v + w x (x - p) of a geom with its origin at p is (v - w x p) + w x x.
    return Spatial(ang, lin - ang.cross(centre))


class ContactSoftness(NamedTuple):
    """Friction and softness of contacts, constant during a step, (slots, 1 or batch)."""

    friction: jax.Array
    """Friction coefficient of sliding."""
    sideways: jax.Array
    """Friction coefficient of sliding along the second tangent."""
    turning: tuple[jax.Array, ...]
    """Friction coefficients of torsion and, twice, of rolling, as far as `condim` has them."""
    sliding: jax.Array
    """1 where there is friction, 0 where `condim` is 1."""
    solimp: tuple[jax.Array, ...]
    """Impedance parameters, MuJoCo's `solimp`."""
    reference_stiffness: jax.Array
    """k of the reference acceleration."""
    reference_damping: jax.Array
    """b of the reference acceleration."""
    friction_damping: jax.Array | None
    """b of the directions of friction; None if it is that of the normal for all contacts."""
    margin: jax.Array
    """Distance below which a contact is active [m]."""
    gap: jax.Array
    """Distance beyond the margin within which adhesion still acts [m]."""
    adhesion: jax.Array | None
    """Pull of the surfaces [N]; None if no surface of the model is adhesive."""
    inverse_weight: jax.Array
    """Sum of the two links' inverse weights, MuJoCo's `diagApprox` of a contact [1/kg]."""


def contact_softness(
    sys: System, family: ConstraintFamily, of_pairs: Sequence[ContactSoftness]
) -> ContactSoftness:
    """Return softness of a family of contacts, by slot; of listed contacts by pair.

    Args:
        sys: the model.
        family: the family.
        of_pairs: from `softness_of_pairs`.
    """
    parts = [x._replace(turning=x.turning[: family.width - 3]) for x in of_pairs]
    if family.kind == LISTED_CONTACT:
        return jax.tree.map(stacked, *parts)
    counts = (group.collider.n_contacts for group in sys.collisions)
    # All contact points of a pair have the same softness.
    every = [mine for mine, count in zip(parts, counts, strict=True) for _ in range(count)]
    return rows(jax.tree.map(stacked, *every), family.order)


def softness_of_pairs(sys: System) -> list[ContactSoftness]:
    """Return softness of the contacts of each group, by pair, with all turning directions."""
    parts = []
    weights = sys.geom.invweight
    for group, surface in zip(sys.collisions, surfaces(sys), strict=True):
        reference_stiffness, reference_damping = reference_parameters(
            surface.solref, surface.solimp[1], sys.opt.timestep
        )
        inverse_weight = rows(weights, group.geom1) + rows(weights, group.geom2)
        # `condim` 1 has no friction at all, whatever the coefficients are.
        slide = jnp.full_like(surface.friction, group.condim > 1)
        # MuJoCo's least friction coefficient (mjMINMU).
        turning = tuple(jnp.maximum(x, MIN_FRICTION) for x in surface.turning)
        mine = ContactSoftness(
            jnp.maximum(surface.friction, MIN_FRICTION) * slide,
            jnp.maximum(surface.sideways, MIN_FRICTION) * slide,
            turning, slide, surface.solimp, reference_stiffness, reference_damping,
            _friction_damping(sys, group, surface, reference_damping), surface.margin,
            surface.gap, surface.adhesion, inverse_weight,
        )  # fmt: skip
        parts.append(mine)
    return parts


def _friction_damping(
    sys: System, group: CollisionGroup, surface: ContactSurface, normal: jax.Array
) -> jax.Array | None:
    """Return b of the directions of friction, by pair; None if no pair has a `solreffriction`.

    Only explicit pairs have it, and only the elliptic cone uses it: the pyramid's edges mix both.
    """
    if not any(sys.pair_damped) or sys.opt.cone != "elliptic":
        return None
    if not group.pairs:
        return normal
    first, second = (rows(sys.pair.solref_friction, group.pairs)[:, k] for k in range(2))
    _, own = reference_parameters((first, second), surface.solimp[1], sys.opt.timestep)
    # As in MuJoCo, zeros and numbers of unlike signs stand for the normal's.
    none = (first == 0) & (second == 0) | are_mixed(first, second)
    return jnp.where(none, normal, own)


def contact_constraints(
    sys: System,
    plan: ConstraintLayout,
    family: ConstraintFamily,
    soft: ContactSoftness,
    dynamics: SmoothDynamics,
    contacts: ModelContacts,
) -> FamilyConstraints:
    """Return the constraints of a family of contacts."""
    if family.kind == LISTED_CONTACT:
        return _listed_constraints(sys, plan, family, soft, dynamics, contacts)
    touch, soft, geoms = family_contacts(sys, family, soft, contacts)
    sliding = _relative_surface(contacts, geoms)
    return _constraints(sys, plan, family, soft, dynamics, touch, None, sliding)


def _relative_surface(
    contacts: ModelContacts, geoms: tuple[jax.Array, jax.Array]
) -> Spatial | None:
    """Return the velocity of second geoms' surfaces relative to first ones'; None if none moves."""
    if contacts.surface is None:
        return None
    first, second = (picked(contacts.surface, side) for side in geoms)
    return second - first


def _constraints(
    sys: System,
    plan: ConstraintLayout,
    family: ConstraintFamily,
    soft: ContactSoftness,
    dynamics: SmoothDynamics,
    touch: Touch,
    links: tuple[jax.Array, jax.Array] | None,
    sliding: Spatial | None,
) -> FamilyConstraints:
    """Return the constraints of contacts whose softness and links are known."""
    dist, point, axes = _located(touch)
    # Both links share the contact point. Torsion is about the normal, rolling about the tangents:
    # the same three axes.
    ends = AttachmentPoints(point, None, axes, axes[: family.width - 3], links)
    law, normal = _law(sys, soft, dist)
    # Friction has no position error: its aref is -b J qvel alone.
    across = (jnp.zeros_like(normal),) * (family.width - 1)
    damping = soft.friction_damping
    if sliding is not None:
        # Moving surfaces add to J qvel, along the tangents and about the normal.
        slip = sliding.lin + sliding.ang.cross(point)
        added = [slip.dot(axis) for axis in axes[1:]] + [sliding.ang.dot(axes[0])]
        slowing = soft.reference_damping if damping is None else damping
        slipping = [-slowing * v for v in added[: family.width - 1]]
        across = (*slipping, *across[len(slipping) :])
    b: jax.Array | Along = soft.reference_damping
    if damping is not None:
        b = (soft.reference_damping, *(damping,) * (family.width - 1))
    moved: Any = (
        jacobian(plan, family, dynamics, ends)
        if plan.forest is None or links is None
        else (joined_trees.jacobian(plan.forest, dynamics, ends),)
    )
    return FamilyConstraints(law, moved, (normal, *across), b, ends)


def _listed_constraints(
    sys: System,
    plan: ConstraintLayout,
    family: ConstraintFamily,
    soft: ContactSoftness,
    dynamics: SmoothDynamics,
    contacts: ModelContacts,
) -> FamilyConstraints:
    """Return the constraints of a family of listed contacts, one slot after another."""
    near, order = _listed(sys, family, contacts)
    count = len(order)
    mine = family._replace(
        slots=tuple(
            s and s._replace(start=0, each=1, sides=s.sides[:, :, :1]) for s in family.slots
        )
    )

    def of_slot(given: Any) -> FamilyConstraints:
        touch, pair, geoms = given
        links = links_of(sys, geoms[0]), links_of(sys, geoms[1])
        sliding = _relative_surface(contacts, geoms)
        found = _constraints(sys, plan, mine, picked(soft, pair), dynamics, touch, links, sliding)
        blocks: Any = found.jacobian
        # In a forest they are joined already.
        joined: Any = tuple(
            j if j is None or isinstance(j, ListedRows) else ListedRows.of(j) for j in blocks
        )
        return found._replace(jacobian=joined)

    chunks = in_chunks(rows((near.touch, near.pair, near.geoms), order), count)
    idle = empty(of_slot, jax.tree.map(lambda x: x[0], chunks))
    # Ones keep the law's quotients finite where there is no contact.
    law = jax.tree.map(jnp.ones_like, idle.law).inactive()
    # The solver reads what belongs to the slots that are needed alone; others read the ends.
    idle = unread(idle._replace(law=law))._replace(ends=idle.ends)
    found = map_needed(near.filled, of_slot, chunks, idle)
    flat = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), found._replace(jacobian=()))
    whole: Any = tuple(j and ListedJacobian(near.filled, *j) for j in found.jacobian)
    return flat._replace(jacobian=whole)


def _listed(
    sys: System, family: ConstraintFamily, contacts: ModelContacts
) -> tuple[ListedContacts, list[int]]:
    """Return the listed contacts of a family, and the row of each slot among them."""
    near = contacts.near[list(contact_widths(sys)).index(family.width)]
    # Contacts are numbered through all families; a family's own table begins with its first.
    first = min(family.places)
    return near, [max(n - first, 0) for n in family.order]


class FamilyContacts(NamedTuple):
    """The contacts of a family, by slot; an empty slot has an arbitrary one."""

    touch: Touch
    """Distances, points and frames."""
    soft: ContactSoftness
    """Friction and softness."""
    geoms: tuple[jax.Array, jax.Array]
    """First and second geom, (slots, 1 or batch)."""


def family_contacts(
    sys: System, family: ConstraintFamily, soft: ContactSoftness, contacts: ModelContacts
) -> FamilyContacts:
    """Return the contacts of a family; `soft` is as `contact_softness` returns it."""
    if family.kind == LISTED_CONTACT:
        near, order = _listed(sys, family, contacts)
        near = near.whole()
        touch, pair, geoms = rows((near.touch, near.pair, near.geoms), order)
        return FamilyContacts(touch, picked(soft, pair), geoms)
    every = [np.tile([g.geom1, g.geom2], g.collider.n_contacts) for g in sys.collisions]
    first, second = jnp.asarray(np.concatenate(every, axis=1)[:, list(family.order), None])
    return FamilyContacts(_flat(family, contacts.touches), soft, (first, second))


def _flat(family: ConstraintFamily, found: Sequence[Touch]) -> Touch:
    """Return the contacts of a family, from those of all collision groups."""
    # Most colliders leave the first tangent to the default of `edge`; filled in, all tables have
    # one form.
    sized = [t._replace(along=t.edge()) for t in found]
    flat = [jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), t) for t in sized]
    return rows(jax.tree.map(stacked, *flat), family.order)


def _located(touch: Touch) -> tuple[jax.Array, Vec3, tuple[Vec3, Vec3, Vec3]]:
    """Return distances, points and axes of contacts, the normal first."""
    return touch.dist, touch.pos, (touch.normal, *touch.across())


def _law(
    sys: System, soft: ContactSoftness, dist: jax.Array
) -> tuple[PyramidalCone | EllipticCone | AdhesiveLaw, jax.Array]:
    """Return the law of contacts, and the aref of the normal at rest."""
    if soft.adhesion is None:
        cone, reference, _ = _cone(sys, soft, dist, soft.margin)
        return cone, reference
    pull = jnp.where(dist < soft.margin + soft.gap, soft.adhesion, 0.0)
    # In the gap a contact pulls, but has no friction.
    touches = (dist < soft.margin).astype(dist.dtype)
    soft = soft._replace(
        friction=soft.friction * touches,
        sideways=soft.sideways * touches,
        sliding=soft.sliding * touches,
    )
    reach = soft.margin + jnp.where(pull > 0, soft.gap, 0.0)
    cone, reference, R = _cone(sys, soft, dist, reach)
    # Each edge of a pyramid bears its share of the pull.
    pyramid = (soft.sliding > 0) & (sys.opt.cone == "pyramidal")
    edges = jnp.where(pyramid, 2.0 * (2 + len(soft.turning)), 1.0)
    return AdhesiveLaw(cone, pull), reference + R * pull / edges


def _cone(
    sys: System, soft: ContactSoftness, dist: jax.Array, reach: jax.Array
) -> tuple[PyramidalCone | EllipticCone, jax.Array, jax.Array]:
    """Return the friction cone of contacts, the aref of the normal at rest, and R of an edge.

    Args:
        sys: the model.
        soft: softness of the contacts.
        dist: their distances.
        reach: the distance below which they are active.
    """
    # r of MuJoCo's documentation: negative within the margin.
    distance = dist - soft.margin
    imp = impedance(soft.solimp, distance)
    active = dist < reach
    mu, inverse_weight = soft.friction, soft.inverse_weight
    if sys.opt.cone == "elliptic":
        # R = (1 - d) / d diagApprox, and D = 1 / R.
        R = jnp.maximum((1.0 - imp) / imp * inverse_weight, MIN_REGULARIZER)
        normal = jnp.where(active, 1.0 / R, 0.0)
        # `impratio` is R_normal / R_tangent, and the regularized cone has mu = friction /
        # sqrt(impratio).
        ratio = sys.opt.impratio
        friction = jnp.maximum(mu, MIN_FRICTION)
        tangent = normal * ratio * soft.sliding
        ratios = tuple(x / friction for x in soft.turning)
        across = soft.sideways / friction if any(sys.pair_uneven) else None
        law: PyramidalCone | EllipticCone = EllipticCone(
            normal, tangent, mu, friction / jnp.sqrt(ratio), ratios, across
        )
    else:
        R = jnp.maximum(
            # An edge n ± mu t of the pyramid has diagApprox (1 + mu²) times that of the normal.
            (1.0 - imp) / imp * inverse_weight * (1.0 + mu * mu),
            MIN_REGULARIZER,
        )
        # MuJoCo scales R of all edges of a contact with friction by 2 mu² / impratio.
        edge = 2.0 * mu * mu / sys.opt.impratio
        R = jnp.where(soft.sliding > 0, R * edge, R)
        stiffness = jnp.where(active, 1.0 / R, 0.0)
        law = PyramidalCone(stiffness, (mu, soft.sideways, *soft.turning), soft.sliding)
    return law, -soft.reference_stiffness * imp * distance, R
