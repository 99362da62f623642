"""The forces of the constraints at a state, for those who ask for them."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.base import System
from brax.colliders.broad_phase import contact_widths, uses_broad_phase
from brax.colliders.narrow_phase import contact_links
from brax.components import Vec3, rows, stack, total, zero_vec
from brax.generalized.constraints.constraint_layout import (
    CONTACT,
    NEAREST_CONTACT,
    ConstraintFamily,
)
from brax.generalized.constraints.evaluation import families_at
from brax.generalized.constraints.jacobians import AttachmentPoints
from brax.generalized.linalg import frontal
from brax.generalized.problem import GeneralizedProblem, StepState
from brax.generalized.stepper import StateForces, Stepper
from brax.spatial import Spatial
from brax.tree import sum_rows


def reaction(problem: GeneralizedProblem, motion: StepState) -> tuple[jax.Array, jax.Array]:
    """Solves the constraints at a state.

    Returns:
        Their forces along the degrees of freedom (nv, batch) in the model's order, and that of
        each contact on its second geom, world axes, (contacts, 3, batch).
    """
    forces = Stepper(problem).forces(motion)
    along = frontal.to_model(problem.plan.blocks, forces.reaction)
    return along, contact_forces(problem, motion, forces)


class _FamilyWrench(NamedTuple):
    """What a family of constraints does at its links."""

    family: ConstraintFamily
    ends: AttachmentPoints
    force: Vec3
    """On the second link, at its point, world axes, components (slots, batch)."""
    turn: Vec3
    """The torque about that point."""


def _family_wrenches(
    problem: GeneralizedProblem, motion: StepState, forces: StateForces
) -> list[_FamilyWrench]:
    if forces.solver_and_constraints is None:
        return []
    solver, held = forces.solver_and_constraints
    responses = solver.respond(held, solver.violation(held, forces.acceleration))[0].families
    assert forces.contacts is not None
    found = families_at(problem.sys, problem.links, problem.plan, problem.soft, forces.smooth,
                        forces.contacts, motion.q)  # fmt: skip
    out = []
    for family, at, mine in zip(problem.plan.families, found, responses, strict=True):
        if at.ends is not None:
            push = _along(at.ends.linear, mine[:3])
            turn = _along(at.ends.angular, mine[3:]) if mine[3:] else zero_vec(push.x)
            out.append(_FamilyWrench(family, at.ends, push, turn))
    return out


def contact_forces(
    problem: GeneralizedProblem, motion: StepState, forces: StateForces
) -> jax.Array:
    """The force of each contact on its second geom, world axes, (contacts, 3, batch)."""
    sys = problem.sys
    count = sum(len(g.geom1) * g.collider.n_contacts for g in sys.collisions)
    if uses_broad_phase(sys):
        count = sum(contact_widths(sys).values())
    tables = [jnp.zeros((1, 3, forces.net.shape[-1]), forces.net.dtype)]
    places: dict[int, int] = {}
    for family, _, force, _ in _family_wrenches(problem, motion, forces):
        if family.kind in (CONTACT, NEAREST_CONTACT):
            start = sum(map(len, tables))
            places |= {contact: start + slot for contact, slot in family.places.items()}
            tables.append(stack(force))
    return rows(jnp.concatenate(tables), [places.get(c, 0) for c in range(count)])


def loads(problem: GeneralizedProblem, motion: StepState, forces: StateForces) -> Spatial:
    """What contacts and ties do to each link: torque about the world's origin, and force.

    World axes, components (n_links, batch), in the model's order.
    """
    sys, n = problem.sys, problem.sys.num_links()
    zero = zero_vec(jnp.zeros((n, forces.net.shape[-1]), forces.net.dtype))
    out = Spatial(zero, zero)
    for family, ends, push, turn in _family_wrenches(problem, motion, forces):
        points = ends.first, ends.first if ends.second is None else ends.second
        if ends.links is not None:
            load = Spatial(ends.first.cross(push) + turn, push)
            first, second = (_on_links(load, link, n) for link in ends.links)
            out = out + second - first
            continue
        for sign, point, links in zip((-1.0, 1.0), points, _links(sys, family), strict=True):
            load = Spatial(point.cross(push) + turn, push) * sign
            real = {slot: links[k] for k, slot in family.places.items() if links[k] >= 0}
            if real:
                mine_there, owners = rows(load, list(real)), tuple(real.values())
                summed = [[sum_rows(x, owners, n) for x in part] for part in mine_there]
                out = out + Spatial(*(Vec3(*part) for part in summed))
    return out


def _on_links(load: Spatial, links: jax.Array, n: int) -> Spatial:
    """Sums what contacts (slots, batch) do to links that change as they move."""
    mine = jnp.arange(n)[:, None, None] == links
    return jax.tree.map(lambda x: jnp.sum(jnp.where(mine, x, 0.0), axis=1), load)


def _along(axes: Sequence[Vec3], amounts: Sequence[jax.Array]) -> Vec3:
    terms = [axis * x for axis, x in zip(axes, amounts, strict=True)]
    return Vec3(*(total(each) for each in zip(*terms, strict=True)))


def _links(sys: System, family: ConstraintFamily) -> tuple[Sequence[int], Sequence[int]]:
    """First and second link of all constraints of a family's kind, -1 for the world."""
    if family.kind != CONTACT:
        pairs = zip(sys.equality_types, sys.equality_pair, strict=True)
        first, second = zip(*(pair for kind, pair in pairs if kind == family.kind), strict=True)
        return first, second
    sides: tuple[list[int], list[int]] = ([], [])
    for group, links in zip(sys.collisions, contact_links(sys), strict=True):
        for out, mine in zip(sides, links, strict=True):
            out += mine * group.collider.n_contacts
    return sides
