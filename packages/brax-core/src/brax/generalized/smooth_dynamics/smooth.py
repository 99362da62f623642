"""Smooth dynamics: frames, motion subspaces, mass matrix and bias force of a tree.

The mass matrix comes from the composite-rigid-body algorithm, the bias force from the recursive
Newton-Euler algorithm with zero accelerations. Spatial quantities are in world axes, about the
origin of the root link of each tree. About one common point they need no transforms between links,
so that a recursion along the tree is a sum.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, chapters 5 and 6: tables 5.1 and 6.2.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.components import Quat, Sym3, Vec3, quat, rows, total, vec3, zero_vec
from brax.generalized.linalg.frontal import Front, algebra, on_paths, own
from brax.generalized.smooth_dynamics.structure import Structure
from brax.generalized.smooth_dynamics.tendon_rotors import (
    LinkMotion,
    TendonRotor,
    has_rotors,
    tendon_rotors,
)
from brax.joints import Twist
from brax.kernels.fusion_barrier import fusion_barrier
from brax.kinematics.frames import JointGroup, about, common, hung, on_links, poses, seen
from brax.spatial import Rigid, Spatial, rigid_inertia
from brax.tree import Layout, from_roots, in_order, join, over_subtrees


class JointMotions(NamedTuple):
    """Motion subspaces of the joints, and what the rates cause at the links."""

    subspace: list[Spatial | None]
    """Motion subspaces S, by stack of the layout: components (dofs of the stack, links, batch).
    None for a stack without degrees of freedom."""
    velocity: Spatial
    """Spatial velocities of all links, in the layout's order."""
    acceleration: Spatial
    """Spatial accelerations at constant rates, in the layout's order. Gravity enters as an upward
    acceleration of the world."""


class SmoothDynamics(NamedTuple):
    """The unconstrained dynamics at a state."""

    pos: Vec3
    """Origins of the link frames in the world, in the layout's order, (links, batch)."""
    rot: Quat
    """Orientations of the link frames in the world, in the layout's order."""
    velocity: Spatial
    """Spatial velocities of the links about their tree's common point, Featherstone's v."""
    acceleration: Spatial
    """Spatial accelerations of the links at constant rates, with the upward acceleration that
    stands for gravity."""
    origin: Vec3
    """The common point of each degree of freedom's tree, in the order of elimination. It has one
    row where the model has one tree."""
    subspace: Spatial
    """Motion subspaces S of the degrees of freedom, in the order of elimination, (nv, batch)."""
    mass: list[Front]
    """The fronts of the mass matrix M, armature included."""
    bias: jax.Array
    """The bias force (Coriolis, centrifugal and gravity; MuJoCo's `qfrc_bias`), in the order of
    elimination, (nv, batch)."""


def smooth(
    sys: System,
    plan: Layout,
    structure: Structure,
    q: jax.Array,
    qd: jax.Array,
    inertia_forces: bool = True,
) -> SmoothDynamics:
    """Return the smooth dynamics at a state.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        plan: the layout of its links.
        structure: the blocks of its degrees of freedom.
        q: coordinates (nq, batch).
        qd: rates (nv, batch), in the model's order.
        inertia_forces: True for the whole bias force, False for gravity without the Coriolis and
            centrifugal forces.
    """
    q = q - sys.ref
    stacks = [hung(sys, plan, group, q, qd) for group in plan.stacks]
    pos, rot = poses(plan, stacks)
    origin = common_points(plan, pos)
    joints = seen(plan, stacks, (pos, rot))
    # Table 5.1, forward pass: v_i = v_p + S_i qd_i, and a_i at zero joint accelerations.
    subspaces, velocity, acceleration = _motions(sys, plan, joints, origin)
    inertia = link_inertias(sys, plan, pos, rot, origin)
    if inertia_forces:
        # f_i = I_i a_i + v_i x* I_i v_i: the force that link i needs for its acceleration.
        force = inertia.mul(acceleration) + cross_force(velocity, inertia.mul(velocity))
    else:
        force = inertia.mul(upwards(sys, velocity.ang.x))
    # One pass from the tips to the roots sums both the composite inertias of table 6.2 and the
    # forces of table 5.1.
    composite, carried = over_subtrees((inertia, force), plan)
    subspace, momentum, bias = _per_dof(plan, structure, subspaces, composite, carried)
    armature = _in_blocks(sys.dof.armature, structure)
    rotors: list[TendonRotor] = []
    if has_rotors(sys):
        motion = LinkMotion(pos, rot, velocity, acceleration, origin)
        rotors = tendon_rotors(sys, plan, structure, motion, subspace)
        swinging = [r.bias for r in rotors if r.bias is not None]
        bias = total([bias, *swinging]) if inertia_forces else bias
    mass = _mass_fronts(structure, subspace, momentum, armature, rotors)
    points = _dof_origin(sys, plan, structure, origin)
    return SmoothDynamics(pos, rot, velocity, acceleration, points, subspace, mass, bias)


