"""Contacts: impulses that keep bodies apart, with friction and restitution, at two levels.

All points of all collision groups are one list. The first level asks for positions: at the end of
the step no point has sunk in, and none has slid that friction holds. The second level asks for
velocities: what touched leaves with the restitution's share of the speed it came with. Both move
the same impulses, by sweeps over all contacts at once, each with the inertia which it sees through
all joints, shared between the points of a link.

Source: Mueller, Macklin, Chentanez, Jeschke, Kim (2020), Detailed Rigid Body Simulation with
Extended Position Based Dynamics, sections 3.5 and 3.6. Departures: `docs/positional.md`.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from brax import impacts
from brax.base import System
from brax.colliders.narrow_phase import (
    AnisotropicFriction,
    anisotropic_friction,
    contact_links,
    contacts,
    surfaces,
)
from brax.components import Quat, Sym3, Vec3, rows, tangents, total
from brax.spatial import Spatial, Sym6
from brax.tree import Layout, join, sum_rows

T = TypeVar("T")

MAX_PUSH_RATIO = 3.0
"""Largest ratio of a push to what stops the motion, above which it is one out of penetration."""


class Side(NamedTuple):
    """The links on one side of all contacts."""

    links: tuple[int, ...]
    """Position in the layout of each contact's link, -1 for the world."""

    @property
    def moves(self) -> bool:
        """True if there is anything but the world."""
        return any(link >= 0 for link in self.links)

    def take(self, values: Sequence[T], plan: Layout) -> T:
        """Rows kept by group of links, one a contact; the world's are zero."""
        for value, group in zip(values, plan.groups, strict=True):
            if set(self.links) <= set(group.links):
                return rows(value, [link - group.links[0] for link in self.links])
        return _rows_or_zero(join(list(values)), self.links)

    def give(self, value: T, plan: Layout) -> list[tuple[int, T]]:
        """Sums rows, one a contact, over the links of each group that has contacts."""
        out = []
        for index, group in enumerate(plan.groups):
            found, owner = group.of(self.links)
            if found:
                out.append((index, _summed(rows(value, found), owner, len(group.links))))
        return out


def _summed(values: T, owner: tuple[int, ...], n: int) -> T:
    return jax.tree.map(lambda x: sum_rows(x, owner, n), values)


def _rows_or_zero(values: T, index: Sequence[int]) -> T:
    """Rows at static indices, zeros at -1."""
    if min(index) >= 0:
        return rows(values, index)

    def take(a: jax.Array) -> jax.Array:
        return rows(jnp.concatenate([jnp.zeros_like(a[:1]), a]), [i + 1 for i in index])

    return jax.tree.map(take, values)


class AxisImpulse(NamedTuple):
    """Impulse at each contact on the second link, along its normal and tangents [N s].

    Or the second link's velocity relative to the first, along the same.
    """

    normal: jax.Array
    tangent1: jax.Array
    tangent2: jax.Array


class AxisTorque(NamedTuple):
    """Torque impulse at each contact on the second link, about its normal and tangents [N m s].

    Or the second link's angular velocity relative to the first, about the same.
    """

    twist: jax.Array
    roll1: jax.Array
    roll2: jax.Array


class TorsionalResistance(NamedTuple):
    """What hinders turning at contacts, components (contacts, batch)."""

    twist: jax.Array
    """Largest torque about the normal, as a share of the force that presses [m]."""
    roll: jax.Array
    """The same about the first tangent."""
    rolls: jax.Array | None
    """The same about the second as a share of that; None if it is equal."""
    step: tuple[jax.Array, ...]
    """Torque impulse per unit of angular velocity, about each axis."""


