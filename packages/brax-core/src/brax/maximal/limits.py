"""Limits and dry friction of joints and tendons, as the rows that `spring` and `positional` solve.

Each row is a quantity with a rate, a lower and an upper bound of that rate, and a largest impulse.
The quantity is a joint's coordinate, the angle of a ball joint, or a tendon's length. A limit has
bounds from the distance to it and no largest impulse. Dry friction asks for a rate of zero with an
impulse of at most the friction loss. Rows are (limits, batch), those of joints first.

Source: Mueller et al. (2020), Detailed Rigid Body Simulation with Extended Position Based Dynamics,
section 3.4: joint limits.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.base import System
from brax.components import rows, total
from brax.impacts import MAX_SPEED
from brax.maximal import tendons as tendon_rows
from brax.maximal.links import Stack, TreesAtState, by_group
from brax.maximal.tendons import GroupedLoads, TendonJacobian
from brax.spatial import Spatial
from brax.tree import Group, Layout, PerDof, join, sum_rows
from brax.tree_solve import GroupPivot

MIN_MOBILITY = 1e-12
"""Least velocity per unit of impulse of what cannot move, in SI units; its inverse is finite."""


class LimitPart(NamedTuple):
    """The rows of one bounded quantity of a group's joints, such as an angle."""

    group: int
    """Index of the group."""
    rates: tuple[jax.Array | None, ...]
    """The quantity's rate per unit rate of each degree of freedom of the stack; None where zero."""


class Limits(NamedTuple):
    """All limits, and all joints and tendons with dry friction, components (limits, batch)."""

    parts: list[LimitPart]
    """The rows of joints, which come first."""
    tendons: TendonJacobian | None
    """The Jacobian of tendons; None if no tendon has a limit or friction."""
    which: tuple[int, ...]
    """The tendon of each row after those of the joints."""
    low: jax.Array
    """Least rate over the step that keeps, or restores, the lower limit."""
    high: jax.Array
    """Largest rate over the step that keeps, or restores, the upper limit."""
    most: jax.Array
    """Largest impulse in either direction."""
    mobility: jax.Array
    """Rate per unit of impulse."""
    effective_mass: jax.Array
    """Impulse per unit of rate, the inverse."""


def has_limits(sys: System) -> bool:
    """Return whether a model has limits or dry friction."""
    return any(sys.joint_limited) or any(sys.joint_dry) or tendon_rows.has_tendon_rows(sys)


def prepare(
    at: TreesAtState,
    pivots: Sequence[GroupPivot],
    mobility: Sequence[PerDof],
    dt: jax.Array,
) -> Limits | None:
    """Prepare limits and dry friction for the sweeps; None if the model has none.

    Args:
        at: the links and joint coordinates.
        pivots: the factorization of the trees, from `factor`.
        mobility: rate of each degree of freedom per unit of impulse along it, by group.
        dt: time step [s].
    """
    sys, plan = at.sys, at.plan
    parts: list[LimitPart] = []
    table: list[tuple[jax.Array, ...]] = []
    all_q, all_stacks = by_group(plan, at.q), by_group(plan, at.stacks)
    # Free joints have neither limits nor dry friction, and no coordinates here.
    for i, group in enumerate(plan.groups):
        if not group.unconstrained:
            for rates, row in _bounds(sys, group, all_stacks[i], all_q[i], dt):
                # The mobility J W J^T, with the diagonal of the inverse inertia W.
                # The joints of a stack move one link; that one moves the others is left to the
                # sweeps.
                inverse = total(
                    r * r * w for r, w in zip(rates, mobility[i], strict=True) if r is not None
                )
                parts.append(LimitPart(i, rates))
                table.append((*row, inverse))
    which: tuple[int, ...] = ()
    tendons = tendon_rows.tendon_jacobian(at) if tendon_rows.has_tendon_rows(sys) else None
    if tendons is not None:
        which = sum(tendon_rows.stopped(sys), ())
        table.append(_tendon_bounds(at, pivots, tendons, dt))
    if not table:
        return None
    low, high, most, mobile = join([tuple(jnp.broadcast_arrays(*row)) for row in table])
    # The floor keeps the mass finite where the quantity cannot move.
    mobile = jnp.maximum(mobile, MIN_MOBILITY)
    return Limits(parts, tendons, which, low, high, most, mobile, 1.0 / mobile)


def _tendon_bounds(
    at: TreesAtState, pivots: Sequence[GroupPivot], found: TendonJacobian, dt: jax.Array
) -> tuple[jax.Array, ...]:
    """Return least and largest rate, largest impulse and mobility of tendons.

    The rows of limits come first, then those of dry friction.
    """
    sys, (limited, dry) = at.sys, tendon_rows.stopped(at.sys)
    length, (low, high) = rows((found.length, sys.tendon.limit), limited)
    # A bound that is infinite becomes a rate that nothing reaches: differences of infinities are
    # NaN.
    low, high = (
        jnp.maximum(low, -MAX_SPEED * dt) - length,
        jnp.minimum(high, MAX_SPEED * dt) - length,
    )
    none = jnp.zeros_like(found.length[: len(dry)])
    loss = none + rows(sys.tendon.frictionloss, dry) * dt
    mobile, rate = tendon_rows.mobility(at, pivots, found), 1.0 / dt
    return (
        jnp.concatenate([low * rate, none]),
        jnp.concatenate([high * rate, none]),
        jnp.concatenate([jnp.full_like(low, jnp.inf), loss]),
        rows(mobile, (*limited, *dry)),
    )


