"""Limits and dry friction of joints and tendons: impulses along degrees of freedom and tendons.

Each is one row with a rate, a lower and an upper bound of that rate, and a largest impulse. A limit
has bounds from the distance to it and no largest impulse. Dry friction asks for a rate of zero with
an impulse of at most the friction loss. Rows are (limits, batch), those of joints first.

Source: Mueller et al. (2020), section 3.4: joint limits.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.base import System
from brax.components import rows, total
from brax.impacts import MAX_SPEED
from brax.maximal.links import PerDof, Stack, by_group
from brax.maximal.tendons import GroupedLoads, TendonJacobian, stopped, summed
from brax.maximal.tendons import loads as loads_along
from brax.maximal.tendons import mobility as mobility_along
from brax.maximal.tendons import rates as rates_along
from brax.maximal.tree_solve import GroupPivot
from brax.positional.contacts import MAX_PUSH_RATIO
from brax.spatial import Spatial
from brax.tree import Group, Layout, join, sum_rows


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
    effective_mass: jax.Array
    """Impulse per unit of rate."""


def prepare(
    sys: System,
    plan: Layout,
    stacks: Sequence[Stack],
    q: Sequence[PerDof],
    mobility: Sequence[PerDof],
    tendons: TendonJacobian | None,
    pivots: Sequence[GroupPivot],
    dt: jax.Array,
) -> Limits | None:
    """Prepare limits and dry friction for the sweeps; None if the model has none.

    Args:
        sys: the model.
        plan: the layout.
        stacks: constants of the joints, by stack.
        q: coordinates, by stack.
        mobility: rate of each degree of freedom per unit of impulse along it, by group.
        tendons: the Jacobian of tendons; None if no tendon has a limit or friction.
        pivots: the factorization of the trees, from `factor`.
        dt: time step [s].
    """
    parts: list[LimitPart] = []
    table: list[tuple[jax.Array, ...]] = []
    all_q, all_stacks = by_group(plan, q), by_group(plan, stacks)
    # Free joints have neither limits nor dry friction, and no coordinates here.
    for i, group in enumerate(plan.groups):
        if not group.unconstrained:
            for rates, row in _bounds(sys, group, all_stacks[i], all_q[i], dt):
                # The inverse effective mass J W J^T, with the diagonal of the inverse inertia W.
                inverse = total(
                    r * r * w for r, w in zip(rates, mobility[i], strict=True) if r is not None
                )
                parts.append(LimitPart(i, rates))
                table.append((*row, 1.0 / jnp.maximum(inverse, 1e-12)))
    which: tuple[int, ...] = ()
    if tendons is not None:
        limited, dry = stopped(sys)
        which = (*limited, *dry)
        table.append(_tendon_bounds(sys, plan, pivots, tendons, dt))
    if not table:
        return None
    return Limits(
        parts, tendons, which, *join([tuple(jnp.broadcast_arrays(*row)) for row in table])
    )


def _tendon_bounds(
    sys: System, plan: Layout, pivots: Sequence[GroupPivot], found: TendonJacobian, dt: jax.Array
) -> tuple[jax.Array, ...]:
    """Return least and largest rate, largest impulse and effective mass of tendons.

    The rows of limits come first, then those of dry friction.
    """
    limited, dry = stopped(sys)
    length, (low, high) = rows((found.length, sys.tendon.limit), limited)
    # A bound that is infinite becomes a rate that nothing reaches: differences of infinities are
    # NaN.
    low, high = (
        jnp.maximum(low, -MAX_SPEED * dt) - length,
        jnp.minimum(high, MAX_SPEED * dt) - length,
    )
    none = jnp.zeros_like(found.length[: len(dry)])
    loss = none + rows(sys.tendon.frictionloss, dry) * dt
    effective_mass = 1.0 / jnp.maximum(mobility_along(sys, plan, pivots, found), 1e-12)
    return (
        jnp.concatenate([low / dt, none]),
        jnp.concatenate([high / dt, none]),
        jnp.concatenate([jnp.full_like(low, jnp.inf), loss]),
        rows(effective_mass, (*limited, *dry)),
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
                out.append((rates, (low / dt, high / dt, jnp.full_like(dt, jnp.inf))))
        # Dry friction is a limit whose both bounds are a rate of zero.
        if any(sys.joint_dry[j] for j in joints):
            for k in range(dofs, dofs + kind.qd_width):
                one, zero = jnp.ones_like(mine[0]), jnp.zeros_like(mine[0])
                out.append(((*free[:k], one, *free[k + 1 :]), (zero, zero, stack.dry[k] * dt)))
        dofs, used = dofs + kind.qd_width, used + kind.q_width
    return out


def rates_of(
    limits: Limits, sys: System, plan: Layout, links: Sequence[Spatial], rates: Sequence[PerDof]
) -> jax.Array:
    """Return the rates of all rows in a motion.

    Args:
        limits: the limits.
        sys: the model.
        plan: the layout.
        links: velocities of the links about the common points, by group.
        rates: rates of the degrees of freedom, by group.
    """
    out = []
    for part in limits.parts:
        pairs = zip(part.rates, rates[part.group], strict=True)
        out.append(total(g * r for g, r in pairs if g is not None))
    if limits.tendons is not None:
        out.append(rows(rates_along(sys, plan, limits.tendons, links, rates), limits.which))
    return join(out)


def as_loads(limits: Limits, impulse: jax.Array, sys: System, plan: Layout) -> GroupedLoads:
    """Return the loads of impulses on links and along degrees of freedom, by group."""
    # Rows are those of the joints' parts first, and of the tendons after them.
    joints = sum(len(plan.groups[part.group].links) for part in limits.parts)
    along = _on_joints(limits, impulse[:joints], plan)
    # Joint limits act along degrees of freedom only, tendons on links as well.
    loads = GroupedLoads([None] * len(plan.groups), along)
    if limits.tendons is None:
        return loads
    # A tendon may have two rows, one for its limits and one for its friction.
    whole = sum_rows(impulse[joints:], limits.which, len(sys.tendon_names))
    return summed(loads, loads_along(sys, plan, limits.tendons, whole))


def _on_joints(
    limits: Limits, impulse: jax.Array, plan: Layout
) -> list[tuple[jax.Array | None, ...]]:
    """Return the impulses along the degrees of freedom of each group, J^T times the rows'."""
    out: list[list[jax.Array | None]] = [[None] * len(g.qd) for g in plan.groups]
    start = 0
    for part in limits.parts:
        stop = start + len(plan.groups[part.group].links)
        for k, rate in enumerate(part.rates):
            if rate is not None:
                push, old = rate * impulse[start:stop], out[part.group][k]
                out[part.group][k] = push if old is None else old + push
        start = stop
    return [tuple(mine) for mine in out]


