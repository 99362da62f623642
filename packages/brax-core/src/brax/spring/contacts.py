"""Impulses at contacts, by sweeps over all of them against the whole trees.

The normal velocity of each contact is held to a target from separation, restitution and Baumgarte's
correction, and its friction to the cone. A sweep moves every impulse towards that, with the inertia
that the contact sees through all joints, shared between the points of a link. Then all trees
respond.

Source: Moreau's time stepping and Gauss-Seidel contact solvers in their Jacobi form, Acary and
Brogliato (2008), Numerical Methods for Nonsmooth Dynamical Systems, chapter 13.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.colliders.interface import CollisionGroup
from brax.colliders.narrow_phase import AnisotropicFriction, Contacts, anisotropic_friction
from brax.components import Sym3, Vec3, stack, sum_first, total
from brax.impacts import MAX_SPEED, in_time, later
from brax.maximal.contacts import ContactPoints, Sides, relative
from brax.maximal.limits import MIN_MOBILITY
from brax.maximal.links import Links, TreesAtState
from brax.spatial import Spatial, Sym6
from brax.spring import torsional_friction
from brax.spring.model import SpringProblem
from brax.spring.torsional_friction import TorsionalFriction
from brax.tree import Layout

TANGENT_RELAXATION = 0.7
"""Share of the full step by which a sweep moves friction impulses, where contacts follow conjugate
directions. One mean mobility stands for two tangents that differ: with the full step, the feet of
light legs tremble and creep apart."""

REST_DEPTH = 0.2
"""Depth at which contacts that follow conjugate directions rest, over g dt^2, the distance that a
body falls in its first step. The sweeps may end with impulses that are too large. Those of the ant
at dt .01 were, by .08 of its weight: it rested 8e-5 m above the floor and touched nothing."""


class ContactImpulse(NamedTuple):
    """Impulse at each contact on the second link [N s], (points, pairs, batch)."""

    normal: jax.Array
    """Along the normal."""
    tangent: Vec3
    """Across the normal, world axes."""
    couple: Vec3 | None
    """Torque impulse [N m s]; None for contacts without torsional friction."""


class ContactRows(NamedTuple):
    """The rows of a collision group's contacts, components (points, pairs, batch)."""

    place: ContactPoints
    """The pairs' links, and the contact points relative to their trees."""
    normal: Vec3
    slip: Vec3
    """Relative velocity across the normal, with free fall but before any impulse of the step."""
    mobility: tuple[jax.Array, jax.Array]
    """Velocity per unit of impulse, along the normal and across it [1/kg]; in the end that of all
    contacts that share a link together."""
    target: jax.Array
    """Least change of the normal velocity [m/s]."""
    friction: jax.Array
    """Coefficient of sliding friction."""
    share: jax.Array | None
    """Share of the step during which the impulse acts; None unless impacts are resolved in time."""
    torsion: TorsionalFriction | None
    """Torsional and rolling friction; None below `condim` 4."""
    anisotropic: AnisotropicFriction | None
    """Friction that differs between the tangents, if it does."""
    step: tuple[jax.Array, ...] = ()
    """Impulse per unit of velocity error, along the normal and across it [kg]: the inverse of the
    mobility; empty while that is not complete."""


class ContactStep(NamedTuple):
    """The inputs from which the rows of all collision groups are prepared."""

    problem: SpringProblem
    """The model."""
    at: TreesAtState
    """The links at the start of the step."""
    mobility: Sequence[Sym6]
    """Inverse inertia of the links about the common points, by group of links. It is that of the
    whole tree: all joints of a link are in it."""
    fall: Vec3
    """Change of velocity by gravity of trees that fall freely; the changes of `free` and of the
    sweeps come on top."""
    free: Sequence[Spatial] | None
    """Changes of velocity without contacts, by group, if impacts are resolved in time."""
    dt: jax.Array
    """Time step [s]."""


