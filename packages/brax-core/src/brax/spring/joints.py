"""The joints of a stack as the spring pipeline finds them, and what it asks of them."""

from collections.abc import Sequence
from typing import NamedTuple

import jax

from brax.components import Vec3, zero_vec
from brax.joints import JointType
from brax.maximal.joints import (
    Direction,
    advance,
    directions,
    pose,
    project,
    relative_velocity,
    separation,
    spatial,
)
from brax.maximal.links import Links, PerDof, Stack
from brax.spatial import Spatial

ERP = 0.3
"""Share of a joint's separation that is taken back in one step."""


class Measured(NamedTuple):
    """The joints of a stack as they stand; spatial quantities about the tree's common point."""

    q: PerDof
    """Coordinates, corrected to the frames."""
    rates: PerDof
    """Rates of the degrees of freedom."""
    subspace: tuple[Spatial, ...]
    """Velocity of the link relative to its parent, per unit of each rate."""
    drive: Spatial
    """Change of the relative velocity beside them: it stops, closes the separation, and follows
    the curvature of the motion."""


def measure(
    model: Stack,
    types: tuple[JointType, ...],
    q: PerDof,
    parent: Links | None,
    body: Links,
    origin: Vec3,
    dt: jax.Array,
) -> Measured:
    """Measures the joints of a stack.

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
    at = pose(model, types, q)
    joints = directions(model, at, parent, body)
    step, tilt, gap = project(joints, *separation(model, at, parent, body))
    velocity = relative_velocity(joints.point, parent, body)
    rates, spin, speed = project(joints, *velocity)
    curve_ang, curve_lin = _curvature(parent, body, joints.point, joints.local, rates)
    drive_ang = tilt * (-ERP / dt) + curve_ang * (0.5 * dt) - spin
    drive_lin = gap * (-ERP / dt) + curve_lin * (0.5 * dt) - speed
    return Measured(
        q=advance(types, q, step, 1.0),
        rates=rates,
        subspace=spatial(joints, origin),
        drive=Spatial(drive_ang, drive_lin + (joints.point - origin).cross(drive_ang)),
    )


def _curvature(
    parent: Links | None,
    body: Links,
    point: Vec3,
    local: Sequence[Direction],
    rates: PerDof,
) -> tuple[Vec3, Vec3]:
    """Relative acceleration, at the anchor, by which the joint bends the links' free motion.

    Free motion is straight, the joint's is not; half of this, times the step, is what the relative
    velocity must differ by for the joint to hold to second order at the end of the step.
    """
    arm = point - body.pos
    ang = None
    lin = body.ang.cross(arm).cross(body.ang)
    before = None
    if parent is not None:
        before, arm = parent.ang, point - parent.pos
        lin = lin + before.cross(before.cross(arm))
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
