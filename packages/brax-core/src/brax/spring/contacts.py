"""Impulses at contacts, by sweeps over all of them against the whole trees.

The normal velocity of each contact is held to a target from separation, restitution and Baumgarte's
correction, and its friction to the cone. A sweep moves every impulse towards that, with the inertia
that the contact sees through all joints, shared between the points of a link. Then all trees
respond.

Source: Moreau's time stepping and Gauss-Seidel contact solvers in their Jacobi form, Acary and
Brogliato (2008), Numerical Methods for Nonsmooth Dynamical Systems, chapter 13.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from brax.colliders.interface import CollisionGroup, Touch
from brax.colliders.narrow_phase import AnisotropicFriction, ContactSurface, anisotropic_friction
from brax.components import Vec3, rows, stack, sum_first
from brax.impacts import MAX_SPEED, in_time, later
from brax.maximal.links import Links
from brax.spatial import Spatial, Sym6
from brax.spring import torsional_friction
from brax.spring.model import SpringProblem
from brax.spring.torsional_friction import TorsionalFriction
from brax.tree import Layout, join, sum_rows

T = TypeVar("T")

TANGENT_RELAXATION = 0.7
"""Share of the full step by which a sweep moves friction impulses, where contacts follow conjugate
directions. One mean mobility stands for two tangents that differ: with the full step, the feet of
light legs tremble and creep apart."""

REST_DEPTH = 0.2
"""Depth at which contacts that follow conjugate directions rest, over g dt^2, the distance that a
body falls in its first step. The sweeps may end with impulses that are too large. Those of the ant
at dt .01 were, by .08 of its weight: it rested 8e-5 m above the floor and touched nothing."""

Sides = tuple[tuple[int, ...], tuple[int, ...]]
"""Positions of the first and the second link of each pair in the layout, -1 for the world."""


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

    normal: Vec3
    arms: tuple[Vec3, Vec3]
    """The contact point relative to the common point of each side's tree [m]."""
    slip: Vec3
    """Relative velocity across the normal, with free fall but before any impulse of the step."""
    step: tuple[jax.Array, jax.Array]
    """Impulse per unit of velocity error, along the normal and across it [kg]."""
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


def _is_world(side: tuple[int, ...]) -> bool:
    return all(link < 0 for link in side)


def _pick(values: Sequence[jax.Array], side: tuple[int, ...], plan: Layout) -> jax.Array:
    """Return the rows of values kept by group, at positions; zero for the world."""
    for value, group in zip(values, plan.groups, strict=True):
        if set(side) <= set(group.links):
            return rows(value, [link - group.links[0] for link in side])
    # The pairs span several groups of links: join those first.
    every = join(list(values))
    if min(side) >= 0:
        return rows(every, side)
    # The world, link -1, gets a row of zeros in front.
    return rows(jnp.concatenate([jnp.zeros_like(every[:1]), every]), [link + 1 for link in side])


def pick(values: Sequence[T], side: tuple[int, ...], plan: Layout) -> T:
    """Return the rows of pytrees kept by group, at positions of the layout."""
    return jax.tree.map(lambda *v: _pick(v, side, plan), *values)


def change(arms: tuple[Vec3, Vec3], changes: Sequence[Spatial], sides: Sides, plan: Layout) -> Vec3:
    """Return the change of the second link's velocity relative to the first at the contacts."""
    moving = [
        (sign, pick(changes, side, plan), arm)
        for sign, side, arm in zip((-1.0, 1.0), sides, arms, strict=True)
        if not _is_world(side)
    ]
    return _relative([(sign, v.lin + v.ang.cross(arm)) for sign, v, arm in moving])


def angular_change(changes: Sequence[Spatial], sides: Sides, plan: Layout) -> Vec3:
    """Return the change of the second link's angular velocity relative to the first, by pair."""
    return _relative(
        [
            (sign, pick(changes, side, plan).ang)
            for sign, side in zip((-1.0, 1.0), sides, strict=True)
            if not _is_world(side)
        ]
    )


def _relative(parts: Sequence[tuple[float, Vec3]]) -> Vec3:
    """Return the second side's velocity less the first's; the world does not move."""
    if len(parts) == 2:
        return parts[1][1] - parts[0][1]
    sign, v = parts[0]
    return v if sign > 0 else v * sign


