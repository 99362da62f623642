"""Accelerations of long trees without a mass matrix, by the articulated-body algorithm.

The mass matrix of a long chain holds the inertia of all its links about the first joint, which is
larger than the chain's resistance to that joint alone by the cube of its length. Elimination finds
the small number as a difference of large ones: in single precision a chain of 100 links then moves
with two wrong digits in three. Here no large number appears, since links are eliminated one by one,
each about a point of its own. The time grows with the number of links instead of its cube.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 7.3; Ascher, Pai, Cloutier
(1997), Forward dynamics, elimination methods, and formulation stiffness in robot simulation, The
International Journal of Robotics Research 16 (6), on the digits that either method keeps.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.components import Quat, Vec3, rows, total, zero_vec
from brax.generalized.smooth_dynamics.smooth import (
    cross_force,
    joint_step,
    link_inertias,
    upwards,
    velocity_change,
)
from brax.generalized.smooth_dynamics.structure import Structure
from brax.kinematics.frames import Hung, JointGroup, about, hung, poses
from brax.spatial import Spatial
from brax.tree import Layout, from_roots, in_order
from brax.tree_solve import factor, solve, without_drives


def suits(sys: System, blocks: Structure) -> bool:
    """Return whether a model without constraints has a tree long enough for this algorithm.

    It must also be a tree: the armature of a tendon couples joints beside it.
    """
    return any(block.large for block in blocks.blocks) and not any(sys.tendon_rotor)


def accelerations(
    sys: System,
    plan: Layout,
    q: jax.Array,
    qd: jax.Array,
    force: jax.Array,
    inertia_forces: bool,
    resistance: jax.Array,
) -> jax.Array:
    """Return the accelerations under forces along the degrees of freedom, and gravity.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        plan: the layout of its links.
        q: coordinates (nq, batch).
        qd: rates (nv, batch).
        force: force along each degree of freedom, (nv, batch).
        inertia_forces: True to include the Coriolis and centrifugal forces.
        resistance: what is added to the armature, (nv, batch).

    Returns:
        The accelerations, (nv, batch). All is in the model's order.
    """
    stacks = [hung(sys, plan, group, q - sys.ref, qd) for group in plan.stacks]
    _, rot = poses(plan, stacks)
    arms, joints = _about_links(plan, stacks, rot)
    velocity, change = _motions(plan, arms, joints)
    # With the places of the links' origins left out, inertias are about these.
    here = Vec3(*(jnp.zeros_like(x) for x in rot[1:]))
    inertia = link_inertias(sys, plan, here, rot, here)
    momentum = inertia.mul(upwards(sys, here.x) * -1.0)
    if inertia_forces:
        momentum = momentum - cross_force(velocity, inertia.mul(velocity))
    else:
        change = change * 0.0
    subspaces = [
        [about(t, joint.point) for joint in mine for t in joint.twists()] for mine in joints
    ]
    links = [rows((inertia, change, momentum), group.links) for group in plan.groups]
    # A group's links are some of a stack's.
    near = [rows((subspaces[i], arms[i]), places) for i, places in (g.stack for g in plan.groups)]
    armature = sys.dof.armature + resistance
    pivots = factor(
        plan,
        [mass for mass, _, _ in links],
        [tuple(subspace) for subspace, _ in near],
        [drive for _, drive, _ in links],
        [tuple(rows(armature, place) for place in group.qd) for group in plan.groups],
        [arm for _, arm in near],
    )
    loads = without_drives(pivots, [load for _, _, load in links])
    along = [tuple(rows(force, place) for place in group.qd) for group in plan.groups]
    _, rates = solve(plan, pivots, loads, along, True)
    index = [d for group in plan.groups for place in group.qd for d in place]
    return rows(jnp.concatenate([x for mine in rates for x in mine]), list(np.argsort(index)))


def _motions(
    plan: Layout, arms: Sequence[Vec3], joints: Sequence[Sequence[JointGroup]]
) -> tuple[Spatial, Spatial]:
    """Return the links' velocities, and what rates add to their accelerations beside the parents'.

    Both are about the links' origins, in the layout's order.
    """
    steps = [[joint_step(joint, joint.point) for joint in mine] for mine in joints]
    own = in_order(plan, [total(relative for relative, _ in taken) for taken in steps])
    # The velocity of a link: that of its parent, moved by the arm, and its joints'.
    _, velocity = from_roots((in_order(plan, arms), own), plan, _beyond)
    changes = []
    for stack, arm, taken in zip(plan.stacks, arms, steps, strict=True):
        still = Spatial(zero_vec(arm.x), zero_vec(arm.x))
        before = still if stack.parents is None else rows(velocity, stack.parents).moved(arm)
        changes.append(velocity_change(still, before, taken))
    return velocity, in_order(plan, changes)


def _about_links(
    plan: Layout, stacks: Sequence[Hung], rot: Quat
) -> tuple[list[Vec3], list[list[JointGroup]]]:
    """Return the arm of each link from its parent's origin, and the joints from its own, by stack.

    They are found in the parent's frame and turned into the world's axes: as differences of places
    in the world they would lose the digits that the distance from the world's origin takes.
    """
    arms, joints = [], []
    for stack, group in zip(stacks, plan.stacks, strict=True):
        near = [joint._replace(point=joint.point - stack.pos) for joint in stack.joints]
        if group.parents is None:
            arms.append(stack.pos)
            joints.append(near)
            continue
        parent = rows(rot, group.parents)
        arms.append(parent.rotate(stack.pos))
        joints.append([joint.seen((zero_vec(parent.w), parent)) for joint in near])
    return arms, joints


def _beyond(above: tuple[Vec3, Spatial], below: tuple[Vec3, Spatial]) -> tuple[Vec3, Spatial]:
    """Compose the arms and velocities of two stretches of a tree."""
    return above[0] + below[0], above[1].moved(below[0]) + below[1]