def at_rest(limits: Limits, impulse: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return least and largest rate after the step: limits that have pushed ask for rest.

    The others ask for nothing.

    Args:
        limits: the limits.
        impulse: impulses of the position level.
    """
    # Limits have no restitution.
    return jnp.where(impulse > 0, 0.0, -MAX_SPEED), jnp.where(impulse < 0, 0.0, MAX_SPEED)


def change_within_limits(
    limits: Limits,
    impulse: jax.Array,
    ahead: jax.Array,
    rate: jax.Array,
    low: jax.Array,
    high: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the change of impulse that each limit asks for, within its largest impulse.

    Args:
        limits: the limits.
        impulse: impulses so far.
        ahead: impulses extrapolated by momentum, from which the change starts.
        rate: rates of the rows.
        low: least rate.
        high: largest rate.

    Returns:
        The change, the rate errors, and a mask that is 1 where the error and not the largest
        impulse determines the impulse.
    """
    # Equation (4): the rate error times the effective mass, for both bounds. The lower one only
    # pushes up and the upper one only down, so that at most one of them acts between the bounds.
    mass = limits.effective_mass
    up, down = ahead + mass * (low - rate), ahead + mass * (high - rate)
    new = jnp.maximum(up, 0.0) + jnp.minimum(down, 0.0)
    bounded = jnp.clip(new, -limits.most, limits.most)
    # The error is that against the bound that acts, or has acted.
    below = jnp.logical_or(up > 0, impulse > 0)
    missing = jnp.where(below, low, high) - rate
    return bounded - impulse, missing, (bounded == new).astype(new.dtype)


def physical(limits: Limits, impulse: jax.Array, rate: jax.Array) -> jax.Array:
    """Return the share of each impulse that stops a motion at `rate`; see `contacts.physical`."""
    # As in `contacts.physical`: the rate that the motion needs to stop, over the rate that the
    # limit asked for at the position level.
    pressing = jnp.where(impulse > 0, -rate, rate)
    excess = jnp.where(impulse > 0, limits.low - rate, rate - limits.high)
    return jnp.clip(MAX_PUSH_RATIO * pressing / jnp.maximum(excess, 1e-9), 0.0, 1.0)
