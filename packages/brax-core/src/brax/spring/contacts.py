"""Impulses at contacts, by sweeps over all of them against the whole trees.

Each contact's normal velocity is held to what separation, restitution and Baumgarte's correction
ask for, and its friction to the cone. A sweep moves every impulse towards that with the inertia
which the contact sees through all joints, shared between the points of a link, and then lets
all trees respond.

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
ACROSS = 0.7
"""Share of the way that a sweep moves friction. It acts on the bodies along two directions, which
no mean mobility serves alike: at 1 the feet of light legs tremble and creep apart."""

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
    """Across it, world axes."""
    couple: Vec3 | None
    """Torque impulse [N m s], of contacts that hinder turning."""


class ContactRows(NamedTuple):
    """What the sweeps need of a group's contacts, components (points, pairs, batch)."""

    normal: Vec3
    arms: tuple[Vec3, Vec3]
    """The contact from the common point of each side's tree."""
    slip: Vec3
    """Relative velocity across the normal, of bodies that fall."""
    step: tuple[jax.Array, jax.Array]
    """Impulse per unit of velocity error, along the normal and across it."""
    target: jax.Array
    """Least change of their normal velocity."""
    friction: jax.Array
    share: jax.Array | None
    """Of the step in which the impulse acts, where impacts are resolved in time."""
    torsion: TorsionalFriction | None
    uneven: AnisotropicFriction | None


def _is_world(side: tuple[int, ...]) -> bool:
    return all(link < 0 for link in side)


def _pick(values: Sequence[jax.Array], side: tuple[int, ...], plan: Layout) -> jax.Array:
    """Rows of values kept by group, at positions; the world's are zero."""
    for value, group in zip(values, plan.groups, strict=True):
        if set(side) <= set(group.links):
            return rows(value, [link - group.links[0] for link in side])
    every = join(list(values))
    if min(side) >= 0:
        return rows(every, side)
    return rows(jnp.concatenate([jnp.zeros_like(every[:1]), every]), [link + 1 for link in side])


def pick(values: Sequence[T], side: tuple[int, ...], plan: Layout) -> T:
    """Rows of trees kept by group, at positions."""
    return jax.tree.map(lambda *v: _pick(v, side, plan), *values)


def change(arms: tuple[Vec3, Vec3], changes: Sequence[Spatial], sides: Sides, plan: Layout) -> Vec3:
    """Change of the velocity of the second link relative to the first at the contacts."""
    moving = [
        (sign, pick(changes, side, plan), arm)
        for sign, side, arm in zip((-1.0, 1.0), sides, arms, strict=True)
        if not _is_world(side)
    ]
    return _relative([(sign, v.lin + v.ang.cross(arm)) for sign, v, arm in moving])


def turning(changes: Sequence[Spatial], sides: Sides, plan: Layout) -> Vec3:
    """Change of the angular velocity of the second link relative to the first, one row a pair."""
    return _relative(
        [
            (sign, pick(changes, side, plan).ang)
            for sign, side in zip((-1.0, 1.0), sides, strict=True)
            if not _is_world(side)
        ]
    )


def _relative(parts: Sequence[tuple[float, Vec3]]) -> Vec3:
    """The second side's less the first's, of the sides that can move."""
    if len(parts) == 2:
        return parts[1][1] - parts[0][1]
    sign, v = parts[0]
    return v if sign > 0 else v * sign


