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
    coupled_joints,
    equality_links,
    holds_orientation,
    tendon_pairs,
)
from brax.maximal.links import PerDof, TreesAtState, by_link, by_stack
from brax.maximal.tendons import TendonJacobian
from brax.maximal.tree_solve import GroupPivot, solve
from brax.spatial import Spatial
from brax.tree import Layout, join, sum_rows

GroupedMotion = tuple[list[Spatial], list[PerDof]]
"""Velocities of the links about their trees' common points, and rates, by group."""

EQUALITY_COMPLIANCE = 1e-6
"""Compliance of an equality as a share of its inverse weight. It keeps redundant equalities
solvable."""


class EqualitySystem(NamedTuple):
    """The equality rows at a state, and the correction of a motion that misses their rates."""

    point: Vec3
    """Points at which `connect` and `weld` act, world axes."""
    slopes: jax.Array
    """Slopes of the couplings' polynomials, of joints and then of tendons."""
    origins: Vec3
    """The common point of each link's tree."""
    tendons: TendonJacobian | None
    """The tendons; None if none is coupled."""
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


def equality_system(
    at: TreesAtState, pivots: Sequence[GroupPivot], errors: EqualityErrors
) -> EqualitySystem:
    """Return the equality rows with their inverse, for `project_motion`.

    Args:
        at: the state.
        pivots: from `factor`.
        errors: the equality errors at the state.
    """
    sys, plan = at.sys, at.plan
    prepared = EqualitySystem(
        *(errors.point, errors.slopes, at.origins, errors.tendons, ([], []), errors.position)
    )
    units = jnp.eye(len(errors.position), dtype=errors.position.dtype)[:, :, None]

    def respond(load: jax.Array) -> GroupedMotion:
        return solve(plan, pivots, *_pushes(sys, plan, prepared, load), driven=False)

    # One elimination serves all rows: each column of M⁻¹ Jᵀ is one solve with a unit impulse.
    motion = jax.vmap(respond)(units)
    mobile = jax.vmap(lambda each: equality_rates(sys, plan, prepared, each))(motion)
    # Equalities that say the same make J M⁻¹ Jᵀ singular. A compliance of 1e-6 of each row's own
    # mobility keeps it invertible.
    slack = EQUALITY_COMPLIANCE * _mobility(sys, equality_links(sys, plan))
    return prepared._replace(motion=motion, inverse=_inverse(mobile + units * slack))


def project_motion(
    sys: System,
    plan: Layout,
    prepared: EqualitySystem,
    motion: GroupedMotion,
    wanted: jax.Array | None = None,
) -> GroupedMotion:
    """Return the motion nearest to a given one, by kinetic energy, with the wanted equality rates.

    Args:
        sys: the model.
        plan: the layout.
        prepared: from `equality_system`.
        motion: the motion without equalities.
        wanted: the rates, (rows, batch); None for zero.
    """
    loads = equality_impulses(sys, plan, prepared, motion, wanted)

    def corrected(x: jax.Array, units: jax.Array) -> jax.Array:
        # Gauss's principle: the correction M⁻¹ Jᵀ lambda is the smallest in the norm of M.
        return x + jnp.sum(units * loads[:, None], axis=0)

    links, rates = jax.tree.map(corrected, tuple(motion), prepared.motion)
    return links, rates


def equality_impulses(
    sys: System,
    plan: Layout,
    prepared: EqualitySystem,
    motion: GroupedMotion,
    wanted: jax.Array | None = None,
) -> jax.Array:
    """Return the impulses of `project_motion`, which has the same arguments."""
    missing = -equality_rates(sys, plan, prepared, motion)
    missing = missing if wanted is None else missing + wanted
    return jnp.sum(prepared.inverse * missing[None], axis=1)


def equality_momenta(
    sys: System, plan: Layout, prepared: EqualitySystem, load: jax.Array
) -> list[Spatial | None]:
    """Return the momenta that equality impulses (rows, batch) add to links, by group.

    They are about the common points. Couplings of joints and fixed tendons add none.
    """
    return list(_pushes(sys, plan, prepared, load).links)


