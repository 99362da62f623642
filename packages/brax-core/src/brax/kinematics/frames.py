"""Forward kinematics: link frames and their velocities from joint coordinates.

Links with the same joint types are evaluated together, as one *stack*, in the frames of their
parents. Then the frames of all links are composed along the tree. Components are (links, batch).

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 5.3.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax

from brax.base import Motion, System, Transform
from brax.components import Quat, Vec3, quat, rows, stack, total, vec3, zero_vec
from brax.errors import ModelError, closest
from brax.joints import JointParams, JointType, Twist
from brax.kernels.batch_last import batch_last
from brax.math import normalize
from brax.spatial import Spatial
from brax.tree import Group, Layout, from_roots, in_order, layout


class Frames(NamedTuple):
    """Link frames in the world and the velocities of their origins, world axes.

    All components have the shape (links, batch).
    """

    pos: Vec3
    """Positions [m]."""
    rot: Quat
    """Orientations."""
    ang: Vec3
    """Angular velocities [rad/s]."""
    vel: Vec3
    """Velocities of the origins [m/s]."""


def joint_params(sys: System, joints: tuple[int, ...]) -> JointParams:
    """Return the parameters of joints of one type, leaves with a trailing batch axis."""
    user = rows(sys.joint.user, joints)
    return JointParams(
        axis=vec3(rows(sys.joint.axis, joints)),
        user=tuple(user[:, i] for i in range(user.shape[1])),
    )


class JointGroup(NamedTuple):
    """The joints at one place of a stack, of all its links, in the parents' frames or in the world.

    The parent of a root is the world.
    """

    kind: JointType
    """The joint type."""
    params: JointParams
    """Parameters of the joints."""
    q: tuple[jax.Array, ...]
    """Coordinates, each (links, batch)."""
    rates: tuple[jax.Array, ...]
    """Rates of the degrees of freedom, each (links, batch)."""
    rot: Quat
    """Orientation of the joint's axes before the joint acts."""
    point: Vec3
    """Anchor after the joint has acted [m]."""

    def seen(self, parent: tuple[Vec3, Quat] | None) -> "JointGroup":
        """Return the joints in the world, from the poses of the parents; None means the world."""
        if parent is None:
            return self
        pos, rot = parent
        return self._replace(rot=rot.mul(self.rot), point=pos + rot.rotate(self.point))

    def twists(self) -> list[Twist]:
        """Return the motion subspace about `point`, one twist for each degree of freedom."""
        return [self.turned(t) for t in self.kind.motion_subspace(self.params, self.q)]

    def turned(self, twist: Twist) -> Twist:
        """Rotate a twist from the joint's axes by `rot`; None stays None."""
        return Twist(*(None if part is None else self.rot.rotate(part) for part in twist))

    def twist(self) -> Twist:
        """Return the joint's velocity about `point`; a part that is always zero is None."""
        parts: list[Vec3 | None] = [None, None]
        for twist, rate in zip(self.twists(), self.rates, strict=True):
            for k, part in enumerate(twist):
                if part is not None:
                    here = parts[k]
                    parts[k] = part * rate if here is None else here + part * rate
        return Twist(*parts)


class Hung(NamedTuple):
    """The links of a stack and their joints, in the frames of the links' parents."""

    pos: Vec3
    """Positions of the links [m]."""
    rot: Quat
    """Orientations of the links."""
    joints: list[JointGroup]
    """The joints, in the order in which they are applied."""


def hung(sys: System, plan: Layout, stack: Group, q: jax.Array, qd: jax.Array) -> Hung:
    """Evaluate the joints of a stack in the frames of the links' parents.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        plan: the layout of its links.
        stack: the stack.
        q: coordinates minus `ref`, (nq, batch).
        qd: velocities, (nv, batch).
    """
    links = [plan.order[p] for p in stack.links]
    pos = vec3(rows(sys.link.transform.pos, links))
    rot = quat(rows(sys.link.transform.rot, links))
    rates = iter(rows(qd, index) for index in stack.qd)
    joints = []
    for kind, mine, index in zip(stack.types, stack.joints, stack.q, strict=True):
        params, anchor = joint_params(sys, mine), vec3(rows(sys.joint.pos, mine))
        coordinates = tuple(rows(q, i) for i in index)
        shift, turn = kind.transform(params, coordinates)
        point = pos + rot.rotate(anchor if shift is None else anchor + shift)
        speeds = tuple(next(rates) for _ in range(kind.qd_width))
        joints.append(JointGroup(kind, params, coordinates, speeds, rot, point))
        rot = rot if turn is None else rot.mul(turn)
        # The joint rotates about its anchor, which is fixed in the link.
        pos = point - rot.rotate(anchor)
    return Hung(pos, rot, joints)


def stack_frames(
    sys: System, plan: Layout, stack: Group, parent: Frames | None, q: jax.Array, qd: jax.Array
) -> Frames:
    """Return the frames of a stack's links from those of their parents; None means the world."""
    pos, rot, joints = hung(sys, plan, stack, q, qd)
    ang = vel = zero_vec(q[:1] * 0 + pos.x)
    pose = None
    if parent is not None:
        pose = parent.pos, parent.rot
        pos, rot = _beyond(pose, (pos, rot))
        ang, vel = parent.ang, parent.vel + parent.ang.cross(pos - parent.pos)
    for joint in joints:
        here = joint.seen(pose)
        turned, moved = here.twist()
        vel = vel if moved is None else vel + moved
        if turned is not None:
            ang, vel = ang + turned, vel + turned.cross(pos - here.point)
    return Frames(pos, rot, ang, vel)