def _mobility(normal: Vec3, inverse_inertia: Sequence[Sym3]) -> tuple[jax.Array, jax.Array]:
    """Return the velocity per unit of impulse along the normal and, on average, across it.

    With the sum W of the sides' inverse inertias and the normal n, they are n^T W n and half the
    rest of the trace of W. The mean over the tangents spares their frame and a 2x2 solve.
    """
    mobile = total(inverse_inertia)
    along = normal.dot(mobile.mul(normal))
    return along, 0.5 * (mobile.xx + mobile.yy + mobile.zz - along)


def prepare(
    step: ContactStep,
    found: Sequence[Contacts],
    sides: Sequence[Sides],
    follows: Sequence[np.ndarray],
) -> list[ContactRows]:
    """Set up the rows of all contacts.

    Args:
        step: the inputs of all rows.
        found: the contacts, by collision group, as are the next two arguments.
        sides: the pairs' links.
        follows: true for pairs that follow conjugate directions, (pairs, 1).
    """
    # Rows first, then the counts of touching points, which divide the steps of all groups.
    ready = [
        _prepare(step, *each)
        for each in zip(found, sides, step.problem.sys.collisions, follows, strict=True)
    ]
    counts = _counts(ready, step.at.plan)
    return [_shared(contact, counts, step.at.plan) for contact, _ in ready]


def _prepare(
    step: ContactStep, found: Contacts, sides: Sides, group: CollisionGroup, follows: np.ndarray
) -> tuple[ContactRows, jax.Array]:
    """Return a group's rows, and for each point 1 if it is about to touch, otherwise 0."""
    (touch, surface), links = found, step.at.links
    normal = touch.normal
    place = ContactPoints.of(step.at, sides, found, step.free is not None)
    before = _approach(links, place)
    ahead = before + relative([(sign, side.of(step.fall)) for sign, side, _ in place.moving])
    # The normal velocity before the step, and with free fall, to which the sweeps' changes add.
    along, start = normal.dot(before), normal.dot(ahead)
    end = None
    if step.free is not None:
        end = start + normal.dot(place.relative_velocity(step.free))
    target, share, hits = _normal_target(found, follows, step.problem, along, end, step.dt)
    at_point, turns = place.inverse_inertias(step.mobility)
    torsion = None
    if group.condim > 3:
        spin = relative([(sign, side.of(links.ang)) for sign, side, _ in place.moving])
        # MuJoCo: `condim` 4 has torsional friction, 6 rolling friction as well.
        twist, roll, _ = surface.turning
        roll_or_none = roll if group.condim > 4 else None
        torsion = TorsionalFriction(spin, _mobility(normal, turns), twist, roll_or_none)
    contact = ContactRows(
        place=place,
        normal=normal,
        slip=ahead - normal * start,
        mobility=_mobility(normal, at_point),
        target=target - start,  # the unknown is the change relative to free fall
        friction=surface.friction,
        share=share,
        torsion=torsion,
        anisotropic=anisotropic_friction(step.problem.sys, group, found),
    )
    return contact, hits.astype(target.dtype)