def _seen_mobility(
    normal: Vec3,
    arms: tuple[Vec3, Vec3],
    mobility: Sequence[Sym6],
    sides: Sides,
    plan: Layout,
) -> tuple[jax.Array, jax.Array]:
    """Velocity per unit of impulse along the normal and, on average, across it."""
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
    """Sets the contacts up for the sweeps.

    Args:
        found: the contact points, by collision group.
        sides: the pairs' links, by collision group.
        problem: the model.
        mobility: inverse inertia of the links, by group of links.
        origin: the common point of each link's tree, one row if there is one tree.
        links: the links at the start of the step.
        fall: how gravity changes their velocities; what `free` and the sweeps find comes on top.
        free: changes of velocity without contacts, by group, if impacts are resolved in time.
        follows: whether pairs follow conjugate directions, by collision group, (pairs, 1).
        dt: time step.
    """
    plan = problem.plan
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
    """A group's rows, and which of its points are about to touch (1) or not (0)."""
    sys, normal = problem.sys, touch.normal
    arms = tuple(
        touch.pos if _is_world(side) else touch.pos - _about(origin, side) for side in sides
    )
    before = _approach(touch.pos, links, sides)
    moving = [(s, side) for s, side in zip((-1.0, 1.0), sides, strict=True) if not _is_world(side)]
    ahead = before + _relative([(sign, _or_world(fall, side)) for sign, side in moving])
    along, start = normal.dot(before), normal.dot(ahead)
    reach = touch.dist * (-1.0 / dt)
    hits = along - problem.model.gravity * dt < reach
    # Where the last sweep may leave too large an impulse, it aims below the surface.
    deeper = reach - jnp.where(follows, REST_DEPTH, 0.0) * problem.model.gravity * dt
    push = jnp.where(deeper > 0, sys.baumgarte_erp * deeper, deeper)
    push = jnp.where(later(touch.dist, hits, surface.elasticity), -MAX_SPEED, push)
    share = None
    if free is None:
        bounce = surface.elasticity * along
        target = jnp.where(hits & (bounce < 0), jnp.maximum(push, -bounce), push)
    else:
        end = start + normal.dot(change(arms, free, sides, problem.plan))  # type: ignore[arg-type]
        throws, leave, share = in_time(touch.dist, along, end - along, surface.elasticity, dt)
        target = jnp.where(throws, jnp.maximum(leave, push), push)
    contact = ContactRows(
        normal=normal,
        arms=arms,  # type: ignore[arg-type]
        slip=ahead - normal * start,
        step=_seen_mobility(normal, arms, mobility, sides, problem.plan),  # type: ignore[arg-type]
        target=target - start,
        friction=surface.friction,
        share=share,
        torsion=torsional_friction.prepare(
            normal,
            _relative([(sign, _or_world(links.ang, side)) for sign, side in moving]),
            [pick(mobility, side, problem.plan) for _, side in moving],
            surface,
            group.condim,
        ),
        uneven=anisotropic_friction(sys, group, touch, surface),
    )
    return contact, hits.astype(target.dtype)


def _approach(point: Vec3, links: Links, sides: Sides) -> Vec3:
    """Velocity of the second link relative to the first at points, world axes."""
    parts = []
    for sign, side in zip((-1.0, 1.0), sides, strict=True):
        if not _is_world(side):
            pos, vel, ang = (_or_world(v, side) for v in (links.pos, links.vel, links.ang))
            parts.append((sign, vel + ang.cross(point - pos)))
    return _relative(parts)


def _about(origin: Vec3, side: tuple[int, ...]) -> Vec3:
    return origin if origin.x.shape[0] == 1 else _or_world(origin, side)


def _or_world(values: Vec3, side: tuple[int, ...]) -> Vec3:
    """Rows of all links at positions; zero for the world."""
    if min(side) >= 0:
        return rows(values, side)
    with_world = jax.tree.map(lambda a: jnp.concatenate([jnp.zeros_like(a[:1]), a]), values)
    return rows(with_world, [link + 1 for link in side])


