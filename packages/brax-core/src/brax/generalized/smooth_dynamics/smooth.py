"""Motion without constraints: frames, motion subspaces, mass matrix and bias force of a tree.

Spatial quantities are in world axes, about the origin of the root link of each tree.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, chapters 5 and 6.
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
from brax.joints import Twist
from brax.kernels.fusion_barrier import fusion_barrier
from brax.kinematics.frames import JointGroup, about, common, hung, on_links, poses, seen
from brax.spatial import Rigid, Spatial, rigid_inertia
from brax.tree import Layout, from_roots, in_order, join, over_subtrees


class JointMotions(NamedTuple):
    """What the velocities say about links whose joints are alike."""

    subspace: list[Spatial | None]
    """By stack of the layout: for each degree of freedom, (stack, links, batch); None if there is
    none."""
    velocity: Spatial
    """Of all links, in the layout's order, like the fields below."""
    acceleration: Spatial
    """Without accelerations of the joints; of a tree that gravity holds, upwards."""


class SmoothDynamics(NamedTuple):
    """What the unconstrained dynamics are made of."""

    pos: Vec3
    """Link frames in the world, in the layout's order, (links, batch)."""
    rot: Quat
    velocity: Spatial
    """Of the links, about their tree's common point."""
    acceleration: Spatial
    """The same, while all rates stay; of a tree that gravity holds, upwards."""
    origin: Vec3
    """The common point of each degree of freedom's tree, in the order of elimination; one row
    where there is one tree."""
    subspace: Spatial
    """Of the degrees of freedom, in the order of elimination, (nv, batch)."""
    mass: list[Front]
    """Fronts of the mass matrix, rotors included."""
    bias: jax.Array
    """Coriolis, centrifugal and gravity force, in the order of elimination, (nv, batch)."""


def smooth(
    sys: System,
    plan: Layout,
    structure: Structure,
    q: jax.Array,
    qd: jax.Array,
    inertia_forces: bool = True,
) -> SmoothDynamics:
    """Evaluates all stages.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        plan: its links.
        structure: its blocks.
        q: coordinates (nq, batch).
        qd: rates (nv, batch), in the model's order.
        inertia_forces: whether the bias has the Coriolis and centrifugal forces, or gravity alone.
    """
    q = q - sys.ref
    stacks = [hung(sys, plan, group, q, qd) for group in plan.stacks]
    pos, rot = poses(plan, stacks)
    origin = common_points(plan, pos)
    joints = seen(plan, stacks, (pos, rot))
    subspaces, velocity, acceleration = _motions(sys, plan, joints, origin)
    inertia = link_inertias(sys, plan, pos, rot, origin)
    if inertia_forces:
        force = inertia.mul(acceleration) + _cross_force(velocity, inertia.mul(velocity))
    else:
        force = inertia.mul(_upwards(sys, velocity.ang.x))
    composite, carried = over_subtrees((inertia, force), plan)
    subspace, momentum, bias = _per_dof(plan, structure, subspaces, composite, carried)
    armature = _in_blocks(sys.dof.armature, structure)
    mass = _mass_fronts(structure, subspace, momentum, armature)
    points = _dof_origin(sys, plan, structure, origin)
    return SmoothDynamics(pos, rot, velocity, acceleration, points, subspace, mass, bias)


def _dof_origin(sys: System, plan: Layout, structure: Structure, origin: Vec3) -> Vec3:
    if len(set(plan.root)) == 1:
        return origin
    owners = sys.dof_link()
    return rows(origin, [plan.position[owners[d]] for d in structure.order])


