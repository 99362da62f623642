"""Motion without constraints: frames, motion subspaces, mass matrix and bias force of a tree.

Spatial quantities are in world axes, about the origin of the root link of each tree.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, chapters 5 and 6.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.components import Quat, Sym3, Vec3, quat, rows, total, vec3, zero_vec
from brax.generalized.fronts import Front, algebra, on_paths, own
from brax.generalized.structure import Structure
from brax.joints import Twist
from brax.kinematics import joint_params
from brax.spatial import Rigid, Spatial, rigid_inertia
from brax.tree import Group, Layout, down, join, up


class Place(NamedTuple):
    """One joint of the stack, of all links of a group, in world axes."""

    twists: list[Twist]
    """About `point`, for each degree of freedom."""
    point: Vec3
    """The moved anchor."""
    drift: Twist
    """What the subspace's own change adds to the acceleration, relative to the frame before."""


class Frames(NamedTuple):
    """Frames of the links of a group, and their joints."""

    pos: Vec3
    rot: Quat
    stack: list[Place]


class Motions(NamedTuple):
    """What the velocities say about a group."""

    subspace: Spatial | None
    """For each degree of freedom of the stack, (stack, links, batch); None if there is none."""
    velocity: Spatial
    acceleration: Spatial
    """Without accelerations of the joints; of a tree that gravity holds, upwards."""


class Smooth(NamedTuple):
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
) -> Smooth:
    """Evaluates all stages.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        plan: its links.
        structure: its blocks.
        q: coordinates (nq, batch).
        qd: rates (nv, batch), in the model's order.
        inertia_forces: whether the bias has the Coriolis and centrifugal forces, or gravity alone.
    """
    frames = link_frames(sys, plan, q, qd)
    origins = [_origin(plan, frames, group) for group in plan.groups]
    motions = _motions(sys, plan, frames, origins, qd)
    pos, rot = join([f.pos for f in frames]), join([f.rot for f in frames])
    origin = origins[0] if len(set(plan.root)) == 1 else join(origins)
    velocity = join([m.velocity for m in motions])
    acceleration = join([m.acceleration for m in motions])
    inertia = link_inertias(sys, plan, pos, rot, origin)
    if inertia_forces:
        force = inertia.mul(acceleration) + _cross_force(velocity, inertia.mul(velocity))
    else:
        force = inertia.mul(_upwards(sys, velocity.ang.x))
    loaded = composites(plan, (inertia, force))
    composite, carried = [x for x, _ in loaded], [x for _, x in loaded]
    subspace, momentum, bias = _per_dof(plan, structure, motions, composite, carried)
    armature = _in_blocks(sys.dof.armature, structure)
    mass = _mass_fronts(structure, subspace, momentum, armature)
    points = _dof_origin(sys, plan, structure, origin)
    return Smooth(pos, rot, velocity, acceleration, points, subspace, mass, bias)


def link_frames(sys: System, plan: Layout, q: jax.Array, qd: jax.Array) -> list[Frames]:
    """Frames of all links, by group."""
    out: list[Any] = [None] * len(plan.groups)
    poses: list[Any] = [None] * len(plan.groups)
    q = q - sys.ref
    for i, group in enumerate(plan.groups):
        out[i] = _group_frames(sys, plan, group, down(poses, group, plan), q, qd)
        poses[i] = out[i][:2]
    return out


def _group_frames(
    sys: System, plan: Layout, group: Group, parent: Any, q: jax.Array, qd: jax.Array
) -> Frames:
    links = [plan.order[p] for p in group.links]
    pos = vec3(rows(sys.link.transform.pos, links))
    rot = quat(rows(sys.link.transform.rot, links))
    if parent is not None:
        pos, rot = parent[0] + parent[1].rotate(pos), parent[1].mul(rot)
    rates = iter(rows(qd, index) for index in group.qd)
    stack = []
    for kind, joints, index in zip(group.types, group.joints, group.q, strict=True):
        params, anchor = joint_params(sys, joints), vec3(rows(sys.joint.pos, joints))
        coordinates = tuple(rows(q, i) for i in index)
        mine = tuple(next(rates) for _ in range(kind.qd_width))
        shift, turn = kind.transform(params, coordinates)
        point = pos + rot.rotate(anchor if shift is None else anchor + shift)
        twists = [_turned(t, rot) for t in kind.motion_subspace(params, coordinates)]
        stack.append(Place(twists, point, _turned(kind.drift(params, coordinates, mine), rot)))
        rot = rot if turn is None else rot.mul(turn)
        pos = point - rot.rotate(anchor)
    return Frames(pos, rot, stack)


def _turned(twist: Twist, rot: Quat) -> Twist:
    return Twist(*(None if part is None else rot.rotate(part) for part in twist))