def _counts(
    hits: Sequence[jax.Array], sides: Sequence[Sides], plan: Layout
) -> list[jax.Array | None]:
    """Number of contacts about to touch on each link, by group of links; None where none can."""
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
    """Rows whose steps are divided by the contacts on the busier of their two links."""
    busy = jnp.ones_like(contact.target[0])
    known = [
        jnp.zeros((len(g.links), 1), busy.dtype) if c is None else c
        for c, g in zip(counts, plan.groups, strict=True)
    ]
    for side in sides:
        if not _is_world(side):
            busy = jnp.maximum(busy, _pick(known, side, plan))

    def apart(step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        along, across = (1.0 / jnp.maximum(s * busy, 1e-12) for s in step)
        return along, across

    turns = contact.torsion
    return contact._replace(
        step=apart(contact.step), torsion=turns and turns._replace(step=apart(turns.step))
    )


def _spread(value: jax.Array, side: tuple[int, ...], plan: Layout) -> list[tuple[int, jax.Array]]:
    """Sums what belongs to the points of each pair over the links of one side, by group."""
    per_pair = sum_first(value)[0]
    out = []
    for index, group in enumerate(plan.groups):
        mine, owner = group.of(side)
        if mine:
            out.append((index, sum_rows(rows(per_pair, mine), owner, len(group.links))))
    return out


def no_impulse(contact: ContactRows) -> ContactImpulse:
    """Where the sweeps begin."""
    none = jnp.zeros_like(contact.target)
    still = Vec3(none, none, none)
    return ContactImpulse(none, still, None if contact.torsion is None else still)


def update(
    contact: ContactRows,
    impulse: ContactImpulse,
    velocity: Vec3,
    turning: Vec3 | None,
    gain: tuple[Any, Any],
) -> ContactImpulse:
    """Moves the impulses towards what the velocities ask for, within the friction cone.

    Args:
        contact: the contacts.
        impulse: their impulses so far.
        velocity: change of their relative velocities, world axes.
        turning: that of the relative angular velocities; None where nothing hinders turning.
        gain: share of the way to go, along the normal and across it, (pairs, 1).
    """
    along = contact.normal.dot(velocity)
    step, turn = (s * g for s, g in zip(contact.step, gain, strict=True))
    slip = velocity + contact.slip - contact.normal * along
    couple = None
    if contact.torsion is not None and impulse.couple is not None and turning is not None:
        couple = impulse.couple - torsional_friction.asked(contact.torsion, contact.normal, turning)
    normal = impulse.normal + step * (contact.target - along)
    return within(contact, ContactImpulse(normal, impulse.tangent - slip * turn, couple))


def within(contact: ContactRows, impulse: ContactImpulse) -> ContactImpulse:
    """Return the impulses that only push, and whose friction is in its cone."""
    normal, tangent, couple = impulse
    normal = jnp.maximum(normal, 0.0)
    sides = contact.uneven
    if sides is None:
        length = jnp.sqrt(tangent.dot(tangent) + 1e-30)
    else:
        length = sides.length(tangent, sides.slide)
    if contact.torsion is not None and couple is not None:
        couple = torsional_friction.within(contact.torsion, contact.normal, sides, couple, normal)
    bound = contact.friction * normal
    return ContactImpulse(normal, tangent * jnp.minimum(bound / length, 1.0), couple)


def square(contact: ContactRows, change: ContactImpulse) -> jax.Array:
    """Return the square of a change of impulses in the metric of their steps, (pairs, batch)."""
    step, turn = contact.step
    normal, tangent, couple = change
    found = normal * normal * (1.0 / step) + tangent.dot(tangent) * (1.0 / (ACROSS * turn))
    if contact.torsion is not None and couple is not None:
        found = found + torsional_friction.square(contact.torsion, contact.normal, couple)
    return sum_first(found)[0]


def over_step(contact: ContactRows, impulse: ContactImpulse) -> ContactImpulse:
    """The share of impulses that moves the links during the step."""
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
    """Adds the contacts' impulses to the momenta of the links, by group; None where none is."""
    out = list(momenta)
    for contact, impulse, both in zip(contacts, impulses, sides, strict=True):
        force = contact.normal * impulse.normal + impulse.tangent
        for sign, side, arm in zip((-1.0, 1.0), both, contact.arms, strict=True):
            if _is_world(side):
                continue
            torque = arm.cross(force)
            torque = torque if impulse.couple is None else torque + impulse.couple
            wrench = Spatial(torque, force)
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
    """Impulses of all contacts on the second links, world axes, (n_contacts, 3, batch)."""
    tables = [jnp.zeros((0, 3, batch), dtype)]
    for contact, impulse in zip(contacts, impulses, strict=True):
        force = contact.normal * impulse.normal + impulse.tangent
        tables.append(stack([x.reshape(-1, x.shape[-1]) for x in force]))
    return jnp.concatenate(tables)
