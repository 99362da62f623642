"""Hard equality constraints: `connect`, `weld`, and couplings of joints and of tendons.

All of them are satisfied at once and exactly, whatever else acts. With J the Jacobian of the
equality rows and M the inertia with all joints in place, a motion that misses their rates by e is
corrected by the impulses (J M⁻¹ Jᵀ)⁻¹ e. So contacts and limits see loops as closed and joints as
coupled.

`solref` and `solimp` have no effect here. A weld's `torquescale` has an effect only at zero: then
it constrains points only, and its rows about the axes are empty.

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
    equality_errors,
    equality_links,
    holds_orientation,
)
from brax.maximal.links import TreesAtState, by_link, by_stack
from brax.spatial import Spatial
from brax.tree import PerDof, join, sum_rows
from brax.tree_solve import GroupPivot, solve

GroupedMotion = tuple[list[Spatial], list[PerDof]]
"""Velocities of the links about their trees' common points, and rates, by group."""

EQUALITY_COMPLIANCE = 1e-6
"""Compliance of an equality as a share of its inverse weight. It keeps redundant equalities
solvable."""


class EqualitySystem(NamedTuple):
    """The equality rows at a state, and the correction of a motion that misses their rates."""

    errors: EqualityErrors
    """The errors, with the points and slopes at which the constraints act."""
    motion: GroupedMotion
    """M⁻¹ Jᵀ: the motion by a unit impulse along each row. The first axis is the rows'."""
    inverse: jax.Array
    """(J M⁻¹ Jᵀ)⁻¹: impulses per unit of missing rates, (rows, rows, batch)."""


class EqualityTargets(NamedTuple):
    """The equality rows with the rates that they are to have in a step."""

    held: EqualitySystem
    """The rows."""
    wanted: jax.Array
    """Their rates, (rows, batch)."""


def equality_system(at: TreesAtState, pivots: Sequence[GroupPivot]) -> EqualitySystem:
    """Return the equality rows at a state with their inverse; `pivots` are from `factor`."""
    errors = equality_errors(at)
    prepared = EqualitySystem(errors, ([], []), errors.position)
    units = jnp.eye(len(errors.position), dtype=errors.position.dtype)[:, :, None]

    def respond(load: jax.Array) -> GroupedMotion:
        return solve(at.plan, pivots, *_pushes(at, prepared, load), driven=False)

    # One elimination serves all rows: each column of M⁻¹ Jᵀ is one solve with a unit impulse.
    motion = jax.vmap(respond)(units)
    mobile = jax.vmap(lambda each: equality_rates(at, prepared, each))(motion)
    # Equalities that say the same make J M⁻¹ Jᵀ singular. A compliance of 1e-6 of each row's own
    # mobility keeps it invertible.
    slack = EQUALITY_COMPLIANCE * _mobility(at.sys, equality_links(at.sys, at.plan))
    return prepared._replace(motion=motion, inverse=_inverse(mobile + units * slack))


def project_motion(
    at: TreesAtState, prepared: EqualitySystem, motion: GroupedMotion, wanted: jax.Array | None
) -> GroupedMotion:
    """Return the motion nearest to a given one, by kinetic energy, with the wanted equality rates.

    Args:
        at: the state of `prepared`, which is from `equality_system`.
        prepared: the rows.
        motion: the motion without equalities.
        wanted: the rates, (rows, batch); None for zero.
    """
    loads = _impulses(at, prepared, motion, wanted)

    def corrected(x: jax.Array, units: jax.Array) -> jax.Array:
        # Gauss's principle: the correction M⁻¹ Jᵀ lambda is the smallest in the norm of M.
        return x + jnp.sum(units * loads[:, None], axis=0)

    links, rates = jax.tree.map(corrected, tuple(motion), prepared.motion)
    return links, rates


def _impulses(
    at: TreesAtState, prepared: EqualitySystem, motion: GroupedMotion, wanted: jax.Array | None
) -> jax.Array:
    """Return the impulses along the rows; the arguments are those of `project_motion`."""
    missing = -equality_rates(at, prepared, motion)
    missing = missing if wanted is None else missing + wanted
    return jnp.sum(prepared.inverse * missing[None], axis=1)


def equality_momenta(
    at: TreesAtState, prepared: EqualitySystem, motion: GroupedMotion, wanted: jax.Array | None
) -> list[Spatial | None]:
    """Return the momenta that `project_motion`, with the same arguments, adds to links, by group.

    They are about the common points. Couplings of joints and fixed tendons add none.
    """
    return list(_pushes(at, prepared, _impulses(at, prepared, motion, wanted)).links)


def equality_rates(at: TreesAtState, prepared: EqualitySystem, motion: GroupedMotion) -> jax.Array:
    """Return J times a motion: the rate of each equality row, (rows, batch)."""
    equalities, (links, rates) = equality_links(at.sys, at.plan), motion
    out: list[jax.Array] = []
    if equalities.points:
        table = and_none(join(links))
        first, second = (rows(table, side) for side in (equalities.first, equalities.second))
        arm1, arm2 = _arms(at, equalities, prepared)
        # Rows come in the order of `EqualityErrors.position`: points along x, y and z, frames about
        # them, joints, tendons.
        out += second.lin + second.ang.cross(arm2) - first.lin - first.ang.cross(arm1)
        ang1, ang2 = rows((first.ang, second.ang), equalities.frames)
        # A weld whose `torquescale` is zero keeps its rows about the axes, multiplied by zero: the
        # layout does not depend on numbers.
        out += (ang2 - ang1) * holds_orientation(at.sys, equalities)
    for coupling, slopes in zip(equalities.couplings, prepared.errors.slopes, strict=True):
        if coupling.kind == "joint":
            each = rates_in_order(at.sys, at.plan, by_stack(at.plan, rates))
        else:
            assert prepared.errors.tendons is not None
            each = tendon_rows.rates(at, prepared.errors.tendons, links, rates)
        follows, leads = (rows(and_none(each), side) for side in coupling.rates)
        # The rate of y - p(x) is dy/dt - p'(x) dx/dt.
        out.append(follows - slopes * leads)
    return join(out)


