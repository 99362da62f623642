"""Links in maximal coordinates, and their constants."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import jax

from brax.base import System
from brax.components import Mat3, Quat, Sym3, Vec3, quat, rows, vec3
from brax.joints import JointParams
from brax.kinematics import joint_params
from brax.spatial import Rigid, Spatial, rigid_inertia
from brax.tree import Group, Layout, PerDof, join

T = TypeVar("T")


class Links(NamedTuple):
    """Links in the layout's order: principal frames in the world, and velocities."""

    pos: Vec3
    """Centre of mass [m]."""
    rot: Quat
    """Orientation of the principal axes."""
    axes: Mat3
    """The same orientation as a matrix."""
    vel: Vec3
    """Velocity of the centre of mass [m/s]."""
    ang: Vec3
    """Angular velocity, world axes [rad/s]."""


class Masses(NamedTuple):
    """Masses and frames of links, components (links, 1 or batch)."""

    mass: jax.Array
    """Mass [kg]."""
    moments: Vec3
    """Principal moments of inertia [kg m²]."""
    com: Vec3
    """Centre of mass in the link frame."""
    pos: Vec3
    """Origin of the link frame in the principal frame."""
    rot: Quat
    """Orientation of the link frame in the principal frame."""


class Stack(NamedTuple):
    """Constants of links whose joints are of the same types, components (links, 1 or batch)."""

    hang_pos: Vec3
    """Origin of the link frame at rest in the parent's principal frame (in the world for a
    root)."""
    hang_rot: Quat
    """Its orientation."""
    link_rot: Quat
    """Orientation of the link frame in the link's own principal frame."""
    arm: Vec3
    """The last anchor in the principal frame."""
    anchors: tuple[Vec3, ...]
    """The anchor in the link frame, for each place in the stack."""
    params: tuple[JointParams, ...]
    """Parameters of the joint type, for each place in the stack."""
    ref: PerDof
    """Reference value of each coordinate."""
    armature: PerDof
    """Armature of each degree of freedom."""
    damping: PerDof
    """Damping of each degree of freedom."""
    stiffness: PerDof
    """Stiffness of each degree of freedom."""
    springref: PerDof
    """Rest position of each degree of freedom's spring."""
    dry: PerDof
    """Dry friction (`frictionloss`) of each degree of freedom."""
    lower: PerDof
    """Lower limit of each degree of freedom."""
    upper: PerDof
    """Upper limit of each degree of freedom."""


class TreesAtState(NamedTuple):
    """A model with its links and joint coordinates at one state."""

    sys: System
    """The model, its leaves with a trailing batch axis."""
    plan: Layout
    """The layout of the links."""
    masses: Masses
    """Constants of the links."""
    stacks: Sequence[Stack]
    """Constants of the joints, by stack."""
    links: Links
    """The links."""
    origins: Vec3
    """The common point of each link's tree, one row if there is one tree."""
    q: Sequence[PerDof]
    """Coordinates, by stack; empty for links without joints."""


def masses(sys: System, plan: Layout) -> Masses:
    """Return masses and frames of all links, in the layout's order."""
    inertia = rows(sys.link.inertia, plan.order)
    # MuJoCo's inertial frame: origin at the centre of mass, axes principal, so that inertia is
    # diagonal.
    com, principal = vec3(inertia.transform.pos), quat(inertia.transform.rot)
    # The inverse of the principal frame's pose in the link frame.
    pos, rot = principal.conj.rotate(-com), principal.conj
    return Masses(inertia.mass, vec3(inertia.moments), com, pos, rot)


def stacks(sys: System, plan: Layout, links: Masses) -> tuple[Stack, ...]:
    """Return the constants of all stacks of joints."""
    return tuple(_stack(sys, plan, stack, links) for stack in plan.stacks)


def _stack(sys: System, plan: Layout, stack: Group, of: Masses) -> Stack:
    """Return the constants of one stack."""
    links = [plan.order[p] for p in stack.links]
    hang_pos = vec3(rows(sys.link.transform.pos, links))
    hang_rot = quat(rows(sys.link.transform.rot, links))
    # The model gives the frame in the parent's link frame; here it is wanted in the parent's
    # principal frame.
    if stack.parents is not None:
        parent_rot = rows(of.rot, stack.parents)
        hang_pos = parent_rot.rotate(hang_pos - rows(of.com, stack.parents))
        hang_rot = parent_rot.mul(hang_rot)
    # Joints of a stack have their anchors in the frame of the link that they move, as in MJCF.
    anchors = tuple(vec3(rows(sys.joint.pos, index)) for index in stack.joints)
    pos, rot = rows(of.pos, stack.links), rows(of.rot, stack.links)

    def per_dof(values: jax.Array) -> PerDof:
        return tuple(rows(values, index) for index in stack.qd)

    return Stack(
        hang_pos=hang_pos,
        hang_rot=hang_rot,
        link_rot=rot,
        arm=pos + rot.rotate(anchors[-1]),
        anchors=anchors,
        params=tuple(joint_params(sys, index) for index in stack.joints),
        ref=tuple(rows(sys.ref, index) for place in stack.q for index in place),
        armature=per_dof(sys.dof.armature),
        damping=per_dof(sys.dof.damping),
        stiffness=per_dof(sys.dof.stiffness),
        springref=per_dof(sys.dof.springref),
        dry=per_dof(sys.dof.frictionloss),
        lower=per_dof(sys.dof.limit[0]),
        upper=per_dof(sys.dof.limit[1]),
    )


def parents(links: Links, stack: Group) -> Links | None:
    """Return the parents of a stack's links; None for the world."""
    return None if stack.parents is None else rows(links, stack.parents)


def about(links: Links, origins: Vec3) -> Spatial:
    """Return the velocities of the links about points that they carry."""
    # v_o = v_com - w x (com - o): the spatial velocity about another point of the same body.
    return Spatial(links.ang, links.vel - links.ang.cross(links.pos - origins))


def link_inertias(masses: Masses, links: Links, origins: Vec3) -> Rigid:
    """Return the spatial inertias of all links about the common points."""
    moments = Sym3.from_principal(links.axes, masses.moments)
    return rigid_inertia(masses.mass, links.pos - origins, moments)


def by_link(plan: Layout, values: T) -> list[T]:
    """Return rows of all links, by group of the layout."""
    return [rows(values, group.links) for group in plan.groups]


def by_group(plan: Layout, values: Sequence[T]) -> list[T]:
    """Return rows that are given by stack, by group of the layout."""
    return [rows(values[group.stack[0]], group.stack[1]) for group in plan.groups]


def by_stack(plan: Layout, values: Sequence[T]) -> list[T]:
    """Return rows that are given by group of the layout, by stack."""
    out = []
    for i in range(len(plan.stacks)):
        mine = [v for v, g in zip(values, plan.groups, strict=True) if g.stack[0] == i]
        # The groups of a stack come by depth, as the stack's own rows do.
        out.append(join(mine) if jax.tree.leaves(mine) else mine[0])
    return out
