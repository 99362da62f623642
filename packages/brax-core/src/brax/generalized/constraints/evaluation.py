"""Evaluation of all constraints of a model at a state.

Source: MuJoCo's documentation, chapter Computation, section Constraint model.
"""

from typing import Any, NamedTuple

import jax

from brax.base import System
from brax.colliders.narrow_phase import frames_of
from brax.components import rows
from brax.generalized.constraints.body_equality import body_equalities, body_equality_softness
from brax.generalized.constraints.constraint_laws import Along, ScalarLaw
from brax.generalized.constraints.constraint_layout import (
    CONTACT,
    COUPLING,
    JOINT_LIMIT,
    LISTED_CONTACT,
    ConstraintLayout,
)
from brax.generalized.constraints.contact import (
    ModelContacts,
    contact_constraints,
    contact_softness,
    find_contacts,
    softness_of_pairs,
)
from brax.generalized.constraints.coupling import coupling_softness, couplings
from brax.generalized.constraints.jacobians import FamilyConstraints
from brax.generalized.constraints.joint_limit import joint_limit_softness, joint_limits
from brax.generalized.constraints.scalar import (
    ScalarConstraints,
    ScalarSoftness,
    dry_friction,
    joined,
    limit,
    scalar_softness,
)
from brax.generalized.linalg.frontal import to_blocks
from brax.generalized.newton import (
    Constraints,
    FamilyRows,
    along_families,
    listed_jacobian,
    on_needed,
)
from brax.generalized.smooth_dynamics.smooth import SmoothDynamics
from brax.tree import Layout


class Softness(NamedTuple):
    """Softness parameters of all constraints, constant during a step."""

    limits: ScalarSoftness | None
    """Softness of joint limits; None without any."""
    dry: ScalarSoftness | None
    """Softness of the joints' dry friction; None without any."""
    families: tuple[Any, ...]
    """Softness of each family of the layout."""


def softness(sys: System, plan: ConstraintLayout) -> Softness:
    """Return the softness parameters of all constraints."""
    joint = sys.dof_joint()
    # MuJoCo keeps `solref` and `solimp` of limits with the joint, those of dry friction with the
    # degree of freedom.
    of_limits = [joint[d] for d in plan.limited]
    limits = dry = None
    if plan.limited:
        solref, solimp = rows((sys.joint.solref, sys.joint.solimp), of_limits)
        limits = scalar_softness(sys, solref, solimp, rows(sys.dof.invweight, plan.limited))
    if plan.dry:
        tables = sys.dof.solref, sys.dof.solimp, sys.dof.invweight
        dry = scalar_softness(sys, *rows(tables, plan.dry))
    families: list[Any] = []
    of_contacts = [family.kind in (CONTACT, LISTED_CONTACT) for family in plan.families]
    # Contacts of all dimensions have the same pairs, whose parameters are many equations to trace.
    of_pairs = softness_of_pairs(sys) if any(of_contacts) else []
    for family, of_contact in zip(plan.families, of_contacts, strict=True):
        if of_contact:
            families.append(contact_softness(sys, family, of_pairs))
        elif family.kind == COUPLING:
            families.append(coupling_softness(sys))
        elif family.kind == JOINT_LIMIT:
            families.append(joint_limit_softness(sys))
        else:
            families.append(body_equality_softness(sys, family))
    return Softness(limits, dry, tuple(families))


def constraints(
    sys: System,
    links: Layout,
    plan: ConstraintLayout,
    soft: Softness,
    dynamics: SmoothDynamics,
    contacts: ModelContacts,
    q: jax.Array,
    qd: jax.Array,
) -> Constraints:
    """Return all constraints at a state.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        links: the layout of its links.
        plan: its blocks, and the constraint rows on them.
        soft: softness parameters of the constraints.
        dynamics: the smooth dynamics at the state.
        contacts: the contacts at it.
        q: coordinates (nq, batch).
        qd: rates (nv, batch), in the model's order.
    """
    signs, law, aref = _scalar(sys, plan, soft, q, qd)
    found = families_at(sys, links, plan, soft, dynamics, contacts, q)
    # J qvel, with which the damping of the reference acceleration is completed: aref = -b J qvel -
    # k d(r) r.
    moving = along_families(plan, [f.jacobian for f in found], to_blocks(plan.blocks, qd))
    families = tuple(
        FamilyRows(f.law, f.jacobian, _damped_rows(f, rates))
        for f, rates in zip(found, moving, strict=True)
    )
    return Constraints(law, signs, aref, families)


