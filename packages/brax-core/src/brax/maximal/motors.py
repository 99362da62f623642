"""Forces along the degrees of freedom: motors, springs and tendons."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from brax.actuators.drive import charged, charging, drive_forces
from brax.actuators.law import Command
from brax.base import System
from brax.components import rows
from brax.maximal.links import PerDof, Stack
from brax.tree import Group, Layout, join


def applied_forces(
    sys: System,
    plan: Layout,
    stacks: Sequence[Stack],
    command: Command,
    q: Sequence[PerDof],
    rates: Sequence[PerDof],
) -> list[PerDof]:
    """Forces of motors, springs and tendons along all degrees of freedom, by stack.

    Args:
        sys: the model.
        plan: the layout.
        stacks: constants of the joints, by stack.
        command: what the actuators are told.
        q: coordinates, by stack; none of links that nothing holds.
        rates: rates, likewise.
    """
    force = _drive_forces(sys, plan, command, q, rates)
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


def _drive_forces(
    sys: System, plan: Layout, command: Command, q: Sequence[PerDof], rates: Sequence[PerDof]
) -> jax.Array | None:
    """Forces of actuators and tendons on all degrees of freedom, (nv, batch)."""
    if not (sys.actuator_names or sys.tendon_names):
        return None
    return drive_forces(sys, command, *_joints_in_order(sys, plan, q, rates))


def next_activation(
    sys: System,
    plan: Layout,
    command: Command,
    q: Sequence[PerDof],
    rates: Sequence[PerDof],
    dt: jax.Array,
) -> jax.Array | None:
    """Activations `dt` later, as the joints stand and move; None if the model has none."""
    if command.activation is None:
        return None
    joints = _joints_in_order(sys, plan, q, rates)
    return charged(sys, command, charging(sys, command, *joints), dt)


def _joints_in_order(
    sys: System, plan: Layout, q: Sequence[PerDof], rates: Sequence[PerDof]
) -> tuple[jax.Array, jax.Array]:
    """Coordinates and rates in the model's order; those of links that nothing holds are zero."""
    held = [i for i, g in enumerate(plan.stacks) if not g.unconstrained]
    places = [index for i in held for place in plan.stacks[i].q for index in place]
    speeds = [index for i in held for index in plan.stacks[i].qd]
    all_q = _in_order(places, [x for i in held for x in q[i]], sys.q_size())
    all_qd = _in_order(speeds, [x for i in held for x in rates[i]], sys.qd_size())
    return all_q, all_qd


def _in_order(index: Sequence[tuple[int, ...]], parts: Sequence[jax.Array], n: int) -> jax.Array:
    """Puts rows into the model's order; what is not there is zero."""
    flat = [i for where in index for i in where]
    table = join(list(parts))
    table = jnp.concatenate([table, jnp.zeros_like(table[:1])])
    at = {i: k for k, i in enumerate(flat)}
    return rows(table, [at.get(i, len(flat)) for i in range(n)])
