"""Limits and dry friction of joints and tendons: impulses along degrees of freedom and tendons."""

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
    """Rows of one quantity of a group's joints."""

    group: int
    """Index of the group."""
    rates: tuple[jax.Array | None, ...]
    """The quantity's rate per unit of each degree of freedom of the stack; None where zero."""


class Limits(NamedTuple):
    """All limits, and all joints and tendons with dry friction, components (limits, batch)."""

    parts: list[LimitPart]
    """Those of joints, which come first."""
    tendons: TendonJacobian | None
    """The tendons; None if none is bounded."""
    which: tuple[int, ...]
    """The tendon of each of the last rows."""
    low: jax.Array
    """Least rate over the step that keeps, or restores, the lower limit."""
    high: jax.Array
    most: jax.Array
    """Largest impulse, either way."""
    step: jax.Array
    """Impulse per unit of excess rate."""


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
    """Sets the limits up for the sweeps; None if there are none.

    Args:
        sys: the model.
        plan: the layout.
        stacks: constants of the joints, by stack.
        q: coordinates, by stack.
        mobility: of each degree of freedom, by group.
        tendons: the tendons; None if none is bounded.
        pivots: the joints, from `factor`.
        dt: time step.
    """
    parts: list[LimitPart] = []
    table: list[tuple[jax.Array, ...]] = []
    all_q, all_stacks = by_group(plan, q), by_group(plan, stacks)
    for i, group in enumerate(plan.groups):
        if not group.unconstrained:
            for rates, row in _bounds(sys, group, all_stacks[i], all_q[i], dt):
                seen = total(
                    r * r * w for r, w in zip(rates, mobility[i], strict=True) if r is not None
                )
                parts.append(LimitPart(i, rates))
                table.append((*row, 1.0 / jnp.maximum(seen, 1e-12)))
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
    """Least and greatest rate, greatest impulse and step of tendons: limits, then friction."""
    limited, dry = stopped(sys)
    length, (low, high) = rows((found.length, sys.tendon.limit), limited)
    low, high = (
        jnp.maximum(low, -MAX_SPEED * dt) - length,
        jnp.minimum(high, MAX_SPEED * dt) - length,
    )
    none = jnp.zeros_like(found.length[: len(dry)])
    loss = none + rows(sys.tendon.frictionloss, dry) * dt
    step = 1.0 / jnp.maximum(mobility_along(sys, plan, pivots, found), 1e-12)
    return (
        jnp.concatenate([low / dt, none]),
        jnp.concatenate([high / dt, none]),
        jnp.concatenate([jnp.full_like(low, jnp.inf), loss]),
        rows(step, (*limited, *dry)),
    )


def _bounds(
    sys: System, group: Group, stack: Stack, q: PerDof, dt: jax.Array
) -> list[tuple[tuple[jax.Array | None, ...], tuple[jax.Array, ...]]]:
    """Rates, least and greatest rate, and greatest impulse of what a group's joints bound."""
    out: list[tuple[tuple[jax.Array | None, ...], tuple[jax.Array, ...]]] = []
    dofs = used = 0
    free = [None] * len(group.qd)
    for kind, joints in zip(group.types, group.joints, strict=True):
        mine = q[used : used + kind.q_width]
        if any(sys.joint_limited[j] for j in joints):
            for k, bound in enumerate(kind.bounds(mine), start=dofs):
                rates = (*free[:dofs], *bound.rates, *free[dofs + kind.qd_width :])
                low = jnp.maximum(stack.lower[k], -MAX_SPEED * dt) - bound.value
                high = jnp.minimum(stack.upper[k], MAX_SPEED * dt) - bound.value
                out.append((rates, (low / dt, high / dt, jnp.full_like(dt, jnp.inf))))
        if any(sys.joint_dry[j] for j in joints):
            for k in range(dofs, dofs + kind.qd_width):
                one, zero = jnp.ones_like(mine[0]), jnp.zeros_like(mine[0])
                out.append(((*free[:k], one, *free[k + 1 :]), (zero, zero, stack.dry[k] * dt)))
        dofs, used = dofs + kind.qd_width, used + kind.q_width
    return out


def rates_of(
    limits: Limits, sys: System, plan: Layout, links: Sequence[Spatial], rates: Sequence[PerDof]
) -> jax.Array:
    """The rates of what is bounded, of a motion by group."""
    out = []
    for part in limits.parts:
        pairs = zip(part.rates, rates[part.group], strict=True)
        out.append(total(g * r for g, r in pairs if g is not None))
    if limits.tendons is not None:
        out.append(rows(rates_along(sys, plan, limits.tendons, links, rates), limits.which))
    return join(out)


def as_loads(limits: Limits, impulse: jax.Array, sys: System, plan: Layout) -> GroupedLoads:
    """What impulses are to links and along degrees of freedom."""
    joints = sum(len(plan.groups[part.group].links) for part in limits.parts)
    along = _on_joints(limits, impulse[:joints], plan)
    if limits.tendons is None:
        return [None] * len(plan.groups), along
    whole = sum_rows(impulse[joints:], limits.which, len(sys.tendon_names))
    none: list[Spatial | None] = [None] * len(plan.groups)
    return summed((none, along), loads_along(sys, plan, limits.tendons, whole))


def _on_joints(
    limits: Limits, impulse: jax.Array, plan: Layout
) -> list[tuple[jax.Array | None, ...]]:
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
    """Least and greatest rate after the step: what has pushed asks for rest, others for nothing."""
    return jnp.where(impulse > 0, 0.0, -MAX_SPEED), jnp.where(impulse < 0, 0.0, MAX_SPEED)


def wanted(
    limits: Limits,
    impulse: jax.Array,
    ahead: jax.Array,
    rate: jax.Array,
    low: jax.Array,
    high: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The change of impulse that each limit alone would ask for, and the rate still missing.

    The last is 1 where the rate decides, rather than the largest impulse.
    """
    up, down = ahead + limits.step * (low - rate), ahead + limits.step * (high - rate)
    new = jnp.maximum(up, 0.0) + jnp.minimum(down, 0.0)
    bounded = jnp.clip(new, -limits.most, limits.most)
    below = jnp.logical_or(up > 0, impulse > 0)
    missing = jnp.where(below, low, high) - rate
    return bounded - impulse, missing, (bounded == new).astype(new.dtype)


def physical(limits: Limits, impulse: jax.Array, rate: jax.Array) -> jax.Array:
    """Share of the impulse that stops a joint moving freely at `rate`; see `contacts.physical`."""
    pressing = jnp.where(impulse > 0, -rate, rate)
    excess = jnp.where(impulse > 0, limits.low - rate, rate - limits.high)
    return jnp.clip(MAX_PUSH_RATIO * pressing / jnp.maximum(excess, 1e-9), 0.0, 1.0)