def _dof_origin(sys: System, plan: Layout, structure: Structure, origin: Vec3) -> Vec3:
    """Return the common point of each degree of freedom's tree, one row if there is one tree."""
    if len(set(plan.root)) == 1:
        return origin
    owners = sys.dof_link()
    return rows(origin, [plan.position[owners[d]] for d in structure.order])


def _motions(
    sys: System, plan: Layout, joints: Sequence[Sequence[JointGroup]], origin: Vec3
) -> JointMotions:
    """Return motion subspaces, and the velocities and accelerations of the links at these rates.

    About the common point of a tree, both are sums over a link and all its ancestors.
    """
    subspaces: list[Spatial | None] = []
    steps: list[list[tuple[Spatial, Spatial]]] = []
    for stack, mine in zip(plan.stacks, joints, strict=True):
        centre = on_links(origin, stack)
        arms = [joint.point - centre for joint in mine]
        steps.append([joint_step(joint, arm) for joint, arm in zip(mine, arms, strict=True)])
        pairs = zip(mine, arms, strict=True)
        # Each twist is given about its joint's anchor and is moved to the common point.
        subspace = [about(t, arm) for joint, arm in pairs for t in joint.twists()]
        subspaces.append(jax.tree.map(lambda *x: jnp.stack(x), *subspace) if subspace else None)
    own = [total(relative for relative, _ in taken) for taken in steps]
    # v_i is the sum of S_j qd_j over all joints between the root and the link.
    velocity = from_roots(in_order(plan, own), plan, Spatial.__add__)
    rising = upwards(sys, origin.x[:1])
    still = rising * 0.0
    changes = []
    for stack, taken in zip(plan.stacks, steps, strict=True):
        before = still if stack.parents is None else rows(velocity, stack.parents)
        changes.append(velocity_change(still, before, taken))
    change = from_roots(in_order(plan, changes), plan, Spatial.__add__)
    # The upward acceleration is added once at the end: it is the same for all links (table 5.1: a_0
    # = -a_g).
    return JointMotions(subspaces, velocity, change + rising)


def velocity_change(
    still: Spatial, before: Spatial, steps: Sequence[tuple[Spatial, Spatial]]
) -> Spatial:
    """Return the acceleration of links at constant rates, beside that of their parents.

    Args:
        still: zero.
        before: velocities of the parents, about the same points.
        steps: from `joint_step`, for each joint.
    """
    change = still
    for relative, drift in steps:
        # What turns with the velocity before a joint acts changes by v x S qd.
        change, before = change + _cross_motion(before, relative) + drift, before + relative
    return change


def joint_step(joint: JointGroup, arm: Vec3) -> tuple[Spatial, Spatial]:
    """Return the velocity and the acceleration that a joint adds at constant rates.

    Both are about the common point. The acceleration excludes the motion of the joint's own frame.
    """
    # `drift` is nonzero only for joints whose axes move within the frame before the joint.
    ang, vel = joint.twist()
    drift = about(joint.turned(joint.kind.drift(joint.params, joint.q, joint.rates)), arm)
    if ang is not None and vel is not None:
        # The joint's own translation moves its anchor, so that the rotation about the fixed common
        # point changes by v x w.
        drift = Spatial(drift.ang, drift.lin - ang.cross(vel))
    return about(Twist(ang, vel), arm), drift


def upwards(sys: System, like: jax.Array) -> Spatial:
    """Return the acceleration -g of the world, which stands for gravity."""
    zero = zero_vec(like)
    return Spatial(zero, Vec3(*(zero.x - sys.opt.gravity[k : k + 1] for k in range(3))))


def _cross_motion(v: Spatial, m: Spatial) -> Spatial:
    """Return v x m, the cross product of a velocity and a motion (Featherstone's crm)."""
    return Spatial(v.ang.cross(m.ang), v.ang.cross(m.lin) + v.lin.cross(m.ang))


