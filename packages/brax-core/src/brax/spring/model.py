"""The constants of a model as the spring pipeline's kernels want them, by group of links."""

from typing import NamedTuple

import jax

from brax.base import System
from brax.components import Quat, Vec3, quat, rows, vec3
from brax.joints import JointParams
from brax.kinematics import joint_params
from brax.tree import Group, Layout, layout


class GroupModel(NamedTuple):
    """Constants of one group, components (links, 1 or batch); principal frames throughout."""

    mass: jax.Array
    moments: Vec3
    """Principal moments of inertia."""
    link_pos: Vec3
    """Link frame in the principal frame."""
    link_rot: Quat
    hang_pos: Vec3
    """Link frame at rest in the parent's principal frame (in the world for a root)."""
    hang_rot: Quat
    anchors: tuple[Vec3, ...]
    """For each place in the stack, the anchor in the link frame."""
    params: tuple[JointParams, ...]
    """For each place in the stack, what its joint type asks for."""
    armature: tuple[jax.Array, ...]
    """For each degree of freedom of the stack; likewise below."""
    damping: tuple[jax.Array, ...]
    stiffness: tuple[jax.Array, ...]
    springref: tuple[jax.Array, ...]
    lower: tuple[jax.Array, ...]
    upper: tuple[jax.Array, ...]


def group_models(sys: System) -> tuple[GroupModel, ...]:
    """Takes a system with a trailing batch axis apart."""
    plan = layout(sys)
    return tuple(_group_model(sys, plan, group) for group in plan.groups)


def _group_model(sys: System, plan: Layout, group: Group) -> GroupModel:
    links = [plan.order[p] for p in group.links]
    inertia, link, joint = sys.link.inertia, sys.link.transform, sys.joint
    com, principal = (
        vec3(rows(inertia.transform.pos, links)),
        quat(rows(inertia.transform.rot, links)),
    )
    hang_pos, hang_rot = vec3(rows(link.pos, links)), quat(rows(link.rot, links))
    if group.parents is not None:
        parents = [plan.order[p] for p in group.parents]
        parent_com = vec3(rows(inertia.transform.pos, parents))
        parent_rot = quat(rows(inertia.transform.rot, parents)).conj
        hang_pos = parent_rot.rotate(hang_pos - parent_com)
        hang_rot = parent_rot.mul(hang_rot)

    def per_dof(values: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(rows(values, index) for index in group.qd)

    return GroupModel(
        mass=rows(inertia.mass, links),
        moments=vec3(rows(inertia.i, links)),
        link_pos=principal.conj.rotate(-com),
        link_rot=principal.conj,
        hang_pos=hang_pos,
        hang_rot=hang_rot,
        anchors=tuple(vec3(rows(joint.pos, index)) for index in group.joints),
        params=tuple(joint_params(sys, index) for index in group.joints),
        armature=per_dof(sys.dof.armature),
        damping=per_dof(sys.dof.damping),
        stiffness=per_dof(sys.dof.stiffness),
        springref=per_dof(sys.dof.springref),
        lower=per_dof(sys.dof.limit[0]),
        upper=per_dof(sys.dof.limit[1]),
    )