def _contact_mobility(
    normal: Vec3,
    arms: tuple[Vec3, Vec3],
    mobility: Sequence[Sym6],
    sides: Sides,
    plan: Layout,
) -> tuple[jax.Array, jax.Array]:
    """Return the velocity per unit of impulse along the normal and, on average, across it.

    With the 3x3 inverse inertia W of the contact point and the normal n, they are n^T W n and half
    the rest of the trace of W. The mean over the tangents spares their frame and a 2x2 solve.
    """
    # `Sym6.at` is the 3x3 inverse inertia of a point: W = J W6 J^T with J = [-[r]x, 1].
    points = [
        pick(mobility, side, plan).at(arm)
        for side, arm in zip(sides, arms, strict=True)
        if not _is_world(side)
    ]
    mobile = points[0] if len(points) == 1 else points[0] + points[1]
    along = normal.dot(mobile.mul(normal))
    return along, 0.5 * (mobile.xx + mobile.yy + mobile.zz - along)


def prepare(
    found: Sequence[Touch],
    sides: Sequence[Sides],
    problem: SpringProblem,
    mobility: Sequence[Sym6],
    origin: Vec3,
    links: Links,
    fall: Vec3,
    free: Sequence[Spatial] | None,
    follows: Sequence[np.ndarray],
    dt: jax.Array,
) -> list[ContactRows]:
    """Set up the rows of all contacts.

    Args:
        found: the contact points, by collision group.
        sides: the pairs' links by their positions in the layout, by collision group.
        problem: the model.
        mobility: inverse inertia of the links about the common points, by group of links. It is
            that of the whole tree: all joints of a link are in it.
        origin: the common point of each link's tree, one row if there is one tree.
        links: the links at the start of the step.
        fall: change of velocity by gravity of trees that fall freely; the changes of `free` and of
            the sweeps come on top.
        free: changes of velocity without contacts, by group, if impacts are resolved in time.
        follows: whether pairs follow conjugate directions, by collision group, (pairs, 1).
        dt: time step.
    """
    plan = problem.plan
    # Rows first, then the counts of touching points, which divide the steps of all groups.
    ready = [
        _prepare(*each, problem, mobility, origin, links, fall, free, dt)
        for each in zip(
            *(found, problem.model.surfaces, sides, problem.sys.collisions, follows), strict=True
        )
    ]
    counts = _counts([hits for _, hits in ready], sides, plan)
    return [
        _shared(contact, counts, side, plan)
        for (contact, _), side in zip(ready, sides, strict=True)
    ]


def _prepare(
    touch: Touch,
    surface: ContactSurface,
    sides: Sides,
    group: CollisionGroup,
    follows: np.ndarray,
    problem: SpringProblem,
    mobility: Sequence[Sym6],
    origin: Vec3,
    links: Links,
    fall: Vec3,
    free: Sequence[Spatial] | None,
    dt: jax.Array,
) -> tuple[ContactRows, jax.Array]:
    """Return a group's rows, and for each point 1 if it is about to touch, otherwise 0."""
    sys, normal = problem.sys, touch.normal
    # The world's arm is not used; the point itself spares a case.
    arms = tuple(
        touch.pos if _is_world(side) else touch.pos - _about(origin, side) for side in sides
    )
    before = _approach(touch.pos, links, sides)
    moving = [(s, side) for s, side in zip((-1.0, 1.0), sides, strict=True) if not _is_world(side)]
    ahead = before + _relative([(sign, _or_world(fall, side)) for sign, side in moving])
    # The normal velocity before the step, and with free fall, to which the sweeps' changes add.
    along, start = normal.dot(before), normal.dot(ahead)
    end = None
    if free is not None:
        end = start + normal.dot(change(arms, free, sides, problem.plan))  # type: ignore[arg-type]
    target, share, hits = _normal_target(touch, surface, follows, problem, along, end, dt)
    contact = ContactRows(
        normal=normal,
        arms=arms,  # type: ignore[arg-type]
        slip=ahead - normal * start,
        step=_contact_mobility(normal, arms, mobility, sides, problem.plan),  # type: ignore[arg-type]
        target=target - start,  # the unknown is the change relative to free fall
        friction=surface.friction,
        share=share,
        torsion=torsional_friction.prepare(
            normal,
            _relative([(sign, _or_world(links.ang, side)) for sign, side in moving]),
            [pick(mobility, side, problem.plan) for _, side in moving],
            surface,
            group.condim,
        ),
        anisotropic=anisotropic_friction(sys, group, touch, surface),
    )
    return contact, hits.astype(target.dtype)


