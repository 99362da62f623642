"""Equality constraints of bodies: `connect` at a point, and `weld`.

Source: MuJoCo's documentation, chapter Computation, section Constraint model; XML reference,
equality/connect and equality/weld.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.base import System
from brax.components import Quat, Vec3, rows, sqrt, total
from brax.generalized.constraints.constraint_laws import IndependentLaw
from brax.generalized.constraints.constraint_layout import WELD, ConstraintFamily, ConstraintLayout
from brax.generalized.constraints.jacobians import AttachmentPoints, FamilyConstraints, jacobian
from brax.generalized.constraints.scalar import (
    ScalarSoftness,
    columns,
    equality,
    scalar_softness,
    stacked,
)
from brax.generalized.smooth_dynamics.smooth import SmoothDynamics, common_points
from brax.tree import Layout


class LinkMotion(NamedTuple):
    """Motion of links at a state, components (links, batch), world axes."""

    pos: Vec3
    """Origin of the link frame."""
    vel: Vec3
    """Velocity of the origin."""
    acc: Vec3
    """Acceleration of the origin at constant rates."""
    rot: Quat
    """Orientation of the link frame."""
    ang: Vec3
    """Angular velocity."""
    ang_acc: Vec3
    """Angular acceleration at constant rates."""


def body_equality_softness(sys: System, family: ConstraintFamily) -> tuple[ScalarSoftness, ...]:
    """Return the softness of a family's constraints, by slot: of translation, and of rotation."""
    mine = rows(sys.equality, [_of(sys, family)[i] for i in family.order])
    return tuple(
        # Column k of the inverse weights: 0 for translation, 1 for rotation.
        scalar_softness(sys, mine.solref, mine.solimp, mine.invweight[:, k])
        for k in range(family.width // 3)
    )


def _of(sys: System, family: ConstraintFamily) -> list[int]:
    """Return the equalities of a family's kind."""
    return [i for i, kind in enumerate(sys.equality_types) if kind == family.kind]


def body_equalities(
    sys: System,
    links: Layout,
    plan: ConstraintLayout,
    family: ConstraintFamily,
    soft: tuple[ScalarSoftness, ...],
    dynamics: SmoothDynamics,
) -> FamilyConstraints:
    """Return the constraints of a family at a state."""
    mine = [_of(sys, family)[i] for i in family.order]
    data = columns(rows(sys.equality.data, mine))
    table = _with_world(_link_motion(sys, links, dynamics))
    place = (*links.position, -1)
    first, second = (
        rows(table, [1 + place[sys.equality_pair[i][side]] for i in mine]) for side in (0, 1)
    )
    at1, at2 = Vec3(*data[0:3]), Vec3(*data[3:6])
    # MuJoCo stores the anchors of a weld in the other order: the second body's comes first.
    if family.kind == WELD:
        at1, at2 = at2, at1
    point1, drift1 = _point(first, at1)
    point2, drift2 = _point(second, at2)
    apart, drift = [*(point2 - point1)], [*(drift2 - drift1)]
    ends = AttachmentPoints(point1, point2, _world_axes(apart[0]))
    if family.kind == WELD:
        turned, axes, swing = _rotation(first, second, Quat(*data[6:10]), data[10])
        apart, drift = [*apart, *turned], [*drift, *swing]
        ends = ends._replace(angular=axes)
    # MuJoCo takes the impedance of all rows from the norm of the whole violation.
    size = sqrt(total(x * x for x in apart))
    scalars = [equality(soft[k // 3], x, size) for k, x in enumerate(apart)]
    law = IndependentLaw(tuple(h.law for h in scalars))
    # The constraint is d²r/dt² = J qacc + dJ/dt qvel = aref. The second term, the acceleration at
    # constant rates, moves to the right.
    reference_acc = tuple(h.reference_acc - a for h, a in zip(scalars, drift, strict=True))
    return FamilyConstraints(
        law, jacobian(plan, family, dynamics, ends), reference_acc, soft[0].reference_damping, ends
    )


def _link_motion(sys: System, links: Layout, dynamics: SmoothDynamics) -> LinkMotion:
    """Return the motion of all links, in the layout's order."""
    arm = dynamics.pos - common_points(links, dynamics.pos)
    (ang, lin), (ang_acc, lin_acc) = dynamics.velocity, dynamics.acceleration
    vel = lin + ang.cross(arm)
    # The spatial acceleration has the upward acceleration that stands for gravity; here it is taken
    # out again.
    gravity = Vec3(*(sys.opt.gravity[k : k + 1] for k in range(3)))
    # From the spatial acceleration at the common point to the acceleration of the frame's origin
    # (Featherstone, section 2.11: classical acceleration).
    acc = lin_acc + gravity + ang_acc.cross(arm) + ang.cross(vel)
    return LinkMotion(dynamics.pos, vel, acc, dynamics.rot, ang, ang_acc)


def _with_world(links: LinkMotion) -> LinkMotion:
    """Return the links with the world, which is at rest, before them."""
    still = jax.tree.map(lambda x: jnp.zeros_like(x[:1]), links)
    world = still._replace(rot=still.rot._replace(w=jnp.ones_like(still.rot.w)))
    return jax.tree.map(stacked, world, links)


def _point(link: LinkMotion, at: Vec3) -> tuple[Vec3, Vec3]:
    """Return a point that is given in the link frame, and its acceleration at constant rates."""
    arm = link.rot.rotate(at)
    # Tangential and centripetal acceleration.
    swing = link.ang_acc.cross(arm) + link.ang.cross(link.ang.cross(arm))
    return link.pos + arm, link.acc + swing


def _world_axes(like: jax.Array) -> tuple[Vec3, ...]:
    """Return the three world axes."""
    one, zero = jnp.ones_like(like), jnp.zeros_like(like)
    return Vec3(one, zero, zero), Vec3(zero, one, zero), Vec3(zero, zero, one)


def _rotation(
    first: LinkMotion, second: LinkMotion, turn: Quat, scale: jax.Array
) -> tuple[Vec3, tuple[Vec3, ...], list[jax.Array]]:
    """Return the rotation of the second link away from `turn` relative to the first.

    Returns:
        The vector part of the error quaternion, in the second link's axes; for each of its
        components the world axis about which a rotation changes it; and the components' second
        derivatives at constant rates.
    """
    rate, rate_acc = second.ang - first.ang, second.ang_acc - first.ang_acc

    def axes(rot1: Quat, rot2: Quat) -> tuple[Vec3, ...]:
        # The error quaternion e = (q1 turn)⁻¹ q2 has the rate e ⊗ (0, w) / 2, with w the relative
        # angular velocity in the second link's axes.
        error = rot1.mul(turn).inv_mul(rot2)
        return tuple(
            rot2.rotate(axis * error.w + axis.cross(error.vec)) * (0.5 * scale)
            for axis in _world_axes(error.w)
        )

    frames = first.rot, second.rot
    spins = tuple(_spin(link.ang, link.rot) for link in (first, second))
    # The axes turn with both links. Their derivative by time gives the second derivative of the
    # error.
    world_axes, axes_rates = jax.jvp(axes, frames, spins)
    swing = [a.dot(rate_acc) + b.dot(rate) for a, b in zip(world_axes, axes_rates, strict=True)]
    error = first.rot.mul(turn).inv_mul(second.rot)
    return error.vec * scale, world_axes, swing


def _spin(ang: Vec3, rot: Quat) -> Quat:
    """Return the time derivative of an orientation, (0, w) ⊗ q / 2."""
    half = ang * 0.5
    return Quat(jnp.zeros_like(ang.x), *half).mul(rot)