def cross_force(v: Spatial, f: Spatial) -> Spatial:
    """Return v x* f, the cross product of a velocity and a force (Featherstone's crf)."""
    return Spatial(v.ang.cross(f.ang) + v.lin.cross(f.lin), v.ang.cross(f.lin))


def link_inertias(sys: System, plan: Layout, pos: Vec3, rot: Quat, origin: Vec3) -> Rigid:
    """Return the links' spatial inertias about their tree's common point, in the layout's order."""
    inertia = sys.link.inertia
    centre = pos + rot.rotate(vec3(rows(inertia.transform.pos, plan.order)))
    axes = rot.mul(quat(rows(inertia.transform.rot, plan.order))).matrix()
    moments = Sym3.from_principal(axes, vec3(rows(inertia.moments, plan.order)))
    return rigid_inertia(rows(inertia.mass, plan.order), centre - origin, moments)


def common_points(plan: Layout, pos: Vec3) -> Vec3:
    """Return the origin of each link's root: the common point. One row if there is one tree."""
    return rows(pos, common(plan))


def _per_dof(
    plan: Layout,
    structure: Structure,
    subspaces: Sequence[Spatial | None],
    composite: Rigid,
    carried: Spatial,
) -> tuple[Spatial, Spatial, jax.Array]:
    """Return S, the momentum of the composite inertia per unit rate, and the bias, for each dof.

    All are in the order of elimination.
    """
    parts, index = [], []
    for stack, s in zip(plan.stacks, subspaces, strict=True):
        if s is None:
            continue
        inertia, force = rows((composite, carried), stack.links)
        # Table 6.2: F = I^c S. Table 5.1: tau = S^T f, with the force f that the subtree needs.
        parts.append((s, inertia.mul(s), s.dot(force)))
        index += [d for place in stack.qd for d in place]
    table = join([jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), p) for p in parts])
    # `index` lists the degrees of freedom stack by stack; `at` undoes it.
    at = np.argsort(index)
    # Without the barrier XLA computes these again for every entry of the mass matrix that reads
    # them.
    return fusion_barrier(rows(table, [int(at[d]) for d in structure.order]))


def _in_blocks(values: jax.Array, structure: Structure) -> jax.Array:
    """Return rows of the model's order in the order of elimination."""
    return rows(values, structure.order)


def rotor_fronts(
    sys: System, plan: Layout, structure: Structure, dynamics: SmoothDynamics
) -> list[Front]:
    """Return the part of the mass matrix's fronts that is the armature of tendons, if any."""
    pos, origin = dynamics.pos, common_points(plan, dynamics.pos)
    motion = LinkMotion(pos, dynamics.rot, dynamics.velocity, dynamics.acceleration, origin)
    rotors = tendon_rotors(sys, plan, structure, motion, dynamics.subspace)
    return _outer_fronts(structure, [r.moment for r in rotors], [r.momentum for r in rotors])


def _mass_fronts(
    structure: Structure,
    subspace: Spatial,
    momentum: Spatial,
    armature: jax.Array,
    rotors: Sequence[TendonRotor],
) -> list[Front]:
    """Return the fronts of the mass matrix: for each block, rows over the path to the root.

    Row j holds S_i^T F_j for all ancestors i of the degree of freedom j (table 6.2). The moments
    of a tendon and its momenta are one more component of S and F. As in MuJoCo, its entries between
    degrees of freedom of which neither carries the other are left out: the matrix keeps the
    sparsity of the tree.
    """
    fronts = _outer_fronts(
        structure,
        [*(c for v in subspace for c in v), *(r.moment for r in rotors)],
        [*(c for v in momentum for c in v), *(r.momentum for r in rotors)],
    )
    # The armature adds to the diagonal: a rotor is geared to its own degree of freedom only.
    return [
        algebra(block).add_diagonal(front, own(block, armature))
        for block, front in zip(structure.blocks, fronts, strict=True)
    ]


def _outer_fronts(
    structure: Structure, subspace: Sequence[jax.Array], momentum: Sequence[jax.Array]
) -> list[Front]:
    """Return the sums over components of S_i F_j, for all ancestors i of j."""
    paths = list(zip(*(on_paths(structure, c) for c in subspace), strict=True))
    return [
        algebra(block).mass(block, [own(block, c) for c in momentum], path)
        for block, path in zip(structure.blocks, paths, strict=True)
    ]
