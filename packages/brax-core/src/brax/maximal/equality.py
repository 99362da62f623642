"""What ties links or coordinates to one another beside the joints of the trees.

All ties are kept at once and exactly, whatever else acts: with `J` the ties' Jacobian and `M` the
inertia with all joints in place, a motion that misses their rates by `e` is corrected by the
impulses `(J M^-1 J^T)^-1 e`. So contacts and limits see loops as closed, and joints as tied.

Ties are hard here: `solref` and `solimp` have no effect. A weld's `torquescale` has one only at
zero: the weld then holds points, and its rows about the axes are empty.

Source: Featherstone (2008), Rigid Body Dynamics Algorithms, section 8.5.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.base import System
from brax.components import Vec3, rows
from brax.maximal import tendons as tendon_rows
from brax.maximal.actuation import rates_in_order
from brax.maximal.equality_errors import (
    EqualityErrors,
    EqualityLinks,
    and_none,
    coupled_joints,
    equality_links,
    holds_orientation,
    tendon_pairs,
)
from brax.maximal.links import PerDof, by_link, by_stack
from brax.maximal.tendons import TendonJacobian
from brax.maximal.tree_solve import GroupPivot, solve
from brax.spatial import Spatial
from brax.tree import Layout, join, sum_rows

GroupedMotion = tuple[list[Spatial], list[PerDof]]
"""Velocities of the links about their trees' common points, and rates, by group."""

EQUALITY_COMPLIANCE = 1e-6
"""Share of a tie's own mobility that it yields, so that ties that say the same are no trouble."""


class EqualitySystem(NamedTuple):
    """Ties, and what corrects a motion that misses what they ask for."""

    point: Vec3
    slopes: jax.Array
    origins: Vec3
    """The common point of each link's tree."""
    tendons: TendonJacobian | None
    motion: GroupedMotion
    """By unit impulses, the first axis the rows'."""
    inverse: jax.Array
    """Impulses per unit of missing rates, (rows, rows, batch)."""


class EqualityTargets(NamedTuple):
    """What is tied, and the rates that it is to have in a step, (rows, batch)."""

    held: EqualitySystem
    wanted: jax.Array


def equality_system(
    sys: System,
    plan: Layout,
    pivots: Sequence[GroupPivot],
    origins: Vec3,
    at: EqualityErrors,
) -> EqualitySystem:
    """Prepares to keep ties.

    Args:
        sys: the model.
        plan: the layout.
        pivots: from `factor`.
        origins: the common point of each link's tree.
        at: the ties as they stand.
    """
    held = EqualitySystem(at.point, at.slopes, origins, at.tendons, ([], []), at.apart)
    units = jnp.eye(len(at.apart), dtype=at.apart.dtype)[:, :, None]

    def respond(load: jax.Array) -> GroupedMotion:
        return solve(plan, pivots, *_pushes(sys, plan, held, load), driven=False)

    motion = jax.vmap(respond)(units)
    mobile = jax.vmap(lambda each: equality_rates(sys, plan, held, each))(motion)
    slack = EQUALITY_COMPLIANCE * _mobility(sys, equality_links(sys, plan))
    return held._replace(motion=motion, inverse=_inverse(mobile + units * slack))


def project_motion(
    sys: System,
    plan: Layout,
    held: EqualitySystem,
    motion: GroupedMotion,
    wanted: jax.Array | None = None,
) -> GroupedMotion:
    """The motion nearest to a given one, by kinetic energy, in which every tie has its rate.

    Args:
        sys: the model.
        plan: the layout.
        held: from `equality_system`.
        motion: what it would be without ties.
        wanted: the rates, (rows, batch); None for zero.
    """
    loads = equality_impulses(sys, plan, held, motion, wanted)

    def corrected(x: jax.Array, units: jax.Array) -> jax.Array:
        return x + jnp.sum(units * loads[:, None], axis=0)

    links, rates = jax.tree.map(corrected, tuple(motion), held.motion)
    return links, rates


def equality_impulses(
    sys: System,
    plan: Layout,
    held: EqualitySystem,
    motion: GroupedMotion,
    wanted: jax.Array | None = None,
) -> jax.Array:
    """The impulses of ties that turn a motion into that of `project_motion`; args as there."""
    missing = -equality_rates(sys, plan, held, motion)
    missing = missing if wanted is None else missing + wanted
    return jnp.sum(held.inverse * missing[None], axis=1)


def equality_momenta(
    sys: System, plan: Layout, held: EqualitySystem, load: jax.Array
) -> list[Spatial | None]:
    """What impulses of ties (rows, batch) add to the momenta of links that are tied at points or as
    frames, about the common points, by group."""
    return _on_links(sys, plan, equality_links(sys, plan), held, load)[0]