class CandidateContacts(NamedTuple):
    """All candidate contacts, components (contacts, batch)."""

    sides: tuple[Side, Side]
    axes: tuple[Vec3, Vec3, Vec3]
    """Normal and tangents."""
    arms: tuple[Vec3, Vec3]
    """The contact from the common point of each side's tree."""
    step: tuple[jax.Array, ...]
    """Impulse per unit of velocity error, along each axis."""
    reach: jax.Array
    """Least normal velocity over the step."""
    leave: jax.Array
    """Least normal velocity after it, of contacts that touch."""
    friction: jax.Array
    slides: jax.Array | None
    """Friction along the second tangent as a share of that along the first; None if it is equal."""
    dist: jax.Array
    approach: jax.Array
    """Normal velocity at the start of the step, negated."""
    rebound: jax.Array
    """Coefficient of restitution, zero of contacts that throw nothing back."""
    elasticity: jax.Array
    """Coefficient of restitution."""
    turning: TorsionalResistance | None
    """None if nothing hinders turning anywhere."""


def sides_of(sys: System, plan: Layout) -> tuple[Side, Side]:
    """Which links the contacts belong to."""
    both: tuple[list[int], list[int]] = ([], [])
    position = (*plan.position, -1)
    for group, links in zip(sys.collisions, contact_links(sys), strict=True):
        for out, side in zip(both, links, strict=True):
            out += [position[link] for link in side] * group.collider.n_contacts
    return Side(tuple(both[0])), Side(tuple(both[1]))


class DetectedContacts(NamedTuple):
    """All contacts, components (contacts, batch)."""

    dist: jax.Array
    pos: Vec3
    normal: Vec3
    friction: jax.Array
    elasticity: jax.Array
    twist: jax.Array
    """Torsional and rolling friction."""
    roll: jax.Array
    uneven: AnisotropicFriction | None
    """None if no contact's friction differs along its tangents."""


def find(sys: System, frames: Callable[[Sequence[int]], tuple[Vec3, Quat]]) -> DetectedContacts:
    """Tests all pairs and puts all points in one list."""
    parts = []
    for group, found, surface in zip(
        sys.collisions, contacts(sys, frames), surfaces(sys), strict=True
    ):
        touch, (twist, roll, _) = found.touch, surface.turning
        shape = jnp.broadcast_shapes(touch.dist.shape, touch.pos.x.shape)
        sides = None
        if any(sys.pair_uneven):
            one = jnp.ones_like(twist)
            even = AnisotropicFriction(*tangents(touch.normal), one, one)
            sides = anisotropic_friction(sys, group, touch, surface) or even
        every = DetectedContacts(
            *(touch.dist, touch.pos, touch.normal, found.friction, found.elasticity),
            *(twist * (group.condim > 3), roll * (group.condim > 4), sides),
        )
        parts.append(
            jax.tree.map(
                lambda a, s=shape: jnp.broadcast_to(a, s).reshape(-1, s[-1]),
                every,
            )
        )
    return join(parts)


def prepare(
    found: DetectedContacts,
    sides: tuple[Side, Side],
    plan: Layout,
    mobility: Sequence[Sym6],
    origins: Sequence[Vec3],
    before: Sequence[Spatial],
    gravity: jax.Array,
    dt: jax.Array,
    turns: bool,
) -> CandidateContacts:
    """Sets the contacts up for the sweeps.

    Args:
        found: from `find`.
        sides: their links.
        plan: the layout.
        mobility: inverse inertia of the links, by group, like the arguments below.
        origins: the common point of each link's tree.
        before: velocities at the start of the step, about the common point.
        gravity: size of the gravitational acceleration.
        dt: time step.
        turns: whether any contact hinders turning.
    """
    dist, pos, normal, elasticity = found.dist, found.pos, found.normal, found.elasticity
    odd, slides, rolls = found.uneven, None, None
    axes = (normal, *tangents(normal))
    if odd is not None:
        axes, slides, rolls = (normal, odd.first, odd.second), odd.slide, odd.roll
    first, second = (pos - side.take(origins, plan) if side.moves else pos for side in sides)
    arms, none = (first, second), jnp.zeros_like(dist)
    turning = TorsionalResistance(found.twist, found.roll, rolls, ()) if turns else None
    contact = CandidateContacts(
        *(sides, axes, arms, (), none, none, found.friction, slides),
        *(dist, none, none, elasticity, turning),
    )
    approach = -relative_velocity(contact, before, plan).x
    throws = approach > 2.0 * gravity * dt
    rebound = jnp.where(throws, elasticity, 0.0)
    # What meets the other within the step is thrown back for the rest of it.
    rest = jnp.maximum(approach - jnp.maximum(dist, 0.0) / dt, 0.0)
    reach = rebound * rest - dist / dt
    leave = rebound * approach
    moving = [
        (side.take(mobility, plan), arm)
        for side, arm in zip(sides, arms, strict=True)
        if side.moves
    ]
    if turning is not None:
        turning = turning._replace(step=_steps(contact, [m.a for m, _ in moving]))
    return contact._replace(
        turning=turning,
        step=_steps(contact, [m.at(arm) for m, arm in moving]),
        reach=reach,
        leave=leave,
        approach=approach,
        rebound=rebound,
    )