def equality_rates(
    sys: System, plan: Layout, prepared: EqualitySystem, motion: GroupedMotion
) -> jax.Array:
    """Return J times a motion: the rate of each equality row, (rows, batch)."""
    equalities, (links, rates) = equality_links(sys, plan), motion
    out: list[jax.Array] = []
    if equalities.points:
        table = and_none(join(links))
        first, second = (rows(table, side) for side in (equalities.first, equalities.second))
        arm1, arm2 = (
            prepared.point - _origins(prepared, side)
            for side in (equalities.first, equalities.second)
        )
        # Rows come in the order of `EqualityErrors.position`: points along x, y and z, frames about
        # them, joints, tendons.
        out += second.lin + second.ang.cross(arm2) - first.lin - first.ang.cross(arm1)
        ang1, ang2 = rows((first.ang, second.ang), equalities.frames)
        # A weld whose `torquescale` is zero keeps its rows about the axes, multiplied by zero: the
        # layout does not depend on numbers.
        out += (ang2 - ang1) * holds_orientation(sys, equalities)
    if equalities.joints:
        each = and_none(rates_in_order(sys, plan, by_stack(plan, rates)))
        # An index past the last joint reads the row of zeros: a joint that is coupled to none.
        start = (*sys.joint_qd_start(), sys.qd_size())
        # The rate of y - p(x) is dy/dt - p'(x) dx/dt.
        follows, leads = (
            rows(each, [start[j] for j in side]) for side in coupled_joints(sys, equalities)
        )
        out.append(follows - prepared.slopes[: len(equalities.joints)] * leads)
    if equalities.tendons:
        assert prepared.tendons is not None
        each = and_none(tendon_rows.rates(sys, plan, prepared.tendons, links, rates))
        follows, leads = (rows(each, side) for side in tendon_pairs(sys, equalities))
        out.append(follows - prepared.slopes[len(equalities.joints) :] * leads)
    return join(out)


def _pushes(
    sys: System, plan: Layout, prepared: EqualitySystem, load: jax.Array
) -> tendon_rows.GroupedLoads:
    """Return Jᵀ times impulses (rows, batch), on links and along degrees of freedom, by group."""
    equalities = equality_links(sys, plan)
    links, used = _on_links(sys, plan, equalities, prepared, load)
    along: list[tuple[jax.Array | None, ...]] = [(None,) * len(g.qd) for g in plan.groups]
    joints = len(equalities.joints)
    if joints:
        first, second = coupled_joints(sys, equalities)
        start = (*sys.joint_qd_start(), sys.qd_size())
        owner = tuple(start[j] for j in (*first, *second))
        mine = load[used : used + joints]
        # The row of a coupling is 1 at the first coordinate and minus the slope at the second.
        values = join([mine, -prepared.slopes[:joints] * mine])
        table = sum_rows(values, owner, sys.qd_size() + 1)
        along = [tuple(rows(table, index) for index in g.qd) for g in plan.groups]
    if equalities.tendons:
        assert prepared.tendons is not None
        first, second = tendon_pairs(sys, equalities)
        n, mine = len(sys.tendon_names), load[used + joints :]
        values = join([mine, -prepared.slopes[joints:] * mine])
        pulled = tendon_rows.loads(
            sys, plan, prepared.tendons, sum_rows(values, (*first, *second), n + 1)[:n]
        )
        return tendon_rows.summed(tendon_rows.GroupedLoads(links, along), pulled)
    return tendon_rows.GroupedLoads(links, along)


def _on_links(
    sys: System, plan: Layout, equalities: EqualityLinks, prepared: EqualitySystem, load: jax.Array
) -> tuple[list[Spatial | None], int]:
    """Return momenta by group, None if no links are coupled, and the number of rows used."""
    n, m = len(equalities.points), len(equalities.frames)
    if not n:
        return [None] * len(plan.groups), 0
    push = Vec3(*(load[k * n : (k + 1) * n] for k in range(3)))
    twist = Vec3(*(load[3 * n + k * m : 3 * n + (k + 1) * m] for k in range(3)))
    # A point without a frame takes the row of zeros: its twist is none.
    place = [equalities.frames.index(k) if k in equalities.frames else m for k in range(n)]
    twist = rows(and_none(twist * holds_orientation(sys, equalities)), place)
    # The second link receives the impulse, the first one its opposite, both at the same midpoint:
    # no net momentum.
    sides = [
        Spatial(
            ((prepared.point - _origins(prepared, side)).cross(push) + twist) * sign, push * sign
        )
        for side, sign in ((equalities.first, -1.0), (equalities.second, 1.0))
    ]
    owner, links = (*equalities.first, *equalities.second), len(plan.order)
    # The world is the last owner; what it receives is dropped.
    momenta = jax.tree.map(lambda x: sum_rows(x, owner, links + 1)[:links], join(sides))
    return list(by_link(plan, momenta)), 3 * (n + m)


def _origins(prepared: EqualitySystem, side: Sequence[int]) -> Vec3:
    """Return the common points of links' trees; any one for the world, which is at rest."""
    if prepared.origins.x.shape[0] == 1:
        return prepared.origins
    return rows(prepared.origins, [min(p, len(prepared.origins.x) - 1) for p in side])


def _mobility(sys: System, equalities: EqualityLinks) -> jax.Array:
    """Return the inverse weight of each equality row, on average over poses, (rows, 1 or batch)."""
    weight = sys.equality.invweight
    # The order of the rows: three axes for points, three for frames, then the couplings.
    frames = [equalities.points[k] for k in equalities.frames]
    each = (
        [(equalities.points, 0)] * 3
        + [(frames, 1)] * 3
        + [(equalities.joints, 0), (equalities.tendons, 0)]
    )
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
