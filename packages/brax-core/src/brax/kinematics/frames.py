"""From joint coordinates to link frames."""

from typing import Any, NamedTuple

import jax

from brax.base import Motion, System, Transform
from brax.batch_last import batch_last
from brax.components import Quat, Vec3, quat, rows, stack, vec3, zero_vec
from brax.errors import ModelError, closest
from brax.joints import JointParams
from brax.math import normalize
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


def group_frames(
    sys: System, plan: Layout, group: Group, parent: Frames | None, q: jax.Array, qd: jax.Array
) -> Frames:
    """Frames of the links of a group, from those of their parents; None where it is the world."""
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
    plan, q = layout(sys), q - sys.ref
    frames: list[Any] = [None] * len(plan.groups)
    for i, group in enumerate(plan.groups):
        frames[i] = group_frames(sys, plan, group, down(frames, group, plan), q, qd)
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


def frame(sys: System, x: Transform, body: str, mocap: Transform | None = None) -> Transform:
    """The frame of a body in the world, whether it is a link or part of one.

    Args:
        sys: the model.
        x: link frames in the world, shape (n_links, ...).
        body: its name in the model.
        mocap: frames of the mocap bodies, `State.mocap`; None for where the model has them.

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
        place = there.do(carrier.to_local(place))
    return place if link < 0 else x.take(link).do(place)
