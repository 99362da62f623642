"""Impulses at contacts, by sweeps over all of them against the whole trees.

Each contact's normal velocity is held to what separation, restitution and Baumgarte's correction
ask for, and its friction to the cone. A sweep moves every impulse towards that with the inertia
which the contact sees through all joints, shared between the points of a link, and then lets
all trees respond.

Source: Moreau's time stepping and Gauss-Seidel contact solvers in their Jacobi form, Acary and
Brogliato (2008), Numerical Methods for Nonsmooth Dynamical Systems, chapter 13.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from brax.base import System
from brax.colliders.pairs import Contacts
from brax.components import Vec3, rows, sqrt, tangents
from brax.fusion import fence
from brax.spatial import Spatial, Sym6
from brax.tree import Layout, join, sum_rows

T = TypeVar("T")

RELAXATION = 0.9
"""Share of the way that one sweep moves an impulse; below 1, since all move at once."""

Sides = tuple[tuple[int, ...], tuple[int, ...]]
"""Positions of the first and the second link of each pair in the layout, -1 for the world."""


class Impulse(NamedTuple):
    """Impulse at each contact on the second link, along its normal and tangents [N s]."""

    normal: jax.Array
    tangent1: jax.Array
    tangent2: jax.Array


class Rows(NamedTuple):
    """What the sweeps need of a group's contacts, components (points, pairs, batch)."""

    axes: tuple[Vec3, Vec3, Vec3]
    """Normal and tangents."""
    arms: tuple[Vec3, Vec3]
    """The contact from the common point of each side's tree."""
    step: tuple[jax.Array, ...]
    """Impulse per unit of velocity error, along each axis."""
    target: jax.Array
    """Least normal velocity."""
    friction: jax.Array


def _is_world(side: tuple[int, ...]) -> bool:
    return all(link < 0 for link in side)


def _pick(values: Sequence[jax.Array], side: tuple[int, ...], plan: Layout) -> jax.Array:
    """Rows of values kept by group, at positions; the world's are zero."""
    for value, group in zip(values, plan.groups, strict=True):
        if all(link in group.links for link in side):
            return rows(value, [link - group.links[0] for link in side])
    every = join(list(values))
    if min(side) >= 0:
        return rows(every, side)
    return rows(jnp.concatenate([jnp.zeros_like(every[:1]), every]), [link + 1 for link in side])


def pick(values: Sequence[T], side: tuple[int, ...], plan: Layout) -> T:
    """Rows of trees kept by group, at positions."""
    return jax.tree.map(lambda *v: _pick(v, side, plan), *values)


def relative_velocity(
    contact: Rows, velocities: Sequence[Spatial], sides: Sides, plan: Layout
) -> Vec3:
    """Velocity of the second link relative to the first at the contacts, along their axes."""
    total = None
    for sign, side, arm in zip((-1.0, 1.0), sides, contact.arms, strict=True):
        if not _is_world(side):
            moving = pick(velocities, side, plan)
            v = (moving.lin + moving.ang.cross(arm)) * sign
            total = v if total is None else total + v
    assert total is not None
    total = fence(total)
    return Vec3(*(total.dot(axis) for axis in contact.axes))


def _seen_mobility(
    contact: Rows, mobility: Sequence[Sym6], sides: Sides, plan: Layout
) -> list[jax.Array]:
    """Velocity per unit of impulse along each axis, with the joints in place."""
    total = [jnp.zeros_like(contact.target)] * 3
    for side, arm in zip(sides, contact.arms, strict=True):
        if not _is_world(side):
            mobile = fence(pick(mobility, side, plan))
            for k, axis in enumerate(contact.axes):
                wrench = fence(Spatial(arm.cross(axis), axis))
                total[k] = total[k] + wrench.dot(mobile.mul(wrench))
    return fence(total)


def prepare(
    found: Sequence[Contacts],
    sides: Sequence[Sides],
    plan: Layout,
    mobility: Sequence[Sym6],
    origins: Sequence[Vec3],
    before: Sequence[Spatial],
    sys: System,
    dt: jax.Array,
) -> list[Rows]:
    """Sets the contacts up for the sweeps.

    Args:
        found: the contact points, by collision group.
        sides: the pairs' links, by collision group.
        plan: the layout.
        mobility: inverse inertia of the links, by group of links; likewise below.
        origins: the common point of each link's tree.
        before: velocities at the start of the step, about the common point.
        sys: the model.
        dt: time step.
    """
    ready = [
        _prepare(*each, plan, mobility, origins, before, sys, dt)
        for each in zip(found, sides, strict=True)
    ]
    counts = _counts([hits for _, hits in ready], sides, plan)
    return [
        _shared(contact, counts, side, plan)
        for (contact, _), side in zip(ready, sides, strict=True)
    ]


