"""What each joint allows, and how far its link is from what it allows."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.components import Quat, Vec3, total, zero_vec
from brax.fusion import fence
from brax.joints import JointType
from brax.spatial import Spatial, invert
from brax.spring.bodies import Bodies
from brax.spring.model import GroupModel

ERP = 0.3
"""Share of a joint's separation that is taken back in one step."""


class Direction(NamedTuple):
    """What one degree of freedom does to the link, world axes; a part that is zero is None."""

    ang: Vec3 | None
    lin: Vec3 | None
    """Velocity of the last anchor."""

    def along(self, ang: Vec3, lin: Vec3) -> jax.Array:
        """Scalar product with a velocity."""
        parts = [a.dot(b) for a, b in ((self.ang, ang), (self.lin, lin)) if a is not None]
        return sum(parts[1:], start=parts[0])


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


def _stack(
    model: GroupModel, types: tuple[JointType, ...], q: tuple[jax.Array, ...]
) -> tuple[Vec3, Quat, list[tuple[Vec3 | None, Vec3 | None, Vec3 | None]]]:
    """Where the joints put the link, in the parent's principal frame.

    Returns:
        The last anchor, the link's orientation, and for each degree of freedom its angular and
        linear velocity and the point they are taken about, None for the last anchor.
    """
    pos, rot, used = model.hang_pos, model.hang_rot, 0
    twists = []
    for place, kind in enumerate(types):
        anchor, params = model.anchors[place], model.params[place]
        mine = q[used : used + kind.q_width]
        used += kind.q_width
        shift, turn = kind.transform(params, mine)
        point = pos + rot.rotate(anchor if shift is None else anchor + shift)
        for twist in kind.motion_subspace(params, mine):
            ang, vel = (None if part is None else rot.rotate(part) for part in twist)
            twists.append((ang, vel, None if place == len(types) - 1 else point))
        rot = rot if turn is None else rot.mul(turn)
        pos = point - rot.rotate(anchor)
    return point, rot, twists


def _separation(
    model: GroupModel, parent: Bodies | None, body: Bodies, anchor: Vec3, rot: Quat
) -> tuple[Vec3, Vec3]:
    """How far the link is from where the joints put it, about the last anchor, world axes.

    The angle enters by its sine, of twice the half: it is small, and far away it still turns back.
    """
    actual = fence(body.rot.mul(model.link_rot))
    if parent is not None:
        actual = fence(parent.rot.conj.mul(actual))
    error = fence(actual.mul(fence(rot).conj))
    tilt = error.vec * jnp.where(error.w < 0, -2.0, 2.0)
    arm = model.link_pos + model.link_rot.rotate(model.anchors[-1])
    gap = body.pos + body.axes.rotate(arm) - anchor
    return (tilt if parent is None else parent.axes.rotate(tilt)), gap


def measure(
    model: GroupModel,
    types: tuple[JointType, ...],
    parent: Bodies | None,
    body: Bodies,
    origin: Vec3,
    dt: jax.Array,
) -> Measured:
    """Measures the joints of a group.

    The coordinates follow the frames by one Gauss-Newton step, which keeps them continuous over
    many turns. The rest is separation: a spring as stiff as the step can carry closes it.

    Args:
        model: constants of the group.
        types: its joint types.
        parent: the links' parents, None for the world.
        body: the links.
        origin: the common point of each link's tree.
        dt: time step.
    """
    anchor, rot, twists = _stack(model, types, body.q)
    if parent is not None:
        turn = parent.axes.rotate
        anchor = parent.pos + turn(anchor)
        twists = [
            (
                None if a is None else turn(a),
                None if v is None else turn(v),
                None if p is None else parent.pos + turn(p),
            )
            for a, v, p in twists
        ]
    tilt, gap = _separation(model, parent, body, anchor, rot)
    anchor, twists, tilt, gap = fence((anchor, twists, tilt, gap))
    point = anchor + gap
    local = [_about(point, *twist) for twist in twists]
    gram = invert([[_dot(a, b) for b in local] for a in local])

    def project(ang: Vec3, lin: Vec3) -> list[jax.Array]:
        along = [d.along(ang, lin) for d in local]
        return [total(g * x for g, x in zip(row, along, strict=True)) for row in gram]

    step = fence(project(tilt, gap))
    spin, speed = _relative_velocity(parent, body, point)
    rates = fence(project(spin, speed))
    for direction, s in zip(local, step, strict=True):
        tilt = tilt if direction.ang is None else tilt - direction.ang * s
        gap = gap if direction.lin is None else gap - direction.lin * s
    curve_ang, curve_lin = _curvature(parent, body, point, local, rates)
    drive_ang = fence(tilt * (-ERP / dt) + curve_ang * (0.5 * dt))
    drive_lin = fence(gap * (-ERP / dt) + curve_lin * (0.5 * dt))
    arm = fence(point - origin)
    return Measured(
        q=advance(types, body.q, step, 1.0),
        rates=tuple(rates),
        subspace=tuple(_spatial(d, arm) for d in local),
        drive=Spatial(drive_ang, drive_lin + arm.cross(drive_ang)),
    )


