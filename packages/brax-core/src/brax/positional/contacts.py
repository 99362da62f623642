"""Contact constraints: impulses with friction and restitution, for positions and for velocities.

All points of all collision groups are one array, (contacts, batch). The position level asks that at
the end of the step no point penetrates, and that none has slid while static friction holds it. The
velocity level asks that a contact separates with the share of its approach velocity that
restitution gives. Both levels change the same impulses. `change_within_cone` computes the change
and enforces the friction cone; `torque_change_within_bounds` does so for torsional and rolling
friction. The sweeps that call them are in `position_update`.

Each contact has an effective mass, that of its links with all joints in place.

Source: Mueller, Macklin, Chentanez, Jeschke, Kim (2020), Detailed Rigid Body Simulation with
Extended Position Based Dynamics, sections 3.5 and 3.6. Departures: `docs/positional.md`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax import impacts
from brax.base import System
from brax.colliders.narrow_phase import (
    AnisotropicFriction,
    Contacts,
    anisotropic_friction,
    contacts,
    frames_of,
)
from brax.components import Sym3, Vec3, rows, tangents, total
from brax.maximal.contacts import (
    ContactPoints,
    Side,
    Sides,
    sides_by_group,
)
from brax.maximal.coordinates import link_poses
from brax.maximal.limits import MIN_MOBILITY
from brax.maximal.links import TreesAtState, about, by_link
from brax.spatial import Spatial, Sym6
from brax.tree import Layout, join

MAX_PUSH_RATIO = 3.0
"""Largest ratio of an impulse to the impulse that stops the motion. What exceeds it pushes bodies
out of penetration and is taken back at the velocity level."""


class AlongAxes(NamedTuple):
    """One number for each axis of each contact, components (contacts, batch).

    These are impulses on the second link along the axes [N s], or torque impulses about them
    [N m s]; also its velocity relative to the first link [m/s], or its angular velocity [rad/s].
    """

    normal: jax.Array
    """Along or about the normal; an impulse that pushes the links apart is positive."""
    first: jax.Array
    """Along or about the first tangent."""
    second: jax.Array
    """Along or about the second tangent."""


class TorsionalResistance(NamedTuple):
    """Torsional and rolling friction of contacts, components (contacts, batch)."""

    twist: jax.Array
    """Torsional friction: ratio of the largest torque about the normal to the normal force [m]."""
    roll: jax.Array
    """Rolling friction: the same ratio about the first tangent [m]."""
    rolls: jax.Array | None
    """Rolling friction about the second tangent over that about the first; None if it is equal."""
    effective_inertia: tuple[jax.Array, ...]
    """Torque impulse per unit of relative angular velocity, about each axis [kg m^2]."""


class CandidateContacts(NamedTuple):
    """All candidate contacts, prepared for the sweeps, components (contacts, batch)."""

    place: ContactPoints
    """The links on both sides, and the contacts relative to their trees."""
    axes: tuple[Vec3, Vec3, Vec3]
    """Normal and tangents, world axes."""
    effective_mass: tuple[jax.Array, ...]
    """Impulse per unit of relative velocity, along each axis [kg]."""
    reach: jax.Array
    """Position level: least normal velocity over the step, so that nothing penetrates [m/s]."""
    leave: jax.Array
    """Velocity level: least normal velocity after the step, of contacts that touch [m/s]."""
    friction: jax.Array
    """Coefficient of sliding friction along the first tangent."""
    slides: jax.Array | None
    """Sliding friction along the second tangent over that along the first; None if it is equal."""
    dist: jax.Array
    """Distance at the start of the step [m], negative in penetration."""
    approach: jax.Array
    """Velocity of approach: the negated normal velocity at the start of the step [m/s]."""
    rebound: jax.Array
    """Coefficient of restitution, zero for contacts that approach too slowly to bounce."""
    elasticity: jax.Array
    """Coefficient of restitution."""
    torsion: TorsionalResistance | None
    """Torsional and rolling friction; None if no contact has any."""


def sides_of(sys: System, plan: Layout) -> Sides:
    """Return the links on both sides of all contacts, in the order of `find`."""
    # The order of `find`: the first points of all pairs of a group, then the second ones, and so
    # on.
    both: tuple[list[int], list[int]] = ([], [])
    for group, sides in zip(sys.collisions, sides_by_group(sys, plan), strict=True):
        for out, side in zip(both, sides, strict=True):
            out += side.links * group.collider.n_contacts
    return Side(tuple(both[0])), Side(tuple(both[1]))


def find(at: TreesAtState) -> tuple[Contacts, AnisotropicFriction | None]:
    """Find the contacts of all pairs, as one array of contacts, and their anisotropic friction.

    The latter is None if no contact's friction differs along its tangents.
    """
    sys, parts = at.sys, []
    frames = frames_of(*rows(link_poses(at.masses, at.links), at.plan.position))
    for group, found in zip(sys.collisions, contacts(sys, frames), strict=True):
        touch, (twist, roll, other) = found.touch, found.surface.turning
        shape = jnp.broadcast_shapes(touch.dist.shape, touch.pos.x.shape)
        # If any group has anisotropic friction, all need its arrays, since they are joined.
        uneven = None
        if any(sys.pair_uneven):
            one = jnp.ones_like(twist)
            even = AnisotropicFriction(*tangents(touch.normal), one, one)
            uneven = anisotropic_friction(sys, group, found) or even
        turning = (twist * (group.condim > 3), roll * (group.condim > 4), other)
        every = Contacts(touch._replace(along=None), found.surface._replace(turning=turning))
        # Axes (points, pairs, batch) become (contacts, batch).
        parts.append(
            jax.tree.map(
                lambda a, s=shape: jnp.broadcast_to(a, s).reshape(-1, s[-1]), (every, uneven)
            )
        )
    return join(parts)


def prepare(at: TreesAtState, mobility: Sequence[Sym6], dt: jax.Array) -> CandidateContacts:
    """Find the contacts, and prepare for the sweeps effective masses and what both levels ask for.

    Args:
        at: the links at the start of the step.
        mobility: inverse inertia of the links with all joints in place, by group.
        dt: time step [s].
    """
    sys, plan = at.sys, at.plan
    found, odd = find(at)
    (dist, _, normal, _), surface = found
    # Any two tangents do for isotropic friction. Anisotropic friction has tangents of its own.
    slides = rolls = None
    axes = (normal, *tangents(normal))
    if odd is not None:
        axes, slides, rolls = (normal, odd.first, odd.second), odd.slide, odd.roll
    place = ContactPoints.of(at, sides_of(sys, plan), found, sys.integrator.drifts_last)
    at_point, turns = place.inverse_inertias(mobility)
    masses, torsion = _effective_masses(axes, at_point), None
    if any(group.condim > 3 for group in sys.collisions):
        twist, roll, _ = surface.turning
        torsion = TorsionalResistance(twist, roll, rolls, _effective_masses(axes, turns))
    before = by_link(plan, about(at.links, at.origins))
    approach = -place.relative_velocity(before).dot(normal)
    # The summand keeps the root's derivative finite without gravity.
    gravity = jnp.sqrt(jnp.sum(sys.opt.gravity * sys.opt.gravity, axis=0, keepdims=True) + 1e-30)
    # Restitution ends at this speed (section 3.6), that of a body that gravity has accelerated for
    # two steps. Otherwise bodies at rest would jitter.
    rebound = jnp.where(approach > 2.0 * gravity * dt, surface.elasticity, 0.0)
    # The position level. Equation (26) asks that the penetration at the end of the step is zero.
    # Here a contact that bounces within the step moves apart for the rest of it.
    rest = jnp.maximum(approach - jnp.maximum(dist, 0.0) / dt, 0.0)
    reach = rebound * rest - dist / dt
    # The velocity level, equation (34): the approach velocity times the coefficient of restitution.
    leave = rebound * approach
    return CandidateContacts(
        *(place, axes, masses, reach, leave, surface.friction, slides),
        *(dist, approach, rebound, surface.elasticity, torsion),
    )


def with_impacts(
    contact: CandidateContacts, free: jax.Array, dt: jax.Array, in_time: bool
) -> CandidateContacts:
    """Return contacts with targets that account for when in the step they close.

    If impacts are resolved in time, gravity and motors act before and after each of them, so that
    the velocity after a bounce, and its derivative, are those of the continuous motion. Elastic
    contacts that only another impact of the step would close are left to the next step.

    Args:
        contact: the contacts.
        free: normal velocity at the end of the step without contacts [m/s].
        dt: time step [s].
        in_time: whether impacts are resolved at their time, see `brax.impacts.in_time`.
    """
    dist, reach, leave = contact.dist, contact.reach, contact.leave
    if in_time:
        # The change of the normal velocity over the step by all but contacts.
        fall = free + contact.approach
        throws, after, share = impacts.in_time(dist, -contact.approach, fall, contact.rebound, dt)
        # After the impact the contact moves apart for the share of the step that is left.
        reach = jnp.where(throws, share * after - dist / dt, reach)
        leave = jnp.where(throws, after, leave)
    # Without a target that anything misses, the impulse of a late contact stays zero.
    late = impacts.later(dist, free * dt < -dist, contact.elasticity)
    reach, leave = (jnp.where(late, -impacts.MAX_SPEED, x) for x in (reach, leave))
    return contact._replace(reach=reach, leave=leave)


def _effective_masses(
    axes: Sequence[Vec3], inverse_inertia: Sequence[Sym3]
) -> tuple[jax.Array, ...]:
    """Return the impulse along each axis per unit of velocity, or the same of torques.

    Equation (4) without compliance, which is equation (18) of Macklin, Müller, Chentanez (2016):
    one over w1 + w2. Equations (2) and (3) give the inverse masses w of bodies without joints. Here
    they include the joints.

    Args:
        axes: the contacts' axes.
        inverse_inertia: the velocity of the contact point on each side that moves per unit of
            impulse at it, with all joints in place; or the same of rotations.
    """
    inverse = (total(axis.dot(m.mul(axis)) for m in inverse_inertia) for axis in axes)
    # Joints may leave a link no motion along an axis; then an impulse there changes nothing.
    return tuple(1.0 / jnp.maximum(w, MIN_MOBILITY) for w in inverse)


def speeds(
    contact: CandidateContacts, velocities: Sequence[Spatial]
) -> tuple[AlongAxes, AlongAxes | None]:
    """Return the velocity of the second link relative to the first, and the angular velocity.

    The latter is None if no contact has torsional or rolling friction.

    Args:
        contact: the contacts.
        velocities: velocities of the links about the common points, by group.
    """
    moving = contact.place.relative_velocity(velocities)
    along = AlongAxes(*(moving.dot(axis) for axis in contact.axes))
    if contact.torsion is None:
        return along, None
    spin = contact.place.relative_spin(velocities)
    return along, AlongAxes(*(spin.dot(axis) for axis in contact.axes))


def change_within_cone(
    contact: CandidateContacts,
    impulse: AlongAxes,
    ahead: AlongAxes,
    velocity: AlongAxes,
    target: jax.Array,
) -> tuple[AlongAxes, AlongAxes, AlongAxes]:
    """Return the change of impulses that each contact asks for, within the friction cone.

    Each contact is treated as if it were the only one.

    Args:
        contact: the contacts.
        impulse: their impulses so far.
        ahead: impulses extrapolated by momentum, from which the change starts.
        velocity: relative velocities along the contacts' axes.
        target: least normal velocity [m/s].

    Returns:
        The change, the velocity errors, and a mask that is 1 where the error and not the cone
        determines the impulse.
    """
    # Equation (4) for each axis: the velocity error times the effective mass. Friction asks for
    # zero tangential velocity, which at the position level is static friction (section 3.5).
    error = AlongAxes(target - velocity.normal, -velocity.first, -velocity.second)
    moved = _moved(ahead, contact.effective_mass, error)
    # Contacts push and never pull.
    moved = moved._replace(normal=jnp.maximum(moved.normal, 0.0))
    # The friction cone: the tangential impulse is scaled back to the coefficient times the normal
    # impulse. The paper has two rules, static friction for positions and equation (30) for
    # velocities. With one cone at both levels a sliding contact gets the coefficient times the
    # normal impulse, no more.
    within, inside = _within(contact.friction * moved.normal, moved, contact.slides)
    change = jax.tree.map(jnp.subtract, within, impulse)
    return change, error, AlongAxes(jnp.ones_like(inside), inside, inside)


def torque_change_within_bounds(
    torsion: TorsionalResistance,
    couple: AlongAxes,
    ahead: AlongAxes,
    spin: AlongAxes,
    pressing: jax.Array,
) -> tuple[AlongAxes, AlongAxes, AlongAxes]:
    """Return the change of torque impulses that each contact asks for, within its bounds.

    Torsional friction is bounded by itself, and the two components of rolling friction by a cone,
    each by its coefficient times the normal impulse. The results are those of `change_within_cone`.

    Args:
        torsion: torsional and rolling friction.
        couple: torque impulses so far.
        ahead: torque impulses extrapolated by momentum.
        spin: relative angular velocities about the contacts' axes.
        pressing: normal impulses.
    """
    error = AlongAxes(*(-w for w in spin))
    moved = _moved(ahead, torsion.effective_inertia, error)
    # Torsion is clamped like dry friction; the two rolling axes share a cone, as the two tangents
    # do.
    most = torsion.twist * pressing
    clipped = moved._replace(normal=jnp.clip(moved.normal, -most, most))
    within, inside = _within(torsion.roll * pressing, clipped, torsion.rolls)
    held = (jnp.abs(moved.normal) <= most).astype(most.dtype)
    change = jax.tree.map(jnp.subtract, within, couple)
    return change, error, AlongAxes(held, inside, inside)


def _moved(start: AlongAxes, mass: Sequence[jax.Array], error: AlongAxes) -> AlongAxes:
    """Return impulses moved by the effective masses times the velocity errors."""
    return AlongAxes(*(x + m * e for x, m, e in zip(start, mass, error, strict=True)))


def _within(
    bound: jax.Array, moved: AlongAxes, share: jax.Array | None
) -> tuple[AlongAxes, jax.Array]:
    """Return impulses scaled back to the friction cone, and a mask of those inside it.

    Args:
        bound: the largest impulse along the first tangent.
        moved: the impulses; the one along the normal is kept.
        share: friction along the second tangent over that along the first; None if it is equal.
    """
    # The cone is elliptic, so that lengths are in its metric. The summand keeps the root's
    # derivative, and the division by the root, finite at zero.
    normal, first, second = moved
    scaled = second if share is None else second / share
    length = jnp.sqrt(first * first + scaled * scaled + 1e-30)
    scale = jnp.minimum(1.0, bound / length)
    # Within the cone the velocity error decides the impulse (it sticks), outside the cone does.
    return AlongAxes(normal, first * scale, second * scale), (length <= bound).astype(length.dtype)


def physical(contact: CandidateContacts, speed: jax.Array) -> jax.Array:
    """Return the share of each impulse that stops or reverses a motion at a normal velocity.

    The rest has pushed bodies out of penetration and must not remain in their velocities. At rest,
    where a little penetration is left over from the sweeps, all of the impulse is kept.

    Args:
        contact: the contacts.
        speed: normal velocity without contacts [m/s].
    """
    # The position level changes the normal velocity by `reach - speed`, of which `leave - speed`
    # belongs to the motion. The factor keeps resting contacts, where both are of one size.
    excess = jnp.maximum(contact.reach - speed, 1e-9)
    return jnp.clip(MAX_PUSH_RATIO * (contact.leave - speed) / excess, 0.0, 1.0)


def in_space(contact: CandidateContacts, along: AlongAxes) -> Vec3:
    """Return impulses, or torque impulses, in world axes."""
    normal, first, second = (axis * x for axis, x in zip(contact.axes, along, strict=True))
    return normal + first + second


def as_momenta(
    contact: CandidateContacts, impulse: AlongAxes, couple: AlongAxes | None
) -> list[Spatial | None]:
    """Return the change of the links' momenta by impulses, about the common points, by group.

    Args:
        contact: the contacts.
        impulse: impulses along the contacts' axes.
        couple: torque impulses about the axes; None if there are none.
    """
    force, none = in_space(contact, impulse), [None] * len(contact.place.plan.groups)
    torque = None if couple is None else in_space(contact, couple)
    return contact.place.add_impulses(none, force, torque)