def _origin(plan: Layout, frames: Sequence[Frames], group: Group) -> Vec3:
    """The common point of the trees of a group's links."""
    if len(set(plan.root)) == 1:
        return frames[0].pos
    roots = [f.pos for f, g in zip(frames, plan.groups, strict=True) if g.parents is None]
    return rows(join(roots), [plan.root[p] for p in group.links])


def _dof_origin(sys: System, plan: Layout, structure: Structure, origin: Vec3) -> Vec3:
    if len(set(plan.root)) == 1:
        return origin
    owners = sys.dof_link()
    return rows(origin, [plan.position[owners[d]] for d in structure.order])


def _motions(
    sys: System,
    plan: Layout,
    frames: Sequence[Frames],
    origins: Sequence[Vec3],
    qd: jax.Array,
) -> list[Motions]:
    """Velocities, and accelerations that the joints do not cause, from the roots outwards."""
    still: list[Any] = [None] * len(plan.groups)
    out: list[Motions] = []
    for i, group in enumerate(plan.groups):
        parent = down(still, group, plan)
        if parent is None:
            zero = zero_vec(origins[i].x)
            parent = Spatial(zero, zero), _upwards(sys, zero.x)
        velocity, acceleration = parent
        rates = iter(rows(qd, index) for index in group.qd)
        subspace: list[Spatial] = []
        for place in frames[i].stack:
            arm = place.point - origins[i]
            mine = [(t, next(rates)) for t in place.twists]
            ang = _sum([(t.ang, r) for t, r in mine], arm.x)
            vel = _sum([(t.vel, r) for t, r in mine], arm.x)
            relative = _about_origin(Twist(ang, vel), arm)
            acceleration = (
                acceleration + _cross_motion(velocity, relative) + _drift(place, ang, vel, arm)
            )
            velocity = velocity + relative
            subspace += [_about_origin(t, arm) for t, _ in mine]
        still[i] = velocity, acceleration
        stacked = jax.tree.map(lambda *x: jnp.stack(x), *subspace) if subspace else None
        out.append(Motions(stacked, velocity, acceleration))
    return out


def _upwards(sys: System, like: jax.Array) -> Spatial:
    """The acceleration of a world that gravity would not move."""
    zero = zero_vec(like)
    return Spatial(zero, Vec3(*(zero.x - sys.opt.gravity[k : k + 1] for k in range(3))))


def _sum(terms: Sequence[tuple[Vec3 | None, jax.Array]], like: jax.Array) -> Vec3 | None:
    given = [v * r for v, r in terms if v is not None]
    return Vec3(*(total(c) for c in zip(*given, strict=True))) if given else None


def _about_origin(twist: Twist, arm: Vec3) -> Spatial:
    """The twist about a point `arm` away from the common one, about the common one."""
    ang, vel = twist
    if ang is None:
        vel = zero_vec(arm.x) if vel is None else vel
        return Spatial(zero_vec(arm.x), vel + zero_vec(arm.x))
    swing = arm.cross(ang)
    return Spatial(ang + zero_vec(arm.x), swing if vel is None else swing + vel)


def _drift(place: Place, ang: Vec3 | None, vel: Vec3 | None, arm: Vec3) -> Spatial:
    """Acceleration about the common point, at constant rates, beside the frame's own motion."""
    out = _about_origin(place.drift, arm)
    if ang is None or vel is None:
        return out
    return Spatial(out.ang, out.lin - ang.cross(vel))


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
    return rows(pos, [0] if len(set(plan.root)) == 1 else plan.root)


def composites(plan: Layout, values: Any) -> list[Any]:
    """Sums over all that a link carries, itself among it, by group."""
    loaded = [rows(values, group.links) for group in plan.groups]
    for i in reversed(range(len(plan.groups))):
        for target, part in up(loaded[i], plan.groups[i], plan):
            loaded[target] = jax.tree.map(jnp.add, loaded[target], part)
    return loaded


def _per_dof(
    plan: Layout,
    structure: Structure,
    motions: Sequence[Motions],
    composite: Sequence[Rigid],
    carried: Sequence[Spatial],
) -> tuple[Spatial, Spatial, jax.Array]:
    """Subspace, momentum per unit rate of what it carries, and bias, in elimination order."""
    parts, index = [], []
    for group, motion, inertia, force in zip(plan.groups, motions, composite, carried, strict=True):
        if motion.subspace is None:
            continue
        s = motion.subspace
        parts.append((s, inertia.mul(s), s.dot(force)))
        index += [d for place in group.qd for d in place]
    table = join([jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), p) for p in parts])
    at = np.argsort(index)
    return rows(table, [int(at[d]) for d in structure.order])


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