def in_time(contact: CandidateContacts, free: jax.Array, dt: jax.Array) -> CandidateContacts:
    """Lets what acts during the step act before and after each impact, at its time.

    So the velocity after a bounce, and its derivative, is that of the motion.

    Args:
        contact: the contacts.
        free: normal velocity at the end of the step without contacts.
        dt: time step.
    """
    fall = free + contact.approach
    throws, leave, share = impacts.in_time(
        contact.dist, -contact.approach, fall, contact.rebound, dt
    )
    reach = share * leave - contact.dist / dt
    return contact._replace(
        leave=jnp.where(throws, leave, contact.leave), reach=jnp.where(throws, reach, contact.reach)
    )


def leave_late(contact: CandidateContacts, free: jax.Array, dt: jax.Array) -> CandidateContacts:
    """Asks nothing of contacts that are left to the next step; arguments as of `in_time`."""
    late = impacts.later(contact.dist, free * dt < -contact.dist, contact.elasticity)
    reach, leave = (jnp.where(late, -impacts.MAX_SPEED, x) for x in (contact.reach, contact.leave))
    return contact._replace(reach=reach, leave=leave)


def _steps(contact: CandidateContacts, mobile: Sequence[Sym3]) -> tuple[jax.Array, ...]:
    """Impulse along each axis per unit of velocity, or torque per unit of angular velocity.

    Args:
        contact: the contacts.
        mobile: how easily what is on either side moves, or turns, with the joints in place; of the
            sides that move.
    """
    seen = (total(axis.dot(m.mul(axis)) for m in mobile) for axis in contact.axes)
    return tuple(1.0 / jnp.maximum(s, 1e-12) for s in seen)


def relative_spin(
    contact: CandidateContacts, velocities: Sequence[Spatial], plan: Layout
) -> AxisTorque | None:
    """Angular velocity of the second link relative to the first, about the contacts' axes.

    None if nothing hinders turning.
    """
    if contact.turning is None:
        return None
    turning: Any = None
    for sign, side in zip((-1.0, 1.0), contact.sides, strict=True):
        if side.moves:
            w = side.take(velocities, plan).ang * sign
            turning = w if turning is None else turning + w
    return AxisTorque(*(turning.dot(axis) for axis in contact.axes))


def relative_velocity(
    contact: CandidateContacts, velocities: Sequence[Spatial], plan: Layout
) -> Vec3:
    """Velocity of the second link relative to the first, along the contacts' axes."""
    moving: Any = None
    for sign, side, arm in zip((-1.0, 1.0), contact.sides, contact.arms, strict=True):
        if side.moves:
            at = side.take(velocities, plan)
            v = (at.lin + at.ang.cross(arm)) * sign
            moving = v if moving is None else moving + v
    return Vec3(*(moving.dot(axis) for axis in contact.axes))


