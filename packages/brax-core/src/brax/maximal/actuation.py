"""Forces of motors, springs and tendons along the degrees of freedom, and of motors on links."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.actuators.actuator_forces import (
    ActuatorsAtState,
    activation_rates,
    actuators_at_state,
    added,
    joint_forces,
    link_forces,
    next_activations,
    sees_links,
    within_joint_limits,
)
from brax.actuators.force_law import Command
from brax.actuators.tendons import TendonsAtState, passive_force, tendons_at_state
from brax.base import System
from brax.components import rows, total
from brax.kinematics import Frames
from brax.maximal.coordinates import frames_of_links
from brax.maximal.links import Links, Masses, PerDof, Stack
from brax.spatial import Spatial
from brax.tree import Group, Layout, join


class Actuation(NamedTuple):
    """The joints of a model and what drives them, in the model's order."""

    q: jax.Array
    qd: jax.Array
    drive: ActuatorsAtState | None
    """None if tendons alone act."""
    tendons: TendonsAtState | None


def actuation(
    sys: System,
    plan: Layout,
    masses: Masses,
    command: Command,
    bodies: Links,
    q: Sequence[PerDof],
    rates: Sequence[PerDof],
) -> Actuation | None:
    """The actuators and tendons at a state; None if the model has neither.

    Args:
        sys: the model.
        plan: the layout.
        masses: constants of the links.
        command: what the actuators are told.
        bodies: the links.
        q: coordinates, by stack; none of links that nothing holds.
        rates: their rates, in the same order.
    """
    if not (sys.actuator_names or sys.tendon_names):
        return None
    joints = coordinates_in_order(sys, plan, q), rates_in_order(sys, plan, rates)
    links = _driven_frames(sys, plan, masses, bodies)
    if not sys.actuator_names:
        return Actuation(*joints, None, tendons_at_state(sys, *joints, links))
    found = actuators_at_state(sys, command, *joints, links)
    return Actuation(*joints, found, found.tendons)


def applied_forces(
    sys: System,
    plan: Layout,
    stacks: Sequence[Stack],
    here: Actuation | None,
    q: Sequence[PerDof],
) -> list[PerDof]:
    """Forces of motors, springs and tendons along all degrees of freedom, by stack.

    Args:
        sys: the model.
        plan: the layout.
        stacks: constants of the joints, by stack.
        here: the actuators and tendons.
        q: coordinates, by stack; none of links that nothing holds.
    """
    force = None if here is None else _drive_forces(sys, here)
    out: list[PerDof] = []
    for group, stack, mine in zip(plan.stacks, stacks, q, strict=True):
        if group.unconstrained:
            out.append(())
            continue
        springs = [
            k * -x for k, x in zip(stack.stiffness, _stretched(stack, group, mine), strict=True)
        ]
        if force is not None:
            springs = [x + rows(force, i) for x, i in zip(springs, group.qd, strict=True)]
        out.append(tuple(springs))
    return out


def actuator_wrench(
    sys: System, plan: Layout, masses: Masses, bodies: Links, here: Actuation | None
) -> Spatial | None:
    """Torque and force of motors and tendons in space on each link about its centre of mass.

    None if there are none.
    """
    found = here and here.drive and link_forces(sys, here.drive)
    if here is not None and here.tendons is not None:
        found = added(found, here.tendons.link_forces(sys, passive_force(sys, here.tendons)))
    if found is None:
        return None
    wrench, arm = rows(found, plan.order), bodies.axes.rotate(masses.pos)
    return wrench._replace(ang=wrench.ang + arm.cross(wrench.lin))


def next_activation(
    sys: System,
    plan: Layout,
    masses: Masses,
    command: Command,
    bodies: Links,
    q: Sequence[PerDof],
    rates: Sequence[PerDof],
    dt: jax.Array,
) -> jax.Array | None:
    """Activations `dt` later, as the joints stand and move; None if the model has none."""
    if command.activation is None:
        return None
    links = _driven_frames(sys, plan, masses, bodies)
    joints = coordinates_in_order(sys, plan, q), rates_in_order(sys, plan, rates)
    return next_activations(sys, command, activation_rates(sys, command, *joints, links), dt)


def _driven_frames(sys: System, plan: Layout, masses: Masses, bodies: Links) -> Frames | None:
    """Frames of the links, in the model's order, for what acts in space; None for nothing."""
    return rows(frames_of_links(masses, bodies), plan.position) if sees_links(sys) else None


def _drive_forces(sys: System, here: Actuation) -> jax.Array:
    """Forces of actuators and tendons on all degrees of freedom, (nv, batch)."""
    parts = []
    if here.drive is not None:
        parts.append(within_joint_limits(sys, joint_forces(sys, here.drive)))
    if here.tendons is not None:
        parts.append(here.tendons.joint_forces(sys, passive_force(sys, here.tendons)))
    return total(parts)


def _stretched(stack: Stack, group: Group, q: PerDof) -> list[jax.Array]:
    """How far each degree of freedom is from where its spring is at rest."""
    out: list[jax.Array] = []
    used = 0
    for kind in group.types:
        mine = q[used : used + kind.q_width]
        used += kind.q_width
        rest = kind.zero(mine[0])
        if kind.q_width == kind.qd_width:
            rest = stack.springref[len(out) : len(out) + kind.qd_width]
        out += kind.difference(mine, rest)
    return out


def coordinates_in_order(sys: System, plan: Layout, q: Sequence[PerDof]) -> jax.Array:
    """Coordinates in the model's order; those of links that nothing holds are zero."""
    held = [i for i, g in enumerate(plan.stacks) if not g.unconstrained]
    if not held:
        return jnp.zeros_like(sys.init_q)
    places = [index for i in held for place in plan.stacks[i].q for index in place]
    return _in_order(places, [x for i in held for x in q[i]], sys.q_size())


def rates_in_order(sys: System, plan: Layout, rates: Sequence[PerDof]) -> jax.Array:
    """Rates in the model's order; those of links that nothing holds are zero."""
    held = [i for i, g in enumerate(plan.stacks) if not g.unconstrained]
    if not held:
        return jnp.zeros((sys.qd_size(), 1), sys.init_q.dtype)
    places = [index for i in held for index in plan.stacks[i].qd]
    return _in_order(places, [x for i in held for x in rates[i]], sys.qd_size())


def _in_order(index: Sequence[tuple[int, ...]], parts: Sequence[jax.Array], n: int) -> jax.Array:
    """Puts rows into the model's order; what is not there is zero."""
    flat = [i for where in index for i in where]
    table = join(list(parts))
    table = jnp.concatenate([table, jnp.zeros_like(table[:1])])
    at = {i: k for k, i in enumerate(flat)}
    return rows(table, [at.get(i, len(flat)) for i in range(n)])