def _normal_target(
    found: Contacts,
    follows: np.ndarray,
    problem: SpringProblem,
    along: jax.Array,
    end: jax.Array | None,
    dt: jax.Array,
) -> tuple[jax.Array, jax.Array | None, jax.Array]:
    """Return the least normal velocity after the step, and which points are about to touch.

    Between them stands the share of the step during which the impulse acts, if impacts are resolved
    in time.

    Args:
        found: the contacts.
        follows: true for pairs that follow conjugate directions, (pairs, 1).
        problem: the model.
        along: normal velocities before the step.
        end: normal velocities after a step without contacts, if impacts are resolved in time.
        dt: time step [s].
    """
    sys, (touch, surface) = problem.sys, found
    # The normal velocity at which the distance is zero at the end of the step.
    reach = touch.dist * (-1.0 / dt)
    # Gravity in any direction: a conservative guess of which points will touch in this step.
    hits = along - problem.model.gravity * dt < reach
    # Where the last sweep may leave too large an impulse, it aims below the surface.
    deeper = reach - jnp.where(follows, REST_DEPTH, 0.0) * problem.model.gravity * dt
    # A gap may close within one step; of a penetration a share is taken back (Baumgarte 1972).
    push = jnp.where(deeper > 0, sys.baumgarte_erp * deeper, deeper)
    # A target of -MAX_SPEED is no constraint: an elastic contact that closes only because of
    # another impact waits for the next step.
    push = jnp.where(later(touch.dist, hits, surface.elasticity), -MAX_SPEED, push)
    if end is None:
        # Restitution reverses the velocity before the step, so that what rests does not bounce.
        bounce = surface.elasticity * along
        return jnp.where(hits & (bounce < 0), jnp.maximum(push, -bounce), push), None, hits
    throws, leave, share = in_time(touch.dist, along, end - along, surface.elasticity, dt)
    # A rebound within the step asks for its velocity at the end.
    return jnp.where(throws, jnp.maximum(leave, push), push), share, hits


def _approach(links: Links, place: ContactPoints) -> Vec3:
    """Return the velocity of the second link relative to the first, at a point of each."""
    parts = []
    for sign, side, _ in place.moving:
        point = place.points[0 if sign < 0 else 1]
        pos, vel, ang = (side.of(v) for v in (links.pos, links.vel, links.ang))
        parts.append((sign, vel + ang.cross(point - pos)))
    return relative(parts)


def _counts(ready: Sequence[tuple[ContactRows, jax.Array]], plan: Layout) -> list[jax.Array | None]:
    """Return the number of contacts about to touch on each link, by group; None where none can."""
    # Counts depend on the state: a box that stands on an edge has two contacts, not four.
    counts: list[jax.Array | None] = [None] * len(plan.groups)
    for contact, hits in ready:
        for side in contact.place.sides:
            for index, part in side.give(hits, plan):
                old = counts[index]
                counts[index] = part if old is None else old + part
    return counts