def _motions(
    sys: System, plan: Layout, joints: Sequence[Sequence[JointGroup]], origin: Vec3
) -> JointMotions:
    """Velocities, and accelerations that the joints do not cause.

    About one point of a tree both are sums over a link and all that carry it.
    """
    subspaces: list[Spatial | None] = []
    steps: list[list[tuple[Spatial, Spatial]]] = []
    for stack, mine in zip(plan.stacks, joints, strict=True):
        centre = on_links(origin, stack)
        signs = [joint.point - centre for joint in mine]
        steps.append([_step(joint, arm) for joint, arm in zip(mine, signs, strict=True)])
        pairs = zip(mine, signs, strict=True)
        subspace = [about(t, arm) for joint, arm in pairs for t in joint.twists()]
        subspaces.append(jax.tree.map(lambda *x: jnp.stack(x), *subspace) if subspace else None)
    own = [total(relative for relative, _ in taken) for taken in steps]
    velocity = from_roots(in_order(plan, own), plan, Spatial.__add__)
    upwards = _upwards(sys, origin.x[:1])
    changes = []
    for stack, taken in zip(plan.stacks, steps, strict=True):
        now = upwards * 0.0 if stack.parents is None else rows(velocity, stack.parents)
        change = upwards * 0.0
        for relative, drift in taken:
            change, now = change + _cross_motion(now, relative) + drift, now + relative
        changes.append(change)
    change = from_roots(in_order(plan, changes), plan, Spatial.__add__)
    return JointMotions(subspaces, velocity, change + upwards)


def _step(joint: JointGroup, arm: Vec3) -> tuple[Spatial, Spatial]:
    """Velocity and acceleration that a joint adds at constant rates, about the common point; the
    latter beside the frame's own motion."""
    ang, vel = joint.twist()
    drift = about(joint.turned(joint.kind.drift(joint.params, joint.q, joint.rates)), arm)
    if ang is not None and vel is not None:
        drift = Spatial(drift.ang, drift.lin - ang.cross(vel))
    return about(Twist(ang, vel), arm), drift


def _upwards(sys: System, like: jax.Array) -> Spatial:
    """The acceleration of a world that gravity would not move."""
    zero = zero_vec(like)
    return Spatial(zero, Vec3(*(zero.x - sys.opt.gravity[k : k + 1] for k in range(3))))


def _cross_motion(v: Spatial, m: Spatial) -> Spatial:
    return Spatial(v.ang.cross(m.ang), v.ang.cross(m.lin) + v.lin.cross(m.ang))


def _cross_force(v: Spatial, f: Spatial) -> Spatial:
    return Spatial(v.ang.cross(f.ang) + v.lin.cross(f.lin), v.ang.cross(f.lin))


def link_inertias(sys: System, plan: Layout, pos: Vec3, rot: Quat, origin: Vec3) -> Rigid:
    """Spatial inertias of all links, in the layout's order, about their tree's common point."""
    inertia = sys.link.inertia
    centre = pos + rot.rotate(vec3(rows(inertia.transform.pos, plan.order)))
    axes = rot.mul(quat(rows(inertia.transform.rot, plan.order))).matrix()
    moments = Sym3.from_principal(axes, vec3(rows(inertia.i, plan.order)))
    return rigid_inertia(rows(inertia.mass, plan.order), centre - origin, moments)


def common_points(plan: Layout, pos: Vec3) -> Vec3:
    """Each link's tree's common point, its root's origin; one row if there is one tree."""
    return rows(pos, common(plan))


def _per_dof(
    plan: Layout,
    structure: Structure,
    subspaces: Sequence[Spatial | None],
    composite: Rigid,
    carried: Spatial,
) -> tuple[Spatial, Spatial, jax.Array]:
    """Subspace, momentum per unit rate of what it carries, and bias, in elimination order."""
    parts, index = [], []
    for stack, s in zip(plan.stacks, subspaces, strict=True):
        if s is None:
            continue
        inertia, force = rows((composite, carried), stack.links)
        parts.append((s, inertia.mul(s), s.dot(force)))
        index += [d for place in stack.qd for d in place]
    table = join([jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), p) for p in parts])
    at = np.argsort(index)
    return fusion_barrier(rows(table, [int(at[d]) for d in structure.order]))


def _in_blocks(values: jax.Array, structure: Structure) -> jax.Array:
    return rows(values, structure.order)


def _mass_fronts(
    structure: Structure, subspace: Spatial, momentum: Spatial, armature: jax.Array
) -> list[Front]:
    """The mass matrix, by block: row j couples a degree of freedom with those that carry it."""
    paths = list(zip(*(on_paths(structure, c) for v in subspace for c in v), strict=True))
    fronts: list[Front] = []
    for block, path in zip(structure.blocks, paths, strict=True):
        mine = [own(block, c) for v in momentum for c in v]
        kind = algebra(block)
        fronts.append(kind.add_diagonal(kind.mass(block, mine, path), own(block, armature)))
    return fronts