def _normal_target(
    touch: Touch,
    surface: ContactSurface,
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
        touch: the contact points.
        surface: their friction and restitution.
        follows: true for pairs that follow conjugate directions, (pairs, 1).
        problem: the model.
        along: normal velocities before the step.
        end: normal velocities after a step without contacts, if impacts are resolved in time.
        dt: time step [s].
    """
    sys = problem.sys
    # The normal velocity at which the distance is zero at the end of the step.
    reach = touch.dist * (-1.0 / dt)
    # Gravity in any direction: a conservative guess of which points will touch in this step.
    hits = along - problem.model.gravity * dt < reach
    # Where the last sweep may leave too large an impulse, it aims below the surface.
    deeper = reach - jnp.where(follows, REST_DEPTH, 0.0) * problem.model.gravity * dt
    # A gap may close within one step; of a penetration a share is taken back (Baumgarte 1972).
    push = jnp.where(deeper > 0, sys.baumgarte_erp * deeper, deeper)
    # A target of -MAX_SPEED is no constraint: an elastic contact that opens only because of another
    # impact waits for the next step.
    push = jnp.where(later(touch.dist, hits, surface.elasticity), -MAX_SPEED, push)
    if end is None:
        # Restitution reverses the velocity before the step, so that what rests does not bounce.
        bounce = surface.elasticity * along
        return jnp.where(hits & (bounce < 0), jnp.maximum(push, -bounce), push), None, hits
    throws, leave, share = in_time(touch.dist, along, end - along, surface.elasticity, dt)
    # A rebound within the step asks for its velocity at the end.
    return jnp.where(throws, jnp.maximum(leave, push), push), share, hits


def _approach(point: Vec3, links: Links, sides: Sides) -> Vec3:
    """Return the velocity of the second link relative to the first at points, world axes."""
    parts = []
    for sign, side in zip((-1.0, 1.0), sides, strict=True):
        if not _is_world(side):
            pos, vel, ang = (_or_world(v, side) for v in (links.pos, links.vel, links.ang))
            parts.append((sign, vel + ang.cross(point - pos)))
    return _relative(parts)


def _about(origin: Vec3, side: tuple[int, ...]) -> Vec3:
    return origin if origin.x.shape[0] == 1 else _or_world(origin, side)


def _or_world(values: Vec3, side: tuple[int, ...]) -> Vec3:
    """Return the rows of all links at positions; zero for the world."""
    if min(side) >= 0:
        return rows(values, side)
    with_world = jax.tree.map(lambda a: jnp.concatenate([jnp.zeros_like(a[:1]), a]), values)
    return rows(with_world, [link + 1 for link in side])


def _counts(
    hits: Sequence[jax.Array], sides: Sequence[Sides], plan: Layout
) -> list[jax.Array | None]:
    """Return the number of contacts about to touch on each link, by group; None where none can."""
    # Counts depend on the state: a box that stands on an edge has two contacts, not four.
    counts: list[jax.Array | None] = [None] * len(plan.groups)
    for hit, both in zip(hits, sides, strict=True):
        for side in both:
            for index, part in _spread(hit, side, plan):
                old = counts[index]
                counts[index] = part if old is None else old + part
    return counts


def _shared(
    contact: ContactRows, counts: Sequence[jax.Array | None], sides: Sides, plan: Layout
) -> ContactRows:
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
    for side in sides:
        if not _is_world(side):
            busy = jnp.maximum(busy, _pick(known, side, plan))

    def apart(step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        # The floor keeps the step finite where neither side can move.
        along, across = (1.0 / jnp.maximum(s * busy, 1e-12) for s in step)
        return along, across

    turns = contact.torsion
    return contact._replace(
        step=apart(contact.step), torsion=turns and turns._replace(step=apart(turns.step))
    )


def _spread(value: jax.Array, side: tuple[int, ...], plan: Layout) -> list[tuple[int, jax.Array]]:
    """Sum values of the points of each pair over the links of one side, by group of links."""
    # The points of a pair act on the same link, so sum over their axis, the first.
    per_pair = sum_first(value)[0]
    out = []
    for index, group in enumerate(plan.groups):
        mine, owner = group.of(side)
        if mine:
            out.append((index, sum_rows(rows(per_pair, mine), owner, len(group.links))))
    return out


def no_impulse(contact: ContactRows) -> ContactImpulse:
    """Return zero impulses."""
    none = jnp.zeros_like(contact.target)
    still = Vec3(none, none, none)
    return ContactImpulse(none, still, None if contact.torsion is None else still)


def update(
    contact: ContactRows,
    impulse: ContactImpulse,
    velocity: Vec3,
    spin: Vec3 | None,
    gain: tuple[Any, Any],
) -> ContactImpulse:
    """Return impulses moved towards what the velocities ask for, within the friction cone.

    Args:
        contact: the contacts.
        impulse: their impulses so far.
        velocity: change of their relative velocities, world axes.
        spin: change of their relative angular velocities; None without torsional friction.
        gain: share of the full step, along the normal and across it, (pairs, 1).
    """
    along = contact.normal.dot(velocity)
    step, turn = (s * g for s, g in zip(contact.step, gain, strict=True))
    # Maximal dissipation asks friction to stop the slip; the cone then bounds it.
    slip = velocity + contact.slip - contact.normal * along
    couple = None
    if contact.torsion is not None and impulse.couple is not None and spin is not None:
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
    step, turn = contact.step
    normal, tangent, couple = change
    found = normal * normal * (1.0 / step) + tangent.dot(tangent) * (
        1.0 / (TANGENT_RELAXATION * turn)
    )
    if contact.torsion is not None and couple is not None:
        found = found + torsional_friction.squared_norm(contact.torsion, contact.normal, couple)
    return sum_first(found)[0]


def over_step(contact: ContactRows, impulse: ContactImpulse) -> ContactImpulse:
    """Return the share of the impulses that moves the links during the step."""
    share = contact.share
    assert share is not None
    couple = None if impulse.couple is None else impulse.couple * share
    return ContactImpulse(impulse.normal * share, impulse.tangent * share, couple)


def add_impulses(
    momenta: Sequence[Spatial | None],
    contacts: Sequence[ContactRows],
    impulses: Sequence[ContactImpulse],
    sides: Sequence[Sides],
    plan: Layout,
) -> list[Spatial | None]:
    """Add the contacts' impulses to the momenta of the links, by group; None where none acts."""
    out = list(momenta)
    for contact, impulse, both in zip(contacts, impulses, sides, strict=True):
        force = contact.normal * impulse.normal + impulse.tangent
        for sign, side, arm in zip((-1.0, 1.0), both, contact.arms, strict=True):
            if _is_world(side):
                continue
            # About the common point of the side's tree, as all momenta are.
            torque = arm.cross(force)
            torque = torque if impulse.couple is None else torque + impulse.couple
            wrench = Spatial(torque, force)
            # The impulse is the one on the second link; the first takes the opposite.
            wrench = wrench if sign > 0 else wrench * sign
            leaves, structure = jax.tree.flatten(wrench)
            spread = [_spread(leaf, side, plan) for leaf in leaves]
            for parts in zip(*spread, strict=True):
                index = parts[0][0]
                found = jax.tree.unflatten(structure, [part for _, part in parts])
                before = out[index]
                out[index] = found if before is None else before + found
    return out


def on_second(
    contacts: Sequence[ContactRows], impulses: Sequence[ContactImpulse], dtype: Any, batch: int
) -> jax.Array:
    """Return the impulses of all contacts on the second links.

    They are in world axes, (n_contacts, 3, batch), in the order of `brax.contact.get`.
    """
    tables = [jnp.zeros((0, 3, batch), dtype)]
    for contact, impulse in zip(contacts, impulses, strict=True):
        force = contact.normal * impulse.normal + impulse.tangent
        tables.append(stack([x.reshape(-1, x.shape[-1]) for x in force]))
    return jnp.concatenate(tables)