def _prepare(
    found: Contacts,
    sides: Sides,
    plan: Layout,
    mobility: Sequence[Sym6],
    origins: Sequence[Vec3],
    before: Sequence[Spatial],
    sys: System,
    dt: jax.Array,
) -> tuple[Rows, jax.Array]:
    """A group's rows, and which of its points are about to touch (1) or not (0)."""
    touch = found.touch
    axes = fence((touch.normal, *tangents(touch.normal)))
    arms = tuple(
        touch.pos if _is_world(side) else touch.pos - pick(origins, side, plan) for side in sides
    )
    contact = Rows(axes, fence(arms), (), touch.dist, found.friction)  # type: ignore[arg-type]
    approach = -relative_velocity(contact, before, sides, plan).x
    reach = -touch.dist / dt
    gravity = sqrt(jnp.sum(sys.opt.gravity * sys.opt.gravity, axis=0, keepdims=True))
    hits = -approach - gravity * dt < reach
    push = jnp.where(touch.dist < 0, sys.baumgarte_erp * reach, reach)
    bounce = found.elasticity * approach
    target = jnp.where(hits & (bounce > 0), jnp.maximum(push, bounce), push)
    seen = tuple(_seen_mobility(contact, mobility, sides, plan))
    return fence((contact._replace(step=seen, target=target), hits.astype(target.dtype)))


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


def _shared(contact: Rows, counts: Sequence[jax.Array | None], sides: Sides, plan: Layout) -> Rows:
    """Rows whose steps are divided by the contacts on the busier of their two links."""
    busy = jnp.ones_like(contact.target[0])
    known = [
        jnp.zeros((len(g.links), 1), busy.dtype) if c is None else c
        for c, g in zip(counts, plan.groups, strict=True)
    ]
    for side in sides:
        if not _is_world(side):
            busy = jnp.maximum(busy, _pick(known, side, plan))
    step = tuple(RELAXATION / jnp.maximum(s * busy, 1e-12) for s in contact.step)
    return fence(contact._replace(step=step))


def _spread(value: jax.Array, side: tuple[int, ...], plan: Layout) -> list[tuple[int, jax.Array]]:
    """Sums what belongs to the points of each pair over the links of one side, by group."""
    per_pair = jnp.sum(value, axis=0)
    out = []
    for index, group in enumerate(plan.groups):
        mine = [k for k, link in enumerate(side) if link in group.links]
        if mine:
            owner = tuple(side[k] - group.links[0] for k in mine)
            out.append((index, sum_rows(rows(per_pair, mine), owner, len(group.links))))
    return out


def update(contact: Rows, impulse: Impulse, velocity: Vec3, begun: jax.Array) -> Impulse:
    """Moves the impulses towards what the velocities ask for, within the friction cone.

    Args:
        contact: the contacts.
        impulse: their impulses so far.
        velocity: their relative velocities, along their axes.
        begun: 0 before there are velocities to go by, then 1.
    """
    normal = jnp.maximum(impulse.normal + contact.step[0] * (contact.target - velocity.x), 0.0)
    t1 = impulse.tangent1 - contact.step[1] * velocity.y
    t2 = impulse.tangent2 - contact.step[2] * velocity.z
    length = sqrt(t1 * t1 + t2 * t2)
    bound = contact.friction * normal
    slips = length > bound
    scale = begun * jnp.where(slips, bound / jnp.where(slips, length, 1.0), 1.0)
    return Impulse(normal * begun, t1 * scale, t2 * scale)


def add_impulses(
    momenta: Sequence[Spatial],
    contacts: Sequence[Rows],
    impulses: Sequence[Impulse],
    sides: Sequence[Sides],
    plan: Layout,
) -> list[Spatial]:
    """Adds the contacts' impulses to the momenta of the links, by group."""
    out = list(momenta)
    for contact, impulse, both in zip(contacts, impulses, sides, strict=True):
        normal, first, second = contact.axes
        force = fence(
            normal * impulse.normal + first * impulse.tangent1 + second * impulse.tangent2
        )
        for sign, side, arm in zip((-1.0, 1.0), both, contact.arms, strict=True):
            if _is_world(side):
                continue
            wrench = Spatial(arm.cross(force), force) * sign
            leaves, structure = jax.tree.flatten(wrench)
            spread = [_spread(leaf, side, plan) for leaf in leaves]
            for parts in zip(*spread, strict=True):
                index = parts[0][0]
                out[index] = out[index] + jax.tree.unflatten(structure, [part for _, part in parts])
    return fence(out)