def _pushes(
    at: TreesAtState, prepared: EqualitySystem, load: jax.Array
) -> tendon_rows.GroupedLoads:
    """Return Jᵀ times impulses (rows, batch), on links and along degrees of freedom, by group."""
    equalities, plan = equality_links(at.sys, at.plan), at.plan
    links, used = _on_links(at, equalities, prepared, load)
    found = tendon_rows.GroupedLoads(links, [(None,) * len(g.qd) for g in plan.groups])
    for coupling, slopes in zip(equalities.couplings, prepared.errors.slopes, strict=True):
        mine = load[used : used + len(coupling.equalities)]
        used += len(coupling.equalities)
        # The row of a coupling is 1 at the first coordinate and minus the slope at the second.
        values, (first, second) = join([mine, -slopes * mine]), coupling.rates
        if coupling.kind == "joint":
            table = sum_rows(values, (*first, *second), at.sys.qd_size() + 1)
            along = [tuple(rows(table, index) for index in g.qd) for g in plan.groups]
            found = tendon_rows.GroupedLoads(links, along)
        else:
            assert prepared.errors.tendons is not None
            n = len(at.sys.tendon_names)
            pulls = sum_rows(values, (*first, *second), n + 1)[:n]
            pulled = tendon_rows.loads(at, prepared.errors.tendons, pulls)
            found = tendon_rows.summed(found, pulled)
    return found


def _on_links(
    at: TreesAtState, equalities: EqualityLinks, prepared: EqualitySystem, load: jax.Array
) -> tuple[list[Spatial | None], int]:
    """Return momenta by group, None if no links are coupled, and the number of rows used."""
    n, m = len(equalities.points), len(equalities.frames)
    if not n:
        return [None] * len(at.plan.groups), 0
    push = Vec3(*(load[k * n : (k + 1) * n] for k in range(3)))
    twist = Vec3(*(load[3 * n + k * m : 3 * n + (k + 1) * m] for k in range(3)))
    # A point without a frame takes the row of zeros: its twist is none.
    place = [equalities.frames.index(k) if k in equalities.frames else m for k in range(n)]
    twist = rows(and_none(twist * holds_orientation(at.sys, equalities)), place)
    # The second link receives the impulse, the first one its opposite, both at the same midpoint:
    # no net momentum.
    arms = zip(_arms(at, equalities, prepared), (-1.0, 1.0), strict=True)
    sides = [Spatial((arm.cross(push) + twist) * sign, push * sign) for arm, sign in arms]
    owner, links = (*equalities.first, *equalities.second), len(at.plan.order)
    # The world is the last owner; what it receives is dropped.
    momenta = jax.tree.map(lambda x: sum_rows(x, owner, links + 1)[:links], join(sides))
    return list(by_link(at.plan, momenta)), 3 * (n + m)


def _arms(at: TreesAtState, equalities: EqualityLinks, prepared: EqualitySystem) -> list[Vec3]:
    """Return the points relative to the common points of first and second links' trees."""
    last = len(at.origins.x) - 1
    # The world is at rest: any point does. With one tree there is one common point.
    return [
        prepared.errors.point - rows(at.origins, [min(p, last) for p in side] if last else [0])
        for side in (equalities.first, equalities.second)
    ]


def _mobility(sys: System, equalities: EqualityLinks) -> jax.Array:
    """Return the inverse weight of each equality row, on average over poses, (rows, 1 or batch)."""
    weight = sys.equality.invweight
    # The order of the rows: three axes for points, three for frames, then the couplings.
    frames = [equalities.points[k] for k in equalities.frames]
    each = [(equalities.points, 0)] * 3 + [(frames, 1)] * 3
    each += [(coupling.equalities, 0) for coupling in equalities.couplings]
    return jnp.concatenate([rows(weight, index)[:, k] for index, k in each])


def _inverse(matrix: jax.Array) -> jax.Array:
    """Return the inverse of symmetric positive definite matrices (n, n, batch), by Gauss-Jordan."""
    n = len(matrix)

    # Positive definite: no pivoting. The loop over k keeps the program's size independent of n.
    def eliminate(k: jax.Array, m: jax.Array) -> jax.Array:
        mine = (jnp.arange(n) == k)[:, None]
        pivot = 1.0 / m[k, k]
        row, column = m[k] * pivot, m[:, k]
        rest = m - column[:, None] * row[None]
        rest = jnp.where(mine[:, None], row[None], rest)
        # The k-th column is replaced in place by that of the inverse, so that no second matrix is
        # carried along.
        swept = jnp.where(mine, pivot, -column * pivot)
        return jnp.where(mine[None], swept[:, None], rest)

    return jax.lax.fori_loop(0, n, eliminate, matrix)