def _shared(contact: ContactRows, counts: Sequence[jax.Array | None], plan: Layout) -> ContactRows:
    """Return the rows with steps divided by the number of contacts on the busier of two links.

    All contacts of a link move at once in a sweep: without the division, each of the four corners
    of a box would take the whole load. The idea is that of mass splitting, Tonge, Benevolenski and
    Voroshilov (2012), Mass splitting for jitter-free parallel rigid body simulation.
    """
    # One count for all points of a pair, since they share their links.
    busy = jnp.ones_like(contact.target[0])
    known = [
        jnp.zeros((len(g.links), 1), busy.dtype) if c is None else c
        for c, g in zip(counts, plan.groups, strict=True)
    ]
    for _, side, _ in contact.place.moving:
        busy = jnp.maximum(busy, side.take(known, plan))

    def together(mobility: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        # The floor keeps the step finite where neither side can move.
        along, across = (jnp.maximum(x * busy, MIN_MOBILITY) for x in mobility)
        return along, across

    torsion = contact.torsion
    if torsion is not None:
        mobile = together(torsion.mobility)
        torsion = torsion._replace(mobility=mobile, step=tuple(1.0 / x for x in mobile))
    mobile = together(contact.mobility)
    return contact._replace(mobility=mobile, step=tuple(1.0 / x for x in mobile), torsion=torsion)


def no_impulse(contact: ContactRows) -> ContactImpulse:
    """Return zero impulses."""
    none = jnp.zeros_like(contact.target)
    still = Vec3(none, none, none)
    return ContactImpulse(none, still, None if contact.torsion is None else still)


def update(
    contact: ContactRows,
    impulse: ContactImpulse,
    changes: Sequence[Spatial],
    gain: tuple[object, Any],
) -> ContactImpulse:
    """Return impulses moved towards what the velocities ask for, within the friction cone.

    Args:
        contact: the contacts.
        impulse: their impulses so far.
        changes: changes of the links' velocities about the common points, by group.
        gain: share of the full step, along the normal and across it, (pairs, 1).
    """
    velocity = contact.place.relative_velocity(changes)
    along = contact.normal.dot(velocity)
    step, turn = (s * g for s, g in zip(contact.step, gain, strict=True))
    # Maximal dissipation asks friction to stop the slip; the cone then bounds it.
    slip = velocity + contact.slip - contact.normal * along
    couple = None
    if contact.torsion is not None and impulse.couple is not None:
        spin = contact.place.relative_spin(changes)
        couple = impulse.couple - torsional_friction.asked(contact.torsion, contact.normal, spin)
    # Projected Jacobi: f + D^-1 (target - v), with D the diagonal of J M^-1 J^T.
    normal = impulse.normal + step * (contact.target - along)
    return project(contact, ContactImpulse(normal, impulse.tangent - slip * turn, couple))


def project(contact: ContactRows, impulse: ContactImpulse) -> ContactImpulse:
    """Return the impulses that only push, with friction inside its cone.

    The tangent impulse is scaled back to the friction coefficient times the normal impulse just
    found. That is not the nearest point of Coulomb's cone, which would change the normal impulse
    too; but then friction could push a body off the surface.
    """
    normal, tangent, couple = impulse
    normal = jnp.maximum(normal, 0.0)
    sides = contact.anisotropic
    if sides is None:
        # The small number keeps the derivative of the root finite at rest.
        length = jnp.sqrt(tangent.dot(tangent) + 1e-30)
    else:
        length = sides.length(tangent, sides.slide)
    if contact.torsion is not None and couple is not None:
        couple = torsional_friction.project(contact.torsion, contact.normal, sides, couple, normal)
    bound = contact.friction * normal  # Coulomb: |f_t| <= mu f_n
    return ContactImpulse(normal, tangent * jnp.minimum(bound / length, 1.0), couple)


def squared_norm(contact: ContactRows, change: ContactImpulse) -> jax.Array:
    """Return the square of a change of impulses in the metric of their steps, (pairs, batch)."""
    # |df|^2 in the metric D of the steps. Friction's step is relaxed, so its metric is stiffer.
    along, across = contact.mobility
    normal, tangent, couple = change
    found = normal * normal * along + tangent.dot(tangent) * (across * (1.0 / TANGENT_RELAXATION))
    if contact.torsion is not None and couple is not None:
        found = found + torsional_friction.squared_norm(contact.torsion, contact.normal, couple)
    return sum_first(found)[0]


def over_step(contact: ContactRows, impulse: ContactImpulse) -> ContactImpulse:
    """Return the share of the impulses that moves the links during the step."""
    share = contact.share
    assert share is not None
    moved: ContactImpulse = jax.tree.map(lambda x: x * share, impulse)
    return moved


def in_space(contact: ContactRows, impulse: ContactImpulse) -> Vec3:
    """Return the impulses on the second links, world axes."""
    return contact.normal * impulse.normal + impulse.tangent


def add_impulses(
    momenta: Sequence[Spatial | None],
    contacts: Sequence[ContactRows],
    impulses: Sequence[ContactImpulse],
) -> list[Spatial | None]:
    """Add the contacts' impulses to the momenta of the links, by group; None where none acts."""
    out = list(momenta)
    for contact, impulse in zip(contacts, impulses, strict=True):
        force = in_space(contact, impulse)
        out = contact.place.add_impulses(out, force, impulse.couple)
    return out


def on_second(
    contacts: Sequence[ContactRows], impulses: Sequence[ContactImpulse], dtype: Any, batch: int
) -> jax.Array:
    """Return the impulses of all contacts on the second links.

    They are in world axes, (n_contacts, 3, batch), in the order of `brax.contact.get`.
    """
    tables = [jnp.zeros((0, 3, batch), dtype)]
    for contact, impulse in zip(contacts, impulses, strict=True):
        tables.append(stack([x.reshape(-1, x.shape[-1]) for x in in_space(contact, impulse)]))
    return jnp.concatenate(tables)
