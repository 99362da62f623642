"""Forces of actuators, springs and tendons, along the degrees of freedom and on links."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.actuators.actuator_forces import (
    ActuatorsAtState,
    activation_rates,
    actuators_at_state,
    added,
    forces_on_tendons,
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
from brax.forces.external import ExternalForces
from brax.kinematics import Frames
from brax.maximal.coordinates import frames_of_links
from brax.maximal.links import Links, Masses, Stack, TreesAtState, by_link
from brax.spatial import Spatial
from brax.tree import Group, Layout, PerDof, join


class Actuation(NamedTuple):
    """Joint coordinates of a model with its actuators and tendons, in the model's order."""

    q: jax.Array
    """Coordinates, (nq, batch)."""
    qd: jax.Array
    """Rates, (nv, batch)."""
    drive: ActuatorsAtState | None
    """The actuators; None if only tendons act."""
    tendons: TendonsAtState | None
    """The tendons; None if the model has none."""


def actuation(
    sys: System,
    plan: Layout,
    masses: Masses,
    command: Command,
    bodies: Links,
    q: Sequence[PerDof],
    rates: Sequence[PerDof],
) -> Actuation | None:
    """Return the actuators and tendons at a state; None if the model has neither.

    Args:
        sys: the model.
        plan: the layout.
        masses: constants of the links.
        command: controls and activations.
        bodies: the links.
        q: coordinates, by stack; empty for free links.
        rates: their rates, in the same order.
    """
    if not (sys.actuator_names or sys.tendon_names):
        return None
    joints = coordinates_in_order(sys, plan, q), rates_in_order(sys, plan, rates)
    links = _driven_frames(sys, plan, masses, bodies)
    if not sys.actuator_names:
        return Actuation(*joints, None, tendons_at_state(sys, *joints, links))
    found = actuators_at_state(sys, command, *joints, links)
    # The actuators have evaluated the tendons already.
    return Actuation(*joints, found, found.tendons)


def applied_forces(
    sys: System,
    plan: Layout,
    stacks: Sequence[Stack],
    driven: Actuation | None,
    q: Sequence[PerDof],
) -> list[PerDof]:
    """Return the forces of actuators, springs and tendons along the degrees of freedom, by stack.

    Args:
        sys: the model.
        plan: the layout.
        stacks: constants of the joints, by stack.
        driven: the actuators and tendons.
        q: coordinates, by stack; empty for free links.
    """
    force = None if driven is None else _drive_forces(sys, driven)
    out: list[PerDof] = []
    for group, stack, mine in zip(plan.stacks, stacks, q, strict=True):
        # A free link has no springs. What actuators do to it arrives as a wrench.
        if group.unconstrained:
            out.append(())
            continue
        springs = [
            # A spring pulls back to its rest: -k (q - springref).
            k * -x
            for k, x in zip(stack.stiffness, _stretched(stack, group, mine), strict=True)
        ]
        if force is not None:
            springs = [x + rows(force, i) for x, i in zip(springs, group.qd, strict=True)]
        out.append(tuple(springs))
    return out


def joint_impulses(
    at: TreesAtState,
    driven: Actuation | None,
    rates: Sequence[PerDof],
    kept: Sequence[PerDof],
    dt: jax.Array,
) -> list[PerDof]:
    """Return the impulses along the degrees of freedom, relative to the free motion, by stack.

    They are those of actuators, springs, damping and armature. The free motion changes the rate of
    a joint, but its rotor keeps the rate it had.

    Args:
        at: the state.
        driven: the actuators and tendons.
        rates: rates of the free motion, by stack; empty for free links.
        kept: rates of the rotors, in the same order.
        dt: time step [s].
    """
    # a (old - u) is the impulse that keeps a rotor of inertia a at its rate; dt (f - c u) is the
    # force with damping at the rate of the free motion, of which `joint_impedance` has the implicit
    # part.
    forces = applied_forces(at.sys, at.plan, at.stacks, driven, at.q)
    return [
        tuple(
            dt * (f - c * u) + a * (old - u)
            for f, c, u, a, old in zip(
                *(mine, stack.damping, free, stack.armature, old), strict=True
            )
        )
        if mine
        else ()
        for mine, stack, free, old in zip(forces, at.stacks, rates, kept, strict=True)
    ]


def joint_impedance(stack: Stack, dt: jax.Array) -> PerDof:
    """Return impulse per rate along each degree of freedom: the rotor, and implicit damping.

    Damping is implicit also in models that disable MuJoCo's flag `eulerdamp`.
    """
    return tuple(a + d * dt for a, d in zip(stack.armature, stack.damping, strict=True))


def outer_impulses(
    at: TreesAtState, external: ExternalForces, driven: Actuation | None, dt: jax.Array
) -> list[Spatial] | None:
    """Return the impulses of external forces, fluid and actuators on links, by group.

    They are about the common points; None if nothing acts.
    """
    links = at.links
    # External forces and fluid at the velocities of the start of the step, and actuators on sites.
    wrench = external.wrench(links.axes, Spatial(links.ang, links.vel))
    actuated = actuator_wrench(at.sys, at.plan, at.masses, links, driven)
    wrench = actuated if wrench is None else wrench if actuated is None else wrench + actuated
    if wrench is None:
        return None
    return _about_common_points(at, wrench, dt)


