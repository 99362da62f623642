"""What each joint allows, and how far its link is from what it allows."""

from typing import NamedTuple

import jax

from brax.components import Vec3, log_quat, zero_vec
from brax.joints import JointType
from brax.spatial import Spatial, invert
from brax.spring.bodies import Bodies, gyration
from brax.spring.model import GroupModel

ERP = 0.3
"""Share of a joint's separation that is taken back in one step."""


class Measured(NamedTuple):
    """The joints of a group as they stand; spatial quantities about the tree's common point."""

    q: tuple[jax.Array, ...]
    """Coordinates, corrected to the frames."""
    rates: tuple[jax.Array, ...]
    """Rates of the degrees of freedom."""
    subspace: tuple[Spatial, ...]
    """Velocity of the link relative to its parent, per unit of each rate."""
    drive: Spatial
    """Relative velocity that closes the separation, and follows the curvature of the motion."""


def _expected(
    model: GroupModel, types: tuple[JointType, ...], parent: Bodies | None, body: Bodies
) -> tuple[Vec3, Vec3, list[tuple[Vec3, Vec3, Vec3]]]:
    """Where the joints put the link.

    Returns:
        Separation of the last anchor (linear, angular), world axes; and for each degree of
        freedom its angular and linear velocity and the point they are taken about.
    """
    pos, rot = model.hang_pos, model.hang_rot
    if parent is not None:
        pos, rot = parent.pos + parent.rot.rotate(pos), parent.rot.mul(rot)
    twists, used = [], 0
    point = pos
    for kind, anchor, params in zip(types, model.anchors, model.params, strict=True):
        q = body.q[used : used + kind.q_width]
        used += kind.q_width
        shift, turn = kind.transform(params, q)
        point = pos + rot.rotate(anchor + shift)
        twists += [
            (rot.rotate(t.ang), rot.rotate(t.vel), point) for t in kind.motion_subspace(params, q)
        ]
        rot = rot.mul(turn)
        pos = point - rot.rotate(anchor)
    link_rot = body.rot.mul(model.link_rot)
    actual = body.pos + body.rot.rotate(model.link_pos) + link_rot.rotate(model.anchors[-1])
    return actual - point, log_quat(link_rot.mul(rot.conj)), twists


def measure(
    model: GroupModel,
    types: tuple[JointType, ...],
    parent: Bodies | None,
    parent_model: GroupModel | None,
    body: Bodies,
    origin: Vec3,
    dt: jax.Array,
) -> Measured:
    """Measures the joints of a group.

    The coordinates follow the frames by one Gauss-Newton step, which keeps them continuous over
    many turns. The rest is separation: a spring as stiff as the step can carry closes it.
    """
    gap, tilt, twists = _expected(model, types, parent, body)
    point = twists[-1][2] + gap
    local = [(ang, lin + ang.cross(point - at)) for ang, lin, at in twists]
    gram = invert([[a.dot(b) + v.dot(w) for b, w in local] for a, v in local])

    def project(ang: Vec3, lin: Vec3) -> list[jax.Array]:
        along = [a.dot(ang) + v.dot(lin) for a, v in local]
        return [sum(g * x for g, x in zip(row, along, strict=True)) for row in gram]

    step = project(tilt, gap)
    for (ang, lin), s in zip(local, step, strict=True):
        tilt, gap = tilt - ang * s, gap - lin * s
    spin, speed = _relative_velocity(parent, body, point)
    rates = project(spin, speed)
    bend = _curvature(model, parent, parent_model, body, point, local, rates)
    drive_ang = tilt * (-ERP / dt) + bend.ang * (0.5 * dt)
    drive_lin = gap * (-ERP / dt) + bend.lin * (0.5 * dt)
    arm = point - origin
    return Measured(
        q=_corrected(types, body.q, step),
        rates=tuple(rates),
        subspace=tuple(Spatial(ang, lin + arm.cross(ang)) for ang, lin in local),
        drive=Spatial(drive_ang, drive_lin + arm.cross(drive_ang)),
    )


def _corrected(
    types: tuple[JointType, ...], q: tuple[jax.Array, ...], step: list[jax.Array]
) -> tuple[jax.Array, ...]:
    out, i, j = [], 0, 0
    for kind in types:
        out += kind.integrate(q[i : i + kind.q_width], tuple(step[j : j + kind.qd_width]), 1.0)
        i, j = i + kind.q_width, j + kind.qd_width
    return tuple(out)


def _relative_velocity(parent: Bodies | None, body: Bodies, point: Vec3) -> tuple[Vec3, Vec3]:
    spin, speed = body.ang, body.vel + body.ang.cross(point - body.pos)
    if parent is None:
        return spin, speed
    return spin - parent.ang, speed - parent.vel - parent.ang.cross(point - parent.pos)


def _curvature(
    model: GroupModel,
    parent: Bodies | None,
    parent_model: GroupModel | None,
    body: Bodies,
    point: Vec3,
    local: list[tuple[Vec3, Vec3]],
    rates: list[jax.Array],
) -> Spatial:
    """Relative acceleration, at the anchor, by which the joint bends the links' free motion.

    Free motion is straight, the joint's is not; half of this, times the step, is what the relative
    velocity must differ by for the joint to hold to second order at the end of the step.
    """
    arm = point - body.pos
    spin_up = gyration(model, body.rot, body.ang)
    free_ang, free_lin = spin_up, spin_up.cross(arm) + body.ang.cross(body.ang.cross(arm))
    before = zero_vec(arm.x)
    if parent is not None and parent_model is not None:
        before, arm = parent.ang, point - parent.pos
        spin_up = gyration(parent_model, parent.rot, parent.ang)
        free_ang = free_ang - spin_up
        free_lin = free_lin - spin_up.cross(arm) - before.cross(before.cross(arm))
    ang, lin = -free_ang, -free_lin
    for (axis, along), rate in zip(local, rates, strict=True):
        ang = ang + before.cross(axis * rate)
        lin = lin + before.cross(along * (2.0 * rate))
        before = before + axis * rate
    return Spatial(ang, lin)