def families_at(
    sys: System,
    links: Layout,
    plan: ConstraintLayout,
    soft: Softness,
    dynamics: SmoothDynamics,
    contacts: ModelContacts,
    q: jax.Array,
) -> list[FamilyConstraints]:
    """Return all constraints but limits and dry friction of joints; see `constraints`."""
    found: list[FamilyConstraints] = []
    for family, mine in zip(plan.families, soft.families, strict=True):
        if family.kind in (CONTACT, LISTED_CONTACT):
            found.append(contact_constraints(sys, plan, family, mine, dynamics, contacts))
        elif family.kind == COUPLING:
            found.append(couplings(sys, links, plan, family, mine, dynamics, q))
        elif family.kind == JOINT_LIMIT:
            found.append(joint_limits(sys, plan, family, mine, q))
        else:
            found.append(body_equalities(sys, links, plan, family, mine, dynamics))
    return found


def contacts_at(
    sys: System, links: Layout, plan: ConstraintLayout, soft: Softness, dynamics: SmoothDynamics
) -> ModelContacts:
    """Return the contacts at a state."""
    # A family of listed contacts keeps the parameters of all pairs; one of them has them all.
    near = [
        s.margin + s.gap
        for f, s in zip(plan.families, soft.families, strict=True)
        if f.kind == LISTED_CONTACT
    ]
    # Geoms name their links in the model's order; -1 is the world.
    frames, place = frames_of(dynamics.pos, dynamics.rot), (*links.position, -1)
    return find_contacts(
        sys, near[0] if near else None, lambda wanted: frames([place[i] for i in wanted])
    )


def _damped_rows(family: FamilyConstraints, rates: Along) -> Along:
    """Return the reference accelerations of a family, less damping times rates.

    Nobody may read those of listed contacts in chunks that are not needed.
    """
    damping = family.reference_damping
    each = damping if isinstance(damping, tuple) else (damping,) * len(rates)

    def less(given: tuple[Along, Along, Along]) -> Along:
        return tuple(a - b * x for a, b, x in zip(*given, strict=True))

    return on_needed(listed_jacobian(family.jacobian), less, (family.reference_acc, each, rates))


def _scalar(
    sys: System, plan: ConstraintLayout, soft: Softness, q: jax.Array, qd: jax.Array
) -> tuple[jax.Array, ScalarLaw, jax.Array]:
    """Return limits and dry friction of joints: signs (their Jacobian), law and aref."""
    parts: list[ScalarConstraints] = []
    if soft.limits is not None:
        parts.append(
            _damped(_limits(sys, plan, soft.limits, q), soft.limits, rows(qd, plan.limited))
        )
    if soft.dry is not None:
        rate, loss = rows((qd, sys.dof.frictionloss), plan.dry)
        parts.append(_damped(dry_friction(soft.dry, loss, rate), soft.dry, rate))
    if not parts:
        empty = qd[:0]
        return empty, ScalarLaw(empty, empty, empty), empty
    return joined(parts)


def _damped(scalar: ScalarConstraints, soft: ScalarSoftness, rate: jax.Array) -> ScalarConstraints:
    # J qvel of a row is its sign times the rate.
    """Return scalar constraints with the damping of their reference acceleration."""
    return scalar._replace(
        reference_acc=scalar.reference_acc - soft.reference_damping * scalar.signs * rate
    )


def _limits(
    sys: System, plan: ConstraintLayout, soft: ScalarSoftness, q: jax.Array
) -> ScalarConstraints:
    """Return the limits of joint coordinates."""
    joints = [sys.dof_joint()[d] for d in plan.limited]
    # From a degree of freedom to its coordinate: a quaternion has one number more than it has
    # degrees of freedom.
    offset = [sys.joint_q_start()[j] - sys.joint_qd_start()[j] for j in joints]
    at = rows(q, [d + o for d, o in zip(plan.limited, offset, strict=True)])
    bounds = rows(sys.dof.limit, plan.limited)
    return limit(soft, at, bounds, rows(sys.joint.margin, joints), plan.farther)
