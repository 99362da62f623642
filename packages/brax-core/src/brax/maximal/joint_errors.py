"""Joint errors: how far links are from where their joints put them, and what joints allow."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.components import Quat, Vec3, total, zero_vec
from brax.joints import JointType
from brax.maximal.links import Links, Stack
from brax.spatial import Spatial, invert
from brax.tree import PerDof


class JointDirection(NamedTuple):
    """Velocity per unit rate of one degree of freedom, world axes; a part that is zero is None."""

    ang: Vec3 | None
    """Angular velocity."""
    lin: Vec3 | None
    """Velocity of the last anchor."""

    def along(self, ang: Vec3, lin: Vec3) -> jax.Array:
        """Return the scalar product with a velocity."""
        return total(a.dot(b) for a, b in ((self.ang, ang), (self.lin, lin)) if a is not None)


class Joints(NamedTuple):
    """The joints of a stack at the state of their links, world axes."""

    point: Vec3
    """The last anchor, as the link carries it."""
    local: tuple[JointDirection, ...]
    """The direction of each degree of freedom at that anchor."""
    gram: list[list[jax.Array]]
    """Inverse of the Gram matrix of the directions."""


class StackPose(NamedTuple):
    """Pose of a link as the joints of its stack give it, in the parent's principal frame."""

    anchor: Vec3
    """The last anchor."""
    rot: Quat
    """Orientation of the link frame."""
    twists: list[tuple[Vec3 | None, Vec3 | None, Vec3 | None]]
    """For each degree of freedom its angular and linear velocity and the point that they are about;
    None stands for the last anchor."""
    before: list[Quat]
    """Orientation of the frame before each joint."""


def stack_pose(stack: Stack, types: tuple[JointType, ...], q: PerDof) -> StackPose:
    """Return the pose that the joints of a stack give the link."""
    pos, rot, used = stack.hang_pos, stack.hang_rot, 0
    twists: list[tuple[Vec3 | None, Vec3 | None, Vec3 | None]] = []
    before: list[Quat] = []
    for place, kind in enumerate(types):
        before.append(rot)
        anchor, params = stack.anchors[place], stack.params[place]
        span = slice(used, used + kind.q_width)
        # Joint types measure coordinates from the reference pose.
        mine = tuple(x - r for x, r in zip(q[span], stack.ref[span], strict=True))
        used += kind.q_width
        shift, turn = kind.transform(params, mine)
        point = pos + rot.rotate(anchor if shift is None else anchor + shift)
        for twist in kind.motion_subspace(params, mine):
            ang, vel = (None if part is None else rot.rotate(part) for part in twist)
            # The last joint's anchor is where errors are measured: its twist needs no shift.
            twists.append((ang, vel, None if place == len(types) - 1 else point))
        rot = rot if turn is None else rot.mul(turn)
        # The frame turns about the anchor, not about its own origin.
        pos = point - rot.rotate(anchor)
    return StackPose(point, rot, twists, before)


def directions(stack: Stack, at: StackPose, parent: Links | None, body: Links) -> Joints:
    """Return the degrees of freedom of a stack of joints as directions in the world.

    Args:
        stack: its constants.
        at: the poses that its joints give the links.
        parent: the links' parents, None for the world.
        body: the links.
    """
    point = body.pos + body.axes.rotate(stack.arm)
    local = tuple(_about(point, parent, *twist) for twist in at.twists)
    # The Gram matrix of the directions at the last anchor; its inverse gives rates from velocities.
    gram = [[_dot(a, b) for b in local] for a in local]
    if len(gram) > 1:
        # In gimbal lock two directions coincide. This is the smallest relative increase of the
        # diagonal that keeps the inverse finite.
        for k, row in enumerate(gram):
            row[k] = row[k] * (1.0 + 4.0 * jnp.finfo(row[k].dtype).eps)
    return Joints(point, local, invert(gram))


