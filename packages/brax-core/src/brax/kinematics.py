"""From joint coordinates to link frames and back."""

from typing import Any, NamedTuple

import jax

from brax.base import Motion, System, Transform
from brax.batch_last import batch_last
from brax.components import Quat, Vec3, quat, rows, stack, vec3, zero_vec
from brax.joints import JointParams
from brax.tree import Group, Layout, down, join, layout


class Frames(NamedTuple):
    """Link frames in the world and the velocities of their origins."""

    pos: Vec3
    rot: Quat
    ang: Vec3
    vel: Vec3


def joint_params(sys: System, joints: tuple[int, ...]) -> JointParams:
    """What the joint type asks for, for joints of one type; leaves with a trailing batch axis."""
    user = rows(sys.joint.user, joints)
    return JointParams(
        axis=vec3(rows(sys.joint.axis, joints)),
        user=tuple(user[:, i] for i in range(user.shape[1])),
    )


def _group_frames(
    sys: System, plan: Layout, group: Group, parent: Frames | None, q: jax.Array, qd: jax.Array
) -> Frames:
    links = [plan.order[p] for p in group.links]
    pos = vec3(rows(sys.link.transform.pos, links))
    rot = quat(rows(sys.link.transform.rot, links))
    ang = vel = zero_vec(q[:1] * 0 + pos.x)
    if parent is not None:
        pos, rot = parent.pos + parent.rot.rotate(pos), parent.rot.mul(rot)
        ang, vel = parent.ang, parent.vel + parent.ang.cross(pos - parent.pos)
    rates = iter(rows(qd, index) for index in group.qd)
    for kind, joints, index in zip(group.types, group.joints, group.q, strict=True):
        params, anchor = joint_params(sys, joints), vec3(rows(sys.joint.pos, joints))
        coordinates = tuple(rows(q, i) for i in index)
        shift, turn = kind.transform(params, coordinates)
        old, point = pos, pos + rot.rotate(anchor if shift is None else anchor + shift)
        moved, turned = zero_vec(point.x), zero_vec(point.x)
        for twist in kind.motion_subspace(params, coordinates):
            rate = next(rates)
            if twist.ang is not None:
                turned = turned + rot.rotate(twist.ang) * rate
            if twist.vel is not None:
                moved = moved + rot.rotate(twist.vel) * rate
        rot = rot if turn is None else rot.mul(turn)
        pos = point - rot.rotate(anchor)
        vel = vel + ang.cross(pos - old) + moved + turned.cross(pos - point)
        ang = ang + turned
    return Frames(pos, rot, ang, vel)


def link_frames(sys: System, q: jax.Array, qd: jax.Array) -> Frames:
    """Frames of all links in the model's order, for arrays with a trailing batch axis."""
    plan = layout(sys)
    frames: list[Any] = [None] * len(plan.groups)
    for i, group in enumerate(plan.groups):
        frames[i] = _group_frames(sys, plan, group, down(frames, group, plan), q, qd)
    return rows(join(frames), plan.position)


def to_state(frames: Frames) -> tuple[Transform, Motion]:
    """Packs components as `State.x` and `State.xd`."""
    return (
        Transform(stack(frames.pos), stack(frames.rot)),
        Motion(stack(frames.ang), stack(frames.vel)),
    )


def _forward(sys: System, q: jax.Array, qd: jax.Array) -> tuple[Transform, Motion]:
    return to_state(link_frames(sys, q, qd))


_forward_behind_boundary = batch_last(_forward)


def forward(sys: System, q: jax.Array, qd: jax.Array) -> tuple[Transform, Motion]:
    """Link frames and their velocities.

    Args:
        sys: the model.
        q: joint coordinates, shape (nq,).
        qd: joint velocities, shape (nv,).

    Returns:
        Link frames in the world, and the velocities of their origins in world axes.

    Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 5.3.
    """
    return _forward_behind_boundary(sys, q, qd)
