"""Impulses at contacts and joint limits, by sweeps over all of them against the whole trees.

Each contact's normal velocity is held to what separation, restitution and Baumgarte's correction
ask for, and its friction to the cone. A sweep moves every impulse towards that with the inertia
which the contact sees through all joints, shared between the points of a link, and then lets
all trees respond.

Source: Moreau's time stepping and Gauss-Seidel contact solvers in their Jacobi form, Acary and
Brogliato (2008), Numerical Methods for Nonsmooth Dynamical Systems, chapter 13.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.colliders.pairs import Contacts
from brax.components import Vec3, norm, rows, sqrt, tangents
from brax.spatial import Spatial, Sym6
from brax.tree import sum_rows

RELAXATION = 0.9
"""Share of the way that one sweep moves an impulse; below 1, since all move at once."""


class Impulse(NamedTuple):
    """Impulse at each contact on the second link, along its normal and tangents [N s]."""

    normal: jax.Array
    tangent1: jax.Array
    tangent2: jax.Array


class Row(NamedTuple):
    """What the sweeps need of one contact point of each pair."""

    axes: tuple[Vec3, Vec3, Vec3]
    """Normal and tangents."""
    point: Vec3
    links: tuple[tuple[int, ...], tuple[int, ...]]
    """Positions of the two links, -1 for the world."""
    step: tuple[jax.Array, jax.Array, jax.Array]
    """Impulse per unit of velocity error, along each axis."""
    target: jax.Array
    """Least normal velocity."""
    friction: jax.Array


def _at(spatial: Spatial, links: tuple[int, ...], point: Vec3, origin: Vec3) -> Vec3 | None:
    """Velocity of the links at the points; None if all are the world."""
    if all(link < 0 for link in links):
        return None
    ang, lin = (_rows_or_zero(part, links) for part in spatial)
    return lin + ang.cross(point - _rows_or_zero(origin, links))


def _rows_or_zero(v: Vec3, links: tuple[int, ...]) -> Vec3:
    """Rows at positions, zero for the world."""
    if all(link >= 0 for link in links):
        return rows(v, links)
    return Vec3(
        *(
            rows(jnp.concatenate([jnp.zeros_like(a[:1]), a]), [link + 1 for link in links])
            for a in v
        )
    )


def relative_velocity(row: Row, velocities: Spatial, origin: Vec3) -> Vec3:
    """Velocity of the second link relative to the first at the contact, along its axes."""
    first, second = (_at(velocities, links, row.point, origin) for links in row.links)
    if first is None or second is None:
        v = second if second is not None else -first  # type: ignore[operator]
    else:
        v = second - first
    return Vec3(*(v.dot(axis) for axis in row.axes))


def _seen_mobility(
    links: tuple[int, ...], axis: Vec3, point: Vec3, origin: Vec3, mobility: Sym6
) -> jax.Array:
    """Velocity per unit of impulse along an axis at a point of the links; the world has none."""
    moving = [link for link in links if link >= 0]
    if not moving:
        return jnp.zeros_like(axis.x)
    pick = [max(link, 0) for link in links]
    arm = (point - rows(origin, pick)).cross(axis)
    wrench = Spatial(arm, axis)
    seen = wrench.dot(rows(mobility, pick).mul(wrench))
    if len(moving) == len(links):
        return seen
    mask = jnp.array([[float(link >= 0)] for link in links], seen.dtype)
    return seen * mask


def prepare(
    found: Contacts,
    links: tuple[tuple[int, ...], tuple[int, ...]],
    mobility: Sym6,
    origin: Vec3,
    before: Spatial,
    free: Spatial,
    erp: jax.Array,
    dt: jax.Array,
) -> tuple[Row, jax.Array]:
    """Sets a contact up for the sweeps.

    Args:
        found: one contact point of each pair.
        links: positions of the pairs' links, -1 for the world.
        mobility: inverse inertia of the links.
        origin: the common point of each link's tree.
        before: velocities at the start of the step, about the common point.
        free: velocities at its end without contact.
        erp: share of a penetration that is taken back in a step.
        dt: time step.

    Returns:
        The row, and where it is about to touch (1) or not (0).
    """
    touch = found.touch
    axes = (touch.normal, *tangents(touch.normal))
    row = Row(axes, touch.pos, links, (), touch.dist, found.friction)  # type: ignore[arg-type]
    approach = -relative_velocity(row, before, origin).x
    normal_free = relative_velocity(row, free, origin).x
    reach = -touch.dist / dt
    hits = normal_free < reach
    push = jnp.where(touch.dist < 0, erp * reach, reach)
    bounce = found.elasticity * approach
    target = jnp.where(hits & (bounce > 0), jnp.maximum(push, bounce), push)
    seen = [
        sum(_seen_mobility(side, axis, touch.pos, origin, mobility) for side in links)
        for axis in axes
    ]
    step = tuple(RELAXATION / jnp.maximum(s, 1e-12) for s in seen)
    return row._replace(step=step, target=target), hits.astype(target.dtype)


def share(rows_: list[Row], hits: list[jax.Array], n: int) -> list[Row]:
    """Divides each contact's steps by the number of active contacts on its busier link."""
    counts = sum(
        (
            sum_rows(hit, tuple(link for link in side), n)
            for row, hit in zip(rows_, hits, strict=True)
            for side in row.links
            if any(link >= 0 for link in side)
        ),
        start=jnp.zeros((n, 1)),
    )
    out = []
    for row in rows_:
        busy = jnp.ones((1, 1))
        for side in row.links:
            if any(link >= 0 for link in side):
                busy = jnp.maximum(busy, rows(counts, [max(link, 0) for link in side]))
        out.append(row._replace(step=tuple(s / busy for s in row.step)))
    return out


def update(row: Row, impulse: Impulse, velocity: Vec3) -> Impulse:
    """Moves a contact's impulses towards what its velocity asks for, within the friction cone."""
    normal = jnp.maximum(impulse.normal + row.step[0] * (row.target - velocity.x), 0.0)
    t1 = impulse.tangent1 - row.step[1] * velocity.y
    t2 = impulse.tangent2 - row.step[2] * velocity.z
    length = sqrt(t1 * t1 + t2 * t2)
    bound = row.friction * normal
    scale = jnp.where(length > bound, bound / jnp.where(length > bound, length, 1.0), 1.0)
    return Impulse(normal, t1 * scale, t2 * scale)


def link_impulses(rows_: list[Row], impulses: list[Impulse], origin: Vec3, n: int) -> Spatial:
    """Adds the contacts' impulses up over the links, about their common points."""
    parts = []
    for row, impulse in zip(rows_, impulses, strict=True):
        force = (
            row.axes[0] * impulse.normal
            + row.axes[1] * impulse.tangent1
            + row.axes[2] * impulse.tangent2
        )
        for sign, side in zip((-1.0, 1.0), row.links, strict=True):
            if any(link >= 0 for link in side):
                lever = row.point - _rows_or_zero(origin, side)
                wrench = Spatial(lever.cross(force), force) * sign
                parts.append(jax.tree.map(lambda x, s=side: sum_rows(x, s, n), wrench))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


__all__ = [
    "Impulse",
    "Row",
    "link_impulses",
    "norm",
    "prepare",
    "relative_velocity",
    "share",
    "update",
]
