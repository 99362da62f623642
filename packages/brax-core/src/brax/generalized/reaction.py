"""Constraint forces at a state: of each contact, and on each link."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.actuators.actuator_forces import forces_on_tendons
from brax.actuators.spatial_tendons import has_paths
from brax.actuators.tendons import tendons_at_state
from brax.base import System
from brax.colliders.broad_phase import contact_widths, lists_contacts, uses_broad_phase
from brax.colliders.narrow_phase import contact_links
from brax.components import Vec3, rows, stack, total, zero_vec
from brax.generalized.constraints.constraint_layout import (
    CONTACT,
    LISTED_CONTACT,
    ConstraintFamily,
)
from brax.generalized.constraints.evaluation import families_at
from brax.generalized.constraints.jacobians import AttachmentPoints, FamilyConstraints
from brax.generalized.linalg import frontal
from brax.generalized.problem import GeneralizedProblem, StepState
from brax.generalized.smooth_dynamics.forces import actuators_at, tendons_at
from brax.generalized.smooth_dynamics.frames import world_frames
from brax.generalized.smooth_dynamics.tendon_rotors import has_rotors
from brax.generalized.stepper import StateForces, Stepper
from brax.impulses import every_contact
from brax.kinematics import link_frames
from brax.pipeline import time_derivative
from brax.spatial import Spatial
from brax.tree import sum_rows


def reaction(problem: GeneralizedProblem, motion: StepState) -> tuple[jax.Array, jax.Array]:
    """Solve the constraints at a state and return their forces.

    Returns:
        The forces along the degrees of freedom (nv, batch), in the model's order, and the force of
        each contact on its second geom, world axes, (contacts, 3, batch).
    """
    forces = Stepper(problem).forces(motion)
    along = frontal.to_model(problem.plan.blocks, forces.reaction)
    return along, contact_forces(problem, motion, forces)


class _FamilyWrench(NamedTuple):
    """Forces and torques of a family of constraints at its links."""

    family: ConstraintFamily
    """The family."""
    ends: AttachmentPoints
    """The points at which it acts."""
    force: Vec3
    """Force on the second link, at its point, world axes, components (slots, batch)."""
    torque: Vec3
    """Torque about that point, world axes."""


_FamilyForces = tuple[ConstraintFamily, FamilyConstraints, Sequence[jax.Array]]
"""A family, its constraints, and the forces along each of their directions."""


def _family_forces(
    problem: GeneralizedProblem, motion: StepState, forces: StateForces
) -> list[_FamilyForces]:
    """Return the forces of all families."""
    if forces.solver_and_constraints is None:
        return []
    solver, constraints = forces.solver_and_constraints
    # The solver returns accelerations only. The laws give the forces that belong to them.
    residual = solver.residual(constraints, forces.acceleration)
    responses = [
        family.forces(mine)
        for family, mine in zip(constraints.families, residual.families, strict=True)
    ]
    assert forces.contacts is not None
    found = families_at(problem.sys, problem.links, problem.plan, problem.soft, forces.smooth,
                        forces.contacts, motion.q)  # fmt: skip
    return list(zip(problem.plan.families, found, responses, strict=True))


def _family_wrenches(families: Sequence[_FamilyForces]) -> list[_FamilyWrench]:
    """Return the forces of all families that act on links."""
    out = []
    for family, at, mine in families:
        if at.ends is not None:
            # The first three directions are linear; torsion and rolling, or a weld's rotation,
            # follow.
            push = _along(at.ends.linear, mine[:3])
            torque = _along(at.ends.angular, mine[3:]) if mine[3:] else zero_vec(push.x)
            out.append(_FamilyWrench(family, at.ends, push, torque))
    return out


def contact_forces(
    problem: GeneralizedProblem, motion: StepState, forces: StateForces
) -> jax.Array:
    """Return the force of each contact on its second geom, world axes, (contacts, 3, batch)."""
    sys = problem.sys
    count = every_contact(sys)
    listed = lists_contacts(sys) and not uses_broad_phase(sys)
    if uses_broad_phase(sys):
        count = sum(contact_widths(sys).values())
    # Row 0 is zero and serves contacts that move nothing and so have no slot.
    tables = [jnp.zeros((1, 3, forces.net.shape[-1]), forces.net.dtype)]
    places: dict[int, int] = {}
    for family, _, force, _ in _family_wrenches(_family_forces(problem, motion, forces)):
        if family.kind in (CONTACT, LISTED_CONTACT):
            start = sum(map(len, tables))
            places |= {contact: start + slot for contact, slot in family.places.items()}
            tables.append(stack(force))
    if listed:
        return _by_number(forces, tables[1:], count)
    return rows(jnp.concatenate(tables), [places.get(c, 0) for c in range(count)])


def _by_number(forces: StateForces, tables: Sequence[jax.Array], count: int) -> jax.Array:
    """Return the forces of listed contacts, (slots, 3, batch), by their numbers among all."""
    assert forces.contacts is not None
    near = forces.contacts.near
    number = jnp.concatenate([x.number for x in near])
    real = jnp.concatenate([jnp.arange(len(x.number))[:, None] < x.filled for x in near])
    mine = real & (jnp.arange(count)[:, None, None] == number)
    return jnp.sum(jnp.where(mine[:, :, None], jnp.concatenate(tables), 0.0), axis=1)


def loads(problem: GeneralizedProblem, motion: StepState, forces: StateForces) -> Spatial:
    """Return the wrench of contacts, equalities and spatial tendons on each link.

    It is about the world's origin, in world axes, components (n_links, batch), in the model's
    order.
    """
    sys, n = problem.sys, problem.sys.num_links()
    zero = zero_vec(jnp.zeros((n, forces.net.shape[-1]), forces.net.dtype))
    out = Spatial(zero, zero)
    families = _family_forces(problem, motion, forces)
    if has_paths(sys):
        out = out + _tendon_loads(problem, motion, forces, families)
    for family, ends, push, torque in _family_wrenches(families):
        points = ends.first, ends.first if ends.second is None else ends.second
        # Listed contacts: the links are data, and are matched by comparison.
        if ends.links is not None:
            load = Spatial(ends.first.cross(push) + torque, push)
            first, second = (_on_links(load, link, n) for link in ends.links)
            out = out + second - first
            continue
        # The second link feels the force, the first one the opposite, each at its own point.
        for sign, point, links in zip((-1.0, 1.0), points, _links(sys, family), strict=True):
            load = Spatial(point.cross(push) + torque, push) * sign
            real = {slot: links[k] for k, slot in family.places.items() if links[k] >= 0}
            if real:
                mine_there, owners = rows(load, list(real)), tuple(real.values())
                summed = [[sum_rows(x, owners, n) for x in part] for part in mine_there]
                out = out + Spatial(*(Vec3(*part) for part in summed))
    return out


def _tendon_loads(
    problem: GeneralizedProblem,
    motion: StepState,
    forces: StateForces,
    families: Sequence[_FamilyForces],
) -> Spatial:
    """Return the wrench of spatial tendons on each link, as `loads` does."""
    sys, dynamics = problem.sys, forces.smooth
    found, driven = tendons_at(problem, motion, dynamics), None
    if sys.actuator_names:
        driven = actuators_at(problem, motion, dynamics)
    along = forces_on_tendons(sys, found, driven)
    if has_rotors(sys):
        along = along - sys.tendon.armature * _tendon_accelerations(problem, motion, forces)
    for _, at, mine in families:
        if at.tendons is not None:
            slot, tendon, scale = at.tendons
            along = along + sum_rows(scale * rows(mine[0], slot), tendon, len(sys.tendon_names))
    wrench = found.link_forces(sys, along)
    assert wrench is not None
    # From the origins of the links' frames to the world's.
    origin = world_frames(problem.links, dynamics).pos
    return Spatial(wrench.ang + origin.cross(wrench.lin), wrench.lin)


def _tendon_accelerations(
    problem: GeneralizedProblem, motion: StepState, forces: StateForces
) -> jax.Array:
    """Return the second derivatives of the tendons' lengths, (n_tendons, batch)."""
    sys = problem.sys

    def velocities(q: jax.Array, qd: jax.Array) -> jax.Array:
        return tendons_at_state(sys, q, qd, link_frames(sys, q, qd)).velocity

    acceleration = frontal.to_model(problem.plan.blocks, forces.acceleration)
    found: jax.Array = time_derivative(sys, velocities, motion.q, motion.qd, acceleration)
    return found