def equality_rates(
    sys: System, plan: Layout, held: EqualitySystem, motion: GroupedMotion
) -> jax.Array:
    """The rate of each tie in a motion, (rows, batch)."""
    tied, (links, rates) = equality_links(sys, plan), motion
    out: list[jax.Array] = []
    if tied.points:
        table = and_none(join(links))
        first, second = (rows(table, side) for side in (tied.first, tied.second))
        arm1, arm2 = (held.point - _origins(held, side) for side in (tied.first, tied.second))
        out += second.lin + second.ang.cross(arm2) - first.lin - first.ang.cross(arm1)
        ang1, ang2 = rows((first.ang, second.ang), tied.frames)
        out += (ang2 - ang1) * holds_orientation(sys, tied)
    if tied.joints:
        each = and_none(rates_in_order(sys, plan, by_stack(plan, rates)))
        start = (*sys.joint_qd_start(), sys.qd_size())
        follows, leads = (
            rows(each, [start[j] for j in side]) for side in coupled_joints(sys, tied)
        )
        out.append(follows - held.slopes[: len(tied.joints)] * leads)
    if tied.tendons:
        assert held.tendons is not None
        each = and_none(tendon_rows.rates(sys, plan, held.tendons, links, rates))
        follows, leads = (rows(each, side) for side in tendon_pairs(sys, tied))
        out.append(follows - held.slopes[len(tied.joints) :] * leads)
    return join(out)


def _pushes(
    sys: System, plan: Layout, held: EqualitySystem, load: jax.Array
) -> tuple[list[Spatial | None], list[tuple[jax.Array | None, ...]]]:
    """Impulses of ties, (rows, batch), on the links and along the degrees of freedom, by group."""
    tied = equality_links(sys, plan)
    links, used = _on_links(sys, plan, tied, held, load)
    along: list[tuple[jax.Array | None, ...]] = [(None,) * len(g.qd) for g in plan.groups]
    joints = len(tied.joints)
    if joints:
        first, second = coupled_joints(sys, tied)
        start = (*sys.joint_qd_start(), sys.qd_size())
        owner = tuple(start[j] for j in (*first, *second))
        mine = load[used : used + joints]
        values = join([mine, -held.slopes[:joints] * mine])
        table = sum_rows(values, owner, sys.qd_size() + 1)
        along = [tuple(rows(table, index) for index in g.qd) for g in plan.groups]
    if tied.tendons:
        assert held.tendons is not None
        first, second = tendon_pairs(sys, tied)
        n, mine = len(sys.tendon_names), load[used + joints :]
        values = join([mine, -held.slopes[joints:] * mine])
        pulled = tendon_rows.loads(
            sys, plan, held.tendons, sum_rows(values, (*first, *second), n + 1)[:n]
        )
        links, along = tendon_rows.summed((links, along), pulled)
    return links, along


def _on_links(
    sys: System, plan: Layout, tied: EqualityLinks, held: EqualitySystem, load: jax.Array
) -> tuple[list[Spatial | None], int]:
    """Momenta by group, none if no links are tied; and how many of the rows belong to them."""
    n, m = len(tied.points), len(tied.frames)
    if not n:
        return [None] * len(plan.groups), 0
    push = Vec3(*(load[k * n : (k + 1) * n] for k in range(3)))
    twist = Vec3(*(load[3 * n + k * m : 3 * n + (k + 1) * m] for k in range(3)))
    place = [tied.frames.index(k) if k in tied.frames else m for k in range(n)]
    twist = rows(and_none(twist * holds_orientation(sys, tied)), place)
    sides = [
        Spatial(((held.point - _origins(held, side)).cross(push) + twist) * sign, push * sign)
        for side, sign in ((tied.first, -1.0), (tied.second, 1.0))
    ]
    owner, links = (*tied.first, *tied.second), len(plan.order)
    momenta = jax.tree.map(lambda x: sum_rows(x, owner, links + 1)[:links], join(sides))
    return list(by_link(plan, momenta)), 3 * (n + m)


def _origins(held: EqualitySystem, side: Sequence[int]) -> Vec3:
    """The common points of links' trees; anything for the world, which stands still."""
    if held.origins.x.shape[0] == 1:
        return held.origins
    return rows(held.origins, [min(p, len(held.origins.x) - 1) for p in side])


def _mobility(sys: System, tied: EqualityLinks) -> jax.Array:
    """What each tie's rate changes by a unit impulse, on average over poses, (rows, 1 or batch)."""
    weight = sys.equality.invweight
    frames = [tied.points[k] for k in tied.frames]
    each = [(tied.points, 0)] * 3 + [(frames, 1)] * 3 + [(tied.joints, 0), (tied.tendons, 0)]
    return jnp.concatenate([rows(weight, index)[:, k] for index, k in each])


def _inverse(matrix: jax.Array) -> jax.Array:
    """The inverse of symmetric positive definite matrices (n, n, batch), by Gauss and Jordan."""
    n = len(matrix)

    def eliminate(k: jax.Array, m: jax.Array) -> jax.Array:
        mine = (jnp.arange(n) == k)[:, None]
        pivot = 1.0 / m[k, k]
        row, column = m[k] * pivot, m[:, k]
        rest = m - column[:, None] * row[None]
        rest = jnp.where(mine[:, None], row[None], rest)
        swept = jnp.where(mine, pivot, -column * pivot)
        return jnp.where(mine[None], swept[:, None], rest)

    return jax.lax.fori_loop(0, n, eliminate, matrix)