def _about(point: Vec3, ang: Vec3 | None, lin: Vec3 | None, at: Vec3 | None) -> Direction:
    """A twist about `at`, as the velocity of `point`."""
    if ang is None or at is None:
        return Direction(ang, lin)
    swing = ang.cross(point - at)
    return Direction(ang, swing if lin is None else lin + swing)


def _dot(a: Direction, b: Direction) -> jax.Array:
    """Scalar product of two directions."""
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    if not pairs:
        return jnp.zeros_like(next(x for x in a if x is not None).x)
    return sum((x.dot(y) for x, y in pairs[1:]), start=pairs[0][0].dot(pairs[0][1]))


def _spatial(direction: Direction, arm: Vec3) -> Spatial:
    ang, lin = direction
    if ang is None:
        assert lin is not None
        return Spatial(zero_vec(lin.x), lin)
    moment = arm.cross(ang)
    return Spatial(ang, moment if lin is None else lin + moment)


def advance(
    types: tuple[JointType, ...],
    q: tuple[jax.Array, ...],
    rates: Sequence[jax.Array],
    dt: jax.Array | float,
) -> tuple[jax.Array, ...]:
    """Coordinates of a stack of joints after moving at the given rates."""
    out: list[jax.Array] = []
    i = j = 0
    for kind in types:
        out += kind.integrate(q[i : i + kind.q_width], tuple(rates[j : j + kind.qd_width]), dt)
        i, j = i + kind.q_width, j + kind.qd_width
    return tuple(out)


def _relative_velocity(parent: Bodies | None, body: Bodies, point: Vec3) -> tuple[Vec3, Vec3]:
    spin, speed = body.ang, body.vel + body.ang.cross(point - body.pos)
    if parent is None:
        return spin, speed
    return spin - parent.ang, speed - parent.vel - parent.ang.cross(point - parent.pos)


def _curvature(
    parent: Bodies | None,
    body: Bodies,
    point: Vec3,
    local: list[Direction],
    rates: list[jax.Array],
) -> tuple[Vec3, Vec3]:
    """Relative acceleration, at the anchor, by which the joint bends the links' free motion.

    Free motion is straight, the joint's is not; half of this, times the step, is what the relative
    velocity must differ by for the joint to hold to second order at the end of the step.
    """
    arm = fence(point - body.pos)
    ang = None
    lin = -fence(body.ang.cross(fence(body.ang.cross(arm))))
    before = None
    if parent is not None:
        before, arm = parent.ang, fence(point - parent.pos)
        lin = fence(lin + before.cross(fence(before.cross(arm))))
    for direction, rate in zip(local, rates, strict=True):
        if before is not None and direction.ang is not None:
            bent = before.cross(direction.ang * rate)
            ang = bent if ang is None else ang + bent
        if before is not None and direction.lin is not None:
            lin = lin + before.cross(direction.lin * (2.0 * rate))
        if direction.ang is not None:
            turned = direction.ang * rate
            before = turned if before is None else before + turned
    return zero_vec(lin.x) if ang is None else ang, lin