def _bounds(
    sys: System, group: Group, stack: Stack, q: PerDof, dt: jax.Array
) -> list[tuple[tuple[jax.Array | None, ...], tuple[jax.Array, ...]]]:
    """Return the rows of a group's joints: rates, and least rate, largest rate, largest impulse."""
    out: list[tuple[tuple[jax.Array | None, ...], tuple[jax.Array, ...]]] = []
    dofs = used = 0
    # `dofs` and `used` count the degrees of freedom and coordinates of the joints before this one.
    free = [None] * len(group.qd)
    for kind, joints in zip(group.types, group.joints, strict=True):
        # Coordinates of this joint; a ball joint has four of them and three degrees of freedom.
        mine = q[used : used + kind.q_width]
        # A group has one row for all of its links, so a joint without limits has infinite ones.
        if any(sys.joint_limited[j] for j in joints):
            for k, bound in enumerate(kind.bounds(mine), start=dofs):
                rates = (*free[:dofs], *bound.rates, *free[dofs + kind.qd_width :])
                low = jnp.maximum(stack.lower[k], -MAX_SPEED * dt) - bound.value
                high = jnp.minimum(stack.upper[k], MAX_SPEED * dt) - bound.value
                # The step is the same for all rows, so that it is inverted once.
                out.append((rates, (low * (1 / dt), high * (1 / dt), jnp.full_like(dt, jnp.inf))))
        # Dry friction is a limit whose both bounds are a rate of zero.
        if any(sys.joint_dry[j] for j in joints):
            for k in range(dofs, dofs + kind.qd_width):
                one, zero = jnp.ones_like(mine[0]), jnp.zeros_like(mine[0])
                out.append(((*free[:k], one, *free[k + 1 :]), (zero, zero, stack.dry[k] * dt)))
        dofs, used = dofs + kind.qd_width, used + kind.q_width
    return out


def rates_of(
    limits: Limits, at: TreesAtState, links: Sequence[Spatial], rates: Sequence[PerDof]
) -> jax.Array:
    """Return the rates of all rows in a motion.

    Args:
        limits: the limits.
        at: their state.
        links: velocities of the links about the common points, by group.
        rates: rates of the degrees of freedom, by group.
    """
    out = []
    for part in limits.parts:
        pairs = zip(part.rates, rates[part.group], strict=True)
        out.append(total(g * r for g, r in pairs if g is not None))
    if limits.tendons is not None:
        out.append(rows(tendon_rows.rates(at, limits.tendons, links, rates), limits.which))
    return join(out)


def asked(
    limits: Limits, impulse: jax.Array, rate: jax.Array, low: jax.Array, high: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return impulses moved towards what the bounds ask for, without and with the largest impulse.

    Args:
        limits: the limits.
        impulse: their impulses so far.
        rate: their rates.
        low: least rates.
        high: largest rates.
    """
    # The rate error times the effective mass, for both bounds. The lower one only pushes up and the
    # upper one only down. At most one of the two terms is not zero, because low <= high.
    mass = limits.effective_mass
    up, down = impulse + mass * (low - rate), impulse + mass * (high - rate)
    new = jnp.maximum(up, 0.0) + jnp.minimum(down, 0.0)
    return new, jnp.clip(new, -limits.most, limits.most)


def add_loads(
    limits: Limits, impulse: jax.Array, at: TreesAtState, loads: GroupedLoads
) -> GroupedLoads:
    """Return loads on links and along degrees of freedom with those of impulses of rows added."""
    out = [list(mine) for mine in loads.dofs]
    for part, push in zip(limits.parts, by_part(limits, impulse, at.plan), strict=True):
        for k, rate in enumerate(part.rates):
            if rate is not None:
                # J^T times the impulses of one part.
                along, old = rate * push, out[part.group][k]
                out[part.group][k] = along if old is None else old + along
    dofs = [tuple(mine) for mine in out]
    if limits.tendons is None:
        return GroupedLoads(loads.links, dofs)
    # Joint limits act along degrees of freedom only, tendons on links as well. Groups that nothing
    # loads have an empty tuple; the sum wants an entry for each degree of freedom.
    full = [mine or (None,) * len(g.qd) for mine, g in zip(dofs, at.plan.groups, strict=True)]
    pulled = tendon_loads(limits, impulse, at)
    return tendon_rows.summed(GroupedLoads(loads.links, full), pulled)


def tendon_loads(limits: Limits, impulse: jax.Array, at: TreesAtState) -> GroupedLoads:
    """Return the loads of the limits and the dry friction of tendons, which the model must have."""
    assert limits.tendons is not None
    # A tendon may have two rows, one for its limits and one for its friction.
    whole = sum_rows(impulse[-len(limits.which) :], limits.which, len(at.sys.tendon_names))
    return tendon_rows.loads(at, limits.tendons, whole)


def by_part(limits: Limits, values: jax.Array, plan: Layout) -> list[jax.Array]:
    """Return the rows of each of the joints' parts; those of tendons are left out."""
    out, start = [], 0
    for part in limits.parts:
        stop = start + len(plan.groups[part.group].links)
        out.append(values[start:stop])
        start = stop
    return out
