"""The joints of a stack as the spring pipeline measures them, and their velocity targets."""

import functools
import operator
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import jax

from brax.components import Vec3, zero_vec
from brax.joints import JointType, Twist
from brax.maximal.joint_errors import (
    JointDirection,
    StackPose,
    advance,
    directions,
    project,
    relative_velocity,
    separation,
    spatial,
    stack_pose,
)
from brax.maximal.links import Links, Stack
from brax.spatial import Spatial
from brax.tree import PerDof

ERP = 0.3
"""Share of a joint's separation that is taken back in one step (error reduction parameter)."""


class MeasuredJoints(NamedTuple):
    """The joints of a stack at a state; spatial quantities are about the tree's common point."""

    q: PerDof
    """Coordinates, corrected to the frames."""
    rates: PerDof
    """Rates of the degrees of freedom."""
    subspace: tuple[Spatial, ...]
    """Motion subspace S: velocity of the link relative to its parent, per unit of each rate."""
    drive: Spatial
    """Change of the relative velocity across the motion subspace. It stops that velocity, closes
    the separation, and follows the curvature of the motion."""


def measure(
    model: Stack,
    types: tuple[JointType, ...],
    q: PerDof,
    parent: Links | None,
    body: Links,
    origin: Vec3,
    dt: jax.Array,
) -> MeasuredJoints:
    """Measure the joints of a stack.

    The coordinates follow the frames by one Gauss-Newton step, which keeps them continuous over
    many turns. The rest is separation: a spring as stiff as the step can carry closes it.

    Args:
        model: constants of the stack.
        types: its joint types.
        q: its coordinates as they were.
        parent: the links' parents, None for the world.
        body: the links.
        origin: the common point of each link's tree.
        dt: time step.
    """
    # The stack at the last coordinates; the frames have moved on by one free motion.
    at = stack_pose(model, types, q)
    joints = directions(model, at, parent, body)
    # The error of the frames splits into a step of the coordinates and what no coordinate can do.
    step, tilt, gap = project(joints, *separation(model, at, parent, body))
    # At the anchor of the last joint, where the link is held.
    velocity = relative_velocity(joints.point, parent, body)
    # The same split of the relative velocity.
    rates, spin, speed = project(joints, *velocity)
    turning = _joint_velocity_terms(model, types, q, at, joints.local, rates, parent)
    curve_ang, curve_lin = _curvature(parent, body, joints.point, turning)
    # Half the curvature times the step: the joint holds to second order at the end of the step.
    drive_ang = tilt * (-ERP / dt) + curve_ang * (0.5 * dt) - spin
    drive_lin = gap * (-ERP / dt) + curve_lin * (0.5 * dt) - speed
    return MeasuredJoints(
        q=advance(types, q, step, 1.0),
        rates=rates,
        subspace=spatial(joints, origin),
        # Shifted from the joint's anchor to the common point.
        drive=Spatial(drive_ang, drive_lin + (joints.point - origin).cross(drive_ang)),
    )


class JointVelocityTerms(NamedTuple):
    """The velocity of one joint at its rates, world axes; a part that is zero is None."""

    moving: JointDirection
    """Velocity of the link relative to the side of the joint towards the parent."""
    drift: Twist
    """Acceleration because the joint's own axes move, dS/dt qd in Featherstone's terms."""


def _joint_velocity_terms(
    model: Stack,
    types: tuple[JointType, ...],
    q: PerDof,
    at: StackPose,
    local: Sequence[JointDirection],
    rates: PerDof,
    parent: Links | None,
) -> list[JointVelocityTerms]:
    """Return the terms of each joint of the stack, from the parent outwards."""
    out: list[JointVelocityTerms] = []
    i = j = 0
    for kind, params, frame in zip(types, model.params, at.before, strict=True):
        place, dofs = slice(i, i + kind.q_width), slice(j, j + kind.qd_width)
        # Coordinates count from the pose of the model file, `ref`.
        mine = tuple(x - r for x, r in zip(q[place], model.ref[place], strict=True))
        drift = Twist(
            *(
                None if part is None else _in_world(parent, frame.rotate(part))
                for part in kind.drift(params, mine, rates[dofs])
            )
        )
        moving = JointDirection(
            *(_sum(zip(p, rates[dofs], strict=True)) for p in zip(*local[dofs], strict=True))
        )
        out.append(JointVelocityTerms(moving, drift))
        i, j = place.stop, dofs.stop
    return out


def _in_world(parent: Links | None, v: Vec3) -> Vec3:
    return v if parent is None else parent.axes.rotate(v)


def _sum(terms: Iterable[tuple[Vec3 | None, jax.Array]]) -> Vec3 | None:
    return _add(*(None if v is None else v * rate for v, rate in terms))


def _add(*terms: Vec3 | None) -> Vec3 | None:
    given = [v for v in terms if v is not None]
    return functools.reduce(operator.add, given) if given else None


def _curvature(
    parent: Links | None, body: Links, point: Vec3, turning: Sequence[JointVelocityTerms]
) -> tuple[Vec3, Vec3]:
    """Return the relative acceleration at the anchor that the joint asks of the links.

    The links' free motion is straight and the joint's is not. For the joint to hold to second order
    at the end of the step, the relative velocity must differ by half of this, times the step.
    """
    # Centripetal acceleration of the anchor as a point of the link, with reversed sign, and of the
    # parent.
    arm = point - body.pos
    ang: Vec3 | None = None
    lin: Vec3 | None = body.ang.cross(arm).cross(body.ang)
    before = None
    if parent is not None:
        before, arm = parent.ang, point - parent.pos
        lin = _add(lin, before.cross(before.cross(arm)))
    for moving, drift in turning:
        # Rotation about an axis that the parent side turns: omega x omega_J.
        if before is not None and moving.ang is not None:
            ang = _add(ang, before.cross(moving.ang))
        if before is not None and moving.lin is not None:
            # Coriolis: of a slide that the parent and the joints before it turn.
            lin = _add(lin, before.cross(moving.lin * 2.0))
        ang, lin = _add(ang, drift.ang), _add(lin, drift.vel)
        # The next joint of the stack sits on this one.
        before = _add(before, moving.ang)
    assert lin is not None
    return zero_vec(lin.x) if ang is None else ang, lin