def poses(plan: Layout, stacks: Sequence[Hung]) -> tuple[Vec3, Quat]:
    """Return the positions and orientations of all links in the world, in the layout's order."""
    own = [(stack.pos, stack.rot) for stack in stacks]
    return from_roots(in_order(plan, own), plan, _beyond)


def _beyond(above: tuple[Vec3, Quat], below: tuple[Vec3, Quat]) -> tuple[Vec3, Quat]:
    """Compose two poses: `below`, given in the frame `above`, in that frame's parent."""
    return above[0] + above[1].rotate(below[0]), above[1].mul(below[1])


def seen(plan: Layout, stacks: Sequence[Hung], pose: tuple[Vec3, Quat]) -> list[list[JointGroup]]:
    """Return all joints in the world, by stack, from the poses of all links."""
    parents = [None if s.parents is None else rows(pose, s.parents) for s in plan.stacks]
    return [
        [joint.seen(parent) for joint in stack.joints]
        for stack, parent in zip(stacks, parents, strict=True)
    ]


def about(twist: Twist, arm: Vec3) -> Spatial:
    """Move a twist to another reference point.

    Args:
        twist: the twist about a point.
        arm: vector from the new reference point to that point [m].
    """
    ang, vel = twist
    if ang is None:
        vel = zero_vec(arm.x) if vel is None else vel
        return Spatial(zero_vec(arm.x), vel + zero_vec(arm.x))
    swing = arm.cross(ang)
    return Spatial(ang + zero_vec(arm.x), swing if vel is None else swing + vel)


def link_frames(sys: System, q: jax.Array, qd: jax.Array) -> Frames:
    """Return the frames of all links in the model's order, for arrays batched on the last axis.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        q: joint coordinates [rad or m], shape (nq, batch).
        qd: joint velocities [rad/s or m/s], shape (nv, batch).
    """
    # Velocities are summed along the tree as spatial vectors about the root's origin. Without a
    # transformation between links the sum is associative, so that it takes as many rounds as the
    # depth of the tree has binary digits.
    plan, q = layout(sys), q - sys.ref
    stacks = [hung(sys, plan, group, q, qd) for group in plan.stacks]
    pos, rot = poses(plan, stacks)
    origin = rows(pos, common(plan))
    own = []
    for group, joints in zip(plan.stacks, seen(plan, stacks, (pos, rot)), strict=True):
        centre = on_links(origin, group)
        own.append(total(about(joint.twist(), joint.point - centre) for joint in joints))
    ang, lin = from_roots(in_order(plan, own), plan, Spatial.__add__)
    return rows(Frames(pos, rot, ang, lin + ang.cross(pos - origin)), plan.position)


def common(plan: Layout) -> tuple[int, ...]:
    """Return the root of each link's tree, whose origin is the tree's common point.

    A model with one tree has one entry.
    """
    return (0,) if len(set(plan.root)) == 1 else plan.root


def on_links(origin: Vec3, group: Group) -> Vec3:
    """Select the common points of a group's links."""
    return origin if len(origin.x) == 1 else rows(origin, group.links)


def to_state(frames: Frames) -> tuple[Transform, Motion]:
    """Pack components as `State.x` and `State.xd`, arrays of shape (links, 3 or 4, batch)."""
    return (
        Transform(stack(frames.pos), stack(frames.rot)),
        Motion(stack(frames.ang), stack(frames.vel)),
    )


def _forward(sys: System, q: jax.Array, qd: jax.Array) -> tuple[Transform, Motion]:
    """Compute `forward` for arrays with a trailing batch axis."""
    return to_state(link_frames(sys, q, qd))


_forward_behind_boundary = batch_last(_forward)


def forward(sys: System, q: jax.Array, qd: jax.Array) -> tuple[Transform, Motion]:
    """Return link frames and their velocities.

    Args:
        sys: the model.
        q: joint coordinates [rad or m], shape (nq,).
        qd: joint velocities [rad/s or m/s], shape (nv,).

    Returns:
        Link frames in the world, and the velocities of their origins in world axes; both shape
        (n_links, ...).

    Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 5.3.
    """
    return _forward_behind_boundary(sys, q, qd)


def frame(sys: System, x: Transform, body: str, mocap: Transform | None = None) -> Transform:
    """Return the frame of a body in the world, whether it is a link or part of one.

    Args:
        sys: the model.
        x: link frames in the world, shape (n_links, ...).
        body: name of the body in the model.
        mocap: frames of the mocap bodies, `State.mocap`, shape (n_mocap, ...); None means the
            model's.

    Returns:
        The frame, shape (...).

    Raises:
        ModelError: if the model has no such body.
    """
    if body in sys.link_names:
        return x.take(sys.link_names.index(body))
    if body not in sys.fixed_names:
        names = (*sys.link_names, *sys.fixed_names)
        raise ModelError(f"the model has no body '{body}'.{closest(body, names)}")
    index = sys.fixed_names.index(body)
    link, place, on = sys.fixed_link[index], sys.fixed.take(index), sys.fixed_mocap[index]
    if mocap is not None and on >= 0:
        carrier = sys.fixed.take(sys.mocap_fixed[on])
        there = Transform(mocap.pos[on], normalize(mocap.rot[on])[0])
        place = there.do(carrier.inv_do(place))
    return place if link < 0 else x.take(link).do(place)
