"""Conversion between joint coordinates and links in maximal coordinates."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from brax.base import State
from brax.components import Quat, Vec3, quat, rows, vec3
from brax.kinematics import Frames, to_state
from brax.maximal.links import Links, Masses, Stack
from brax.tree import Group, Layout, PerDof


def read_links(plan: Layout, masses: Masses, state: State) -> Links:
    """Return the links of a state: principal frames and their velocities."""
    x, xd = rows((state.x, state.xd), plan.order)
    rot, ang = quat(x.rot).mul_inv(masses.rot), vec3(xd.ang)
    # From the centre of mass to the origin of the link frame: v_com = v_o - w x arm.
    arm = rot.rotate(masses.pos)
    return Links(vec3(x.pos) - arm, rot, rot.matrix(), vec3(xd.vel) - ang.cross(arm), ang)


def read_joints(plan: Layout, state: State) -> tuple[tuple[PerDof, ...], tuple[PerDof, ...]]:
    """Return coordinates and rates of a state, by stack; empty for free links."""
    constrained = [None if stack.unconstrained else stack for stack in plan.stacks]
    q = tuple(
        tuple(rows(state.q, index) for place in stack.q for index in place) if stack else ()
        for stack in constrained
    )
    rates = tuple(tuple(rows(state.qd, index) for index in s.qd) if s else () for s in constrained)
    return q, rates


def link_poses(masses: Masses, links: Links) -> tuple[Vec3, Quat]:
    """Return the link frames in the world."""
    return links.pos + links.axes.rotate(masses.pos), links.rot.mul(masses.rot)


def frames_of_links(masses: Masses, links: Links) -> Frames:
    """Return the link frames in the world, and the velocities of their origins."""
    # v_o = v_com + w x arm, with the arm from the centre of mass to the frame's origin.
    arm = links.axes.rotate(masses.pos)
    return Frames(*link_poses(masses, links), links.ang, links.vel + links.ang.cross(arm))


def write_state(
    plan: Layout,
    stacks: Sequence[Stack],
    frames: Frames,
    q: Sequence[PerDof],
    rates: Sequence[PerDof],
    activation: jax.Array | None,
) -> State:
    """Return the state of links and joints.

    The coordinates of free links come from their frames; those of joints are carried along.
    """
    by_q: dict[int, jax.Array] = {}
    by_qd: dict[int, jax.Array] = {}
    for i, group in enumerate(plan.stacks):
        mine, speeds = q[i], rates[i]
        # Only these are found from the frames. The coordinates of other joints are carried along,
        # which keeps their full turns.
        if group.unconstrained:
            mine, speeds = _free_coordinates(group, stacks[i], rows(frames, group.links))
        flat = [index for place in group.q for index in place]
        for table, indices, values in ((by_q, flat, mine), (by_qd, group.qd, speeds)):
            for index, value in zip(indices, values, strict=True):
                table |= {j: value[k : k + 1] for k, j in enumerate(index)}
    x, xd = rows(to_state(frames), plan.position)
    return State(_in_order(by_q), _in_order(by_qd), x, xd, activation=activation)


def _in_order(table: dict[int, jax.Array]) -> jax.Array:
    """Return rows by number as one array."""
    return jnp.concatenate([table[j] for j in range(len(table))], axis=0)


def _free_coordinates(stack: Group, model: Stack, frames: Frames) -> tuple[PerDof, PerDof]:
    """Return coordinates and rates of links on a joint of six degrees of freedom to the world."""
    kind: Any = stack.types[0]
    params = model.params[0]
    q = kind.coordinates(params, frames.pos, frames.rot)
    twists = kind.motion_subspace(params, q)
    # The motion subspace of such a joint is orthonormal, so that its transpose is its inverse:
    # rates are scalar products.
    pairs = [((t.ang, frames.ang), (t.vel, frames.vel)) for t in twists]
    return q, tuple(sum(a.dot(b) for a, b in pair if a is not None) for pair in pairs)
