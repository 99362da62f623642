"""Limits of joints that state their own bounds, such as the total angle of a ball joint.

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
    """Return the softness of all these limits."""
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
    """Return the constraints of a family at coordinates (nq, batch)."""
    groups = limited_joints(sys)
    joints, dofs = _owners(sys, groups)
    value, rates = _measured(sys, groups, q)
    limits, margin = rows(sys.dof.limit, dofs), rows(sys.joint.margin, joints)
    farther = [g.farther for g in groups for _ in range(g.each * len(g.joints))]
    scalar = limit(soft, value, limits, margin, farther)
    # The sign of a limit enters its Jacobian: the lower bound pushes up, the upper one down.
    entries = _entries(sys, groups)
    signed = rates * rows(scalar.signs, [number for number, _ in entries])
    jacobian = at_places(plan, family, signed, entries)
    law, reference_acc, reference_damping = rows(
        (scalar.law, scalar.reference_acc, soft.reference_damping), family.order
    )
    return FamilyConstraints(
        IndependentLaw((law,)), jacobian, (reference_acc,), reference_damping, None
    )


def _owners(sys: System, groups: Sequence[LimitedJoints]) -> tuple[list[int], list[int]]:
    """Return the joint of each limit, and the degree of freedom that has its range."""
    starts = sys.joint_qd_start()
    # Limits run by group, then by limit, then by joint: the order of `limited_joints`.
    pairs = [(j, starts[j] + k) for g in groups for k in range(g.each) for j in g.joints]
    return [j for j, _ in pairs], [d for _, d in pairs]


def _entries(sys: System, groups: Sequence[LimitedJoints]) -> list[tuple[int, int]]:
    """Return limit and degree of freedom of each rate that `_measured` returns."""
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
    """Return the bounded quantities, and their rates per unit of each degree of freedom."""
    starts = sys.joint_q_start()
    values, rates = [], []
    for group in groups:
        kind = group.kind
        mine = [rows(q, [starts[j] + c for j in group.joints]) for c in range(kind.q_width)]
        for bound in kind.bounds(tuple(mine)):
            values.append(bound.value)
            # A rate that is always zero is None in the joint type; the table needs an array.
            rates += [jnp.zeros_like(bound.value) if r is None else r for r in bound.rates]
    return join(values), join(rates)