def wanted(
    contact: CandidateContacts,
    impulse: AxisImpulse,
    ahead: AxisImpulse,
    velocity: AxisImpulse,
    target: jax.Array,
) -> tuple[AxisImpulse, AxisImpulse, AxisImpulse]:
    """The change of impulses that each contact alone would ask for, within the friction cone.

    Args:
        contact: the contacts.
        impulse: their impulses so far.
        ahead: where these were heading.
        velocity: relative velocities along the contacts' axes.
        target: least normal velocity.

    Returns:
        The change, the velocities still missing, and 1 where these decide rather than the cone.
    """
    error = AxisImpulse(target - velocity.normal, -velocity.tangent1, -velocity.tangent2)
    normal, t1, t2 = (p + s * e for p, s, e in zip(ahead, contact.step, error, strict=True))
    normal = jnp.maximum(normal, 0.0)
    bound = contact.friction * normal
    length = _length(t1, t2, contact.slides)
    scale = jnp.minimum(1.0, bound / length)
    inside = (length <= bound).astype(normal.dtype)
    new = AxisImpulse(normal, t1 * scale, t2 * scale)
    change = AxisImpulse(*(a - b for a, b in zip(new, impulse, strict=True)))
    return change, error, AxisImpulse(jnp.ones_like(inside), inside, inside)


def _length(first: jax.Array, second: jax.Array, share: jax.Array | None) -> jax.Array:
    """Of what is across normals, what is along the second tangent counted by its share."""
    second = second if share is None else second / share
    return jnp.sqrt(first * first + second * second + 1e-30)


def wanted_couple(
    turning: TorsionalResistance,
    couple: AxisTorque,
    ahead: AxisTorque,
    spin: AxisTorque,
    pressing: jax.Array,
) -> tuple[AxisTorque, AxisTorque, AxisTorque]:
    """The change of torque impulses that each contact alone would ask for; as `wanted`.

    Args:
        turning: what hinders turning.
        couple: torque impulses so far.
        ahead: where these were heading.
        spin: relative angular velocities.
        pressing: impulses along the normals.
    """
    error = AxisTorque(*(-w for w in spin))
    twist, r1, r2 = (p + s * e for p, s, e in zip(ahead, turning.step, error, strict=True))
    most, bound = turning.twist * pressing, turning.roll * pressing
    length = _length(r1, r2, turning.rolls)
    scale = jnp.minimum(1.0, bound / length)
    new = AxisTorque(jnp.clip(twist, -most, most), r1 * scale, r2 * scale)
    change = AxisTorque(*(a - b for a, b in zip(new, couple, strict=True)))
    held = (jnp.abs(twist) <= most).astype(length.dtype)
    inside = (length <= bound).astype(length.dtype)
    return change, error, AxisTorque(held, inside, inside)


def physical(contact: CandidateContacts, speed: jax.Array) -> jax.Array:
    """Share of the impulse that stops, or throws back, what moves freely at a normal velocity.

    The rest has pushed bodies out of each other and must not remain in their velocities. At rest,
    where a little penetration is what the sweeps left over, all of it is kept.
    """
    excess = jnp.maximum(contact.reach - speed, 1e-9)
    return jnp.clip(MAX_PUSH_RATIO * (contact.leave - speed) / excess, 0.0, 1.0)


def in_space(contact: CandidateContacts, along: AxisImpulse | AxisTorque) -> Vec3:
    """Impulses, or torque impulses, in world axes."""
    normal, first, second = (axis * x for axis, x in zip(contact.axes, along, strict=True))
    return normal + first + second


def as_momenta(
    contact: CandidateContacts, impulse: AxisImpulse, couple: AxisTorque | None, plan: Layout
) -> list[Spatial | None]:
    """What impulses add to the momenta of the links about the common points, by group."""
    out: list[Spatial | None] = [None] * len(plan.groups)
    force = in_space(contact, impulse)
    for sign, side, arm in zip((-1.0, 1.0), contact.sides, contact.arms, strict=True):
        if side.moves:
            torque = arm.cross(force)
            torque = torque if couple is None else torque + in_space(contact, couple)
            for index, part in side.give(Spatial(torque, force) * sign, plan):
                old = out[index]
                out[index] = part if old is None else old + part
    return out
