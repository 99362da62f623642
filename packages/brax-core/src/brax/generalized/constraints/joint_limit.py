"""Limits of quantities that a joint bounds beside its coordinates, such as a ball's whole angle.

Source: MuJoCo's documentation, chapter Computation, section Constraint model.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from brax.base import System
from brax.components import rows
from brax.generalized.constraints.constraint_laws import IndependentLaw
from brax.generalized.constraints.constraint_layout import (
    ConstraintFamily,
    ConstraintLayout,
    LimitedJoints,
    limited_joints,
)
from brax.generalized.constraints.jacobians import FamilyConstraints, at_places
from brax.generalized.constraints.scalar import ScalarSoftness, limit, scalar_softness
from brax.tree import join


def joint_limit_softness(sys: System) -> ScalarSoftness:
    """The parameters of all these limits."""
    joints, dofs = _owners(sys, limited_joints(sys))
    numbers = rows((sys.joint.solref, sys.joint.solimp), joints)
    return scalar_softness(sys, *numbers, rows(sys.dof.invweight, dofs))


def joint_limits(
    sys: System,
    plan: ConstraintLayout,
    family: ConstraintFamily,
    soft: ScalarSoftness,
    q: jax.Array,
) -> FamilyConstraints:
    """Evaluates a family at coordinates (nq, batch)."""
    groups = limited_joints(sys)
    joints, dofs = _owners(sys, groups)
    value, rates = _measured(sys, groups, q)
    limits, margin = rows(sys.dof.limit, dofs), rows(sys.joint.margin, joints)
    farther = [g.farther for g in groups for _ in range(g.each * len(g.joints))]
    held = limit(soft, value, limits, margin, farther)
    entries = _entries(sys, groups)
    signed = rates * rows(held.signs, [number for number, _ in entries])
    jacobian = at_places(plan, family, signed, entries)
    law, reference_acc, reference_damping = rows(
        (held.law, held.reference_acc, soft.reference_damping), family.order
    )
    return FamilyConstraints(
        IndependentLaw((law,)), jacobian, (reference_acc,), reference_damping, None
    )


def _owners(sys: System, groups: Sequence[LimitedJoints]) -> tuple[list[int], list[int]]:
    """The joint of each limit, and the degree of freedom that its numbers are at."""
    starts = sys.joint_qd_start()
    pairs = [(j, starts[j] + k) for g in groups for k in range(g.each) for j in g.joints]
    return [j for j, _ in pairs], [d for _, d in pairs]


def _entries(sys: System, groups: Sequence[LimitedJoints]) -> list[tuple[int, int]]:
    """Limit and degree of freedom of each rate that `_measured` gives."""
    starts, out, first = sys.joint_qd_start(), [], 0
    for group in groups:
        for _ in range(group.each):
            for c in range(group.kind.qd_width):
                out += [(first + i, starts[j] + c) for i, j in enumerate(group.joints)]
            first += len(group.joints)
    return out


def _measured(
    sys: System, groups: Sequence[LimitedJoints], q: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """What is bounded, and its rates per unit of each degree of freedom."""
    starts = sys.joint_q_start()
    values, rates = [], []
    for group in groups:
        kind = group.kind
        mine = [rows(q, [starts[j] + c for j in group.joints]) for c in range(kind.q_width)]
        for bound in kind.bounds(tuple(mine)):
            values.append(bound.value)
            rates += [jnp.zeros_like(bound.value) if r is None else r for r in bound.rates]
    return join(values), join(rates)