def _on_links(load: Spatial, links: jax.Array, n: int) -> Spatial:
    """Return sums of the wrenches (slots, batch) on links that change from step to step."""
    mine = jnp.arange(n)[:, None, None] == links
    return jax.tree.map(lambda x: jnp.sum(jnp.where(mine, x, 0.0), axis=1), load)


def _along(axes: Sequence[Vec3], amounts: Sequence[jax.Array]) -> Vec3:
    """Return the vector with given amounts along given axes."""
    terms = [axis * x for axis, x in zip(axes, amounts, strict=True)]
    return Vec3(*(total(each) for each in zip(*terms, strict=True)))


def _links(sys: System, family: ConstraintFamily) -> tuple[Sequence[int], Sequence[int]]:
    """Return first and second link of all constraints of a family's kind, -1 for the world."""
    if family.kind != CONTACT:
        pairs = zip(sys.equality_types, sys.equality_pair, strict=True)
        first, second = zip(*(pair for kind, pair in pairs if kind == family.kind), strict=True)
        return first, second
    sides: tuple[list[int], list[int]] = ([], [])
    # Contacts are numbered by group, then by point, then by pair: each group's links repeat for
    # every contact point.
    for group, links in zip(sys.collisions, contact_links(sys), strict=True):
        for out, mine in zip(sides, links, strict=True):
            out += mine * group.collider.n_contacts
    return sides