def _about(
    point: Vec3, parent: Links | None, ang: Vec3 | None, lin: Vec3 | None, at: Vec3 | None
) -> JointDirection:
    """Return a twist about `at`, in the parent's frame, as the velocity of `point` in the world."""
    if parent is not None:
        turn = parent.axes.rotate
        ang = None if ang is None else turn(ang)
        lin = None if lin is None else turn(lin)
        at = None if at is None else parent.pos + turn(at)
    if ang is None or at is None:
        return JointDirection(ang, lin)
    # v(point) = v(at) + w x (point - at).
    swing = ang.cross(point - at)
    return JointDirection(ang, swing if lin is None else lin + swing)


def _dot(a: JointDirection, b: JointDirection) -> jax.Array:
    """Return the scalar product of two directions."""
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
    if not pairs:
        return jnp.zeros_like(next(x for x in a if x is not None).x)
    return total(x.dot(y) for x, y in pairs)


def separation(stack: Stack, at: StackPose, parent: Links | None, body: Links) -> tuple[Vec3, Vec3]:
    """Return how far links are from where their joints put them, about the last anchor.

    The angle enters as twice the sine of its half: this is the angle for small errors, and points
    back for large ones too.

    Returns:
        The rotation vector and the displacement, world axes.
    """
    actual = body.rot if parent is None else parent.rot.inv_mul(body.rot)
    # Actual orientation times the inverse of the one that the joints give.
    error = actual.mul(stack.link_rot.mul_inv(at.rot))
    # A quaternion and its negative are one rotation: the sign takes the smaller angle.
    tilt = error.vec * jnp.where(error.w < 0, -2.0, 2.0)
    point = body.pos + body.axes.rotate(stack.arm)
    if parent is None:
        return tilt, point - at.anchor
    return parent.axes.rotate(tilt), point - (parent.pos + parent.axes.rotate(at.anchor))


def project(joints: Joints, ang: Vec3, lin: Vec3) -> tuple[PerDof, Vec3, Vec3]:
    """Split a velocity of the anchor into rates of the joints and a rest that they forbid."""
    along = [d.along(ang, lin) for d in joints.local]
    # Least squares: the inverse Gram matrix times the scalar products, since directions of a stack
    # may not be orthogonal.
    rates = tuple(total(g * x for g, x in zip(row, along, strict=True)) for row in joints.gram)
    for direction, rate in zip(joints.local, rates, strict=True):
        ang = ang if direction.ang is None else ang - direction.ang * rate
        lin = lin if direction.lin is None else lin - direction.lin * rate
    return rates, ang, lin


def relative_velocity(point: Vec3, parent: Links | None, body: Links) -> tuple[Vec3, Vec3]:
    """Return the velocity of links relative to their parents, at a point."""
    spin, speed = body.ang, body.vel + body.ang.cross(point - body.pos)
    if parent is None:
        return spin, speed
    # Both links' velocities are taken at the same point, so that the difference vanishes for a
    # rigid pair.
    return spin - parent.ang, speed - parent.vel - parent.ang.cross(point - parent.pos)


def spatial(joints: Joints, origin: Vec3) -> tuple[Spatial, ...]:
    """Return the directions as spatial velocities about a common point."""
    arm = joints.point - origin
    return tuple(_spatial(d, arm) for d in joints.local)


def _spatial(direction: JointDirection, arm: Vec3) -> Spatial:
    """Return one direction as a spatial velocity, `arm` being its anchor from the common point."""
    ang, lin = direction
    if ang is None:
        assert lin is not None
        return Spatial(zero_vec(lin.x), lin)
    # A rotation about the anchor moves the common point by arm x w.
    moment = arm.cross(ang)
    return Spatial(ang, moment if lin is None else lin + moment)


def advance(
    types: tuple[JointType, ...],
    q: PerDof,
    rates: Sequence[jax.Array],
    dt: jax.Array | float,
) -> PerDof:
    """Return coordinates of a stack of joints after `dt` at the given rates."""
    out: list[jax.Array] = []
    i = j = 0
    for kind in types:
        out += kind.integrate(q[i : i + kind.q_width], tuple(rates[j : j + kind.qd_width]), dt)
        i, j = i + kind.q_width, j + kind.qd_width
    return tuple(out)