def actuator_wrench(
    sys: System, plan: Layout, masses: Masses, bodies: Links, driven: Actuation | None
) -> Spatial | None:
    """Return the wrench of actuators and tendons in space on each link, about its centre of mass.

    None if there are none.
    """
    found = driven and driven.drive and link_forces(sys, driven.drive)
    if driven is not None and driven.tendons is not None:
        found = added(found, driven.tendons.link_forces(sys, passive_force(sys, driven.tendons)))
    return found and _about_centres(plan, masses, bodies, found)


def tendon_momenta(
    at: TreesAtState, driven: Actuation | None, dt: jax.Array
) -> Sequence[Spatial | None]:
    """Return the impulses of springs, dampers and actuators of spatial tendons, by group.

    They are about the common points; None if there are no spatial tendons. Limits and dry friction
    of tendons are constraints, `limits.tendon_loads`.
    """
    found = None
    if driven is not None and driven.tendons is not None:
        force = forces_on_tendons(at.sys, driven.tendons, driven.drive)
        found = driven.tendons.link_forces(at.sys, force)
    if found is None:
        return [None] * len(at.plan.groups)
    return _about_common_points(at, _about_centres(at.plan, at.masses, at.links, found), dt)


def _about_common_points(at: TreesAtState, wrench: Spatial, dt: jax.Array) -> list[Spatial]:
    """Return the impulses of wrenches about the centres of mass, by group."""
    arm = at.links.pos - at.origins
    return by_link(at.plan, Spatial(wrench.ang + arm.cross(wrench.lin), wrench.lin) * dt)


def _about_centres(plan: Layout, masses: Masses, bodies: Links, found: Spatial) -> Spatial:
    """Return wrenches about the links' frames, in the model's order, about the centres of mass."""
    # Links in maximal coordinates are their centres of mass: a force at the link frame has a torque
    # about it.
    wrench, arm = rows(found, plan.order), bodies.axes.rotate(masses.pos)
    return wrench._replace(ang=wrench.ang + arm.cross(wrench.lin))


def next_activation(
    sys: System,
    plan: Layout,
    masses: Masses,
    command: Command,
    bodies: Links,
    joints: tuple[Sequence[PerDof], Sequence[PerDof]],
    dt: jax.Array,
) -> jax.Array | None:
    """Return the activations `dt` later; None if the model has none.

    `joints` are coordinates and rates, by stack. The other arguments are those of `actuation`.
    """
    if command.activation is None:
        return None
    links = _driven_frames(sys, plan, masses, bodies)
    q, rates = coordinates_in_order(sys, plan, joints[0]), rates_in_order(sys, plan, joints[1])
    return next_activations(sys, command, activation_rates(sys, command, q, rates, links), dt)


def _driven_frames(sys: System, plan: Layout, masses: Masses, bodies: Links) -> Frames | None:
    """Return the link frames, in the model's order; None if nothing acts in space."""
    return rows(frames_of_links(masses, bodies), plan.position) if sees_links(sys) else None


def _drive_forces(sys: System, driven: Actuation) -> jax.Array:
    """Return the forces of actuators and tendons on all degrees of freedom, (nv, batch)."""
    parts = []
    if driven.drive is not None:
        # MuJoCo's `actuatorfrcrange` bounds the sum of all actuators of a joint.
        parts.append(within_joint_limits(sys, joint_forces(sys, driven.drive), None))
    if driven.tendons is not None:
        parts.append(driven.tendons.joint_forces(sys, passive_force(sys, driven.tendons)))
    return total(parts)


def _stretched(stack: Stack, group: Group, q: PerDof) -> list[jax.Array]:
    """Return the displacement of each degree of freedom from its spring's rest."""
    out: list[jax.Array] = []
    used = 0
    for kind in group.types:
        mine = q[used : used + kind.q_width]
        used += kind.q_width
        rest = kind.zero(mine[0])
        # A ball joint's spring is at rest at the identity: there is no `springref` for a
        # quaternion.
        if kind.q_width == kind.qd_width:
            rest = stack.springref[len(out) : len(out) + kind.qd_width]
        out += kind.difference(mine, rest)
    return out


def coordinates_in_order(sys: System, plan: Layout, q: Sequence[PerDof]) -> jax.Array:
    """Return coordinates in the model's order; zero for free links."""
    constrained = [i for i, g in enumerate(plan.stacks) if not g.unconstrained]
    if not constrained:
        return jnp.zeros_like(sys.init_q)
    places = [index for i in constrained for place in plan.stacks[i].q for index in place]
    return _in_order(places, [x for i in constrained for x in q[i]], sys.q_size())


def rates_in_order(sys: System, plan: Layout, rates: Sequence[PerDof]) -> jax.Array:
    """Return rates in the model's order; zero for free links."""
    constrained = [i for i, g in enumerate(plan.stacks) if not g.unconstrained]
    if not constrained:
        return jnp.zeros((sys.qd_size(), 1), sys.init_q.dtype)
    places = [index for i in constrained for index in plan.stacks[i].qd]
    return _in_order(places, [x for i in constrained for x in rates[i]], sys.qd_size())


def _in_order(index: Sequence[tuple[int, ...]], parts: Sequence[jax.Array], n: int) -> jax.Array:
    """Return rows in the model's order; zero for those that are missing."""
    flat = [i for where in index for i in where]
    table = join(list(parts))
    # The last row of zeros serves the missing ones.
    table = jnp.concatenate([table, jnp.zeros_like(table[:1])])
    at = {i: k for k, i in enumerate(flat)}
    return rows(table, [at.get(i, len(flat)) for i in range(n)])
