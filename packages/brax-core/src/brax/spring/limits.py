"""Limits and dry friction of joints and tendons: impulses along them with bounds.

A row is a quantity with a rate that is linear in the joint velocities: a joint's coordinate, the
angle of a ball joint, or a tendon's length.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.base import System
from brax.components import rows, total
from brax.impacts import MAX_SPEED
from brax.maximal.links import PerDof, Stack
from brax.maximal.tendons import stopped
from brax.tree import Group


class LimitRows(NamedTuple):
    """A quantity of a group's joints that a limit, or dry friction, bounds; (links, batch)."""

    per_rate: tuple[jax.Array | None, ...]
    """Derivative of its rate by the rate of each degree of freedom; None where it is zero."""
    low: jax.Array
    """Least change of its rate that keeps, or restores, the lower limit."""
    high: jax.Array
    """Greatest change of its rate that keeps, or restores, the upper limit."""
    step: jax.Array
    """Impulse per unit of rate error."""
    most: jax.Array | None
    """Largest impulse in either direction; None for limits, which have none."""


def bounds(
    sys: System,
    group: Group,
    stack: Stack,
    q: PerDof,
    rates: PerDof,
    mobility: PerDof,
    dt: jax.Array,
) -> list[LimitRows]:
    """Return the rows of limits and dry friction of a group's joints.

    Args:
        sys: the model.
        group: the group.
        stack: constants of its joints.
        q: coordinates, by coordinate of the stack.
        rates: rates of the degrees of freedom before the step.
        mobility: rate per unit impulse of each degree of freedom, with the whole tree.
        dt: time step.
    """
    # Degrees of freedom and coordinates lie joint after joint: `dofs` and `used` count them.
    out: list[LimitRows] = []
    dofs = used = 0
    free: list[jax.Array | None] = [None] * len(group.qd)
    for kind, joints in zip(group.types, group.joints, strict=True):
        end = dofs + kind.qd_width
        if any(sys.joint_limited[j] for j in joints):
            mine = q[used : used + kind.q_width]
            # A joint type says which quantities its limits bound: coordinates, or a ball's angle.
            for k, bound in enumerate(kind.bounds(mine), start=dofs):
                per_rate = (*free[:dofs], *bound.rates, *free[end:])
                rate, step = _rate(per_rate, rates), _step(per_rate, mobility)
                ends = stack.lower[k], stack.upper[k]
                low, high = _within(sys, bound.value, ends, rate, dt)
                out.append(LimitRows(per_rate, low, high, step, None))
        if any(sys.joint_dry[j] for j in joints):
            for k in range(dofs, end):
                # Dry friction acts on each degree of freedom alone.
                per_rate = (*free[:k], jnp.ones_like(rates[k]), *free[k + 1 :])
                # Dry friction asks for rate zero: both limits are there.
                stop, most = -rates[k], stack.dry[k] * dt
                out.append(LimitRows(per_rate, stop, stop, _step(per_rate, mobility), most))
        dofs, used = end, used + kind.q_width
    return out


def tendon_bounds(
    sys: System, length: jax.Array, rates: jax.Array, mobility: jax.Array, dt: jax.Array
) -> list[tuple[tuple[int, ...], LimitRows]]:
    """Return the rows of tendons, each with its tendons: limits first, then dry friction.

    Args:
        sys: the model.
        length: lengths of all tendons, (n_tendons, batch).
        rates: rates of the lengths before the step.
        mobility: rate per unit impulse of each tendon.
        dt: time step.
    """
    out = []
    limited, dry = stopped(sys)
    if limited:
        at, rate, mobile, ends = rows((length, rates, mobility, sys.tendon.limit), limited)
        low, high = _within(sys, at, ends, rate, dt)
        one = (jnp.ones_like(rate),)
        out.append((limited, LimitRows(one, low, high, _step(one, (mobile,)), None)))
    if dry:
        rate, mobile, loss = rows((rates, mobility, sys.tendon.frictionloss), dry)
        one = (jnp.ones_like(rate),)
        out.append((dry, LimitRows(one, -rate, -rate, _step(one, (mobile,)), loss * dt)))
    return out


def _within(
    sys: System,
    value: jax.Array,
    ends: tuple[jax.Array, jax.Array],
    rate: jax.Array,
    dt: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Return the least and greatest change of a rate that keep, or restore, a value's limits."""
    # The rate at which the value is at its limit at the end of the step. An absent limit is
    # infinite; MAX_SPEED keeps the derivatives finite.
    low, high = (
        (jnp.maximum(ends[0], -MAX_SPEED) - value) / dt,
        (jnp.minimum(ends[1], MAX_SPEED) - value) / dt,
    )
    # As for contacts: a gap may close within one step, a share of a violation is taken back.
    low = jnp.where(low > 0, sys.baumgarte_erp * low, low) - rate
    high = jnp.where(high < 0, sys.baumgarte_erp * high, high) - rate
    return low, high


def _rate(per_rate: Sequence[jax.Array | None], rates: PerDof) -> jax.Array:
    return total(g * u for g, u in zip(per_rate, rates, strict=True) if g is not None)


def _step(per_rate: Sequence[jax.Array | None], mobility: PerDof) -> jax.Array:
    # The joints of a stack move one link; that one moves the others is left to the sweeps.
    seen = total(g * g * w for g, w in zip(per_rate, mobility, strict=True) if g is not None)
    # The floor keeps the step finite where the quantity cannot move.
    return 1.0 / jnp.maximum(seen, 1e-12)


def update(bound: LimitRows, impulse: jax.Array, changes: PerDof) -> jax.Array:
    """Return an impulse moved towards the row's target, within its bounds.

    A limit only pushes back into the range; at most one of the two terms below is not zero, because
    low <= high. Dry friction gives at most `most`.
    """
    rate = _rate(bound.per_rate, changes)
    new = jnp.maximum(impulse + bound.step * (bound.low - rate), 0.0) + jnp.minimum(
        impulse + bound.step * (bound.high - rate), 0.0
    )
    return new if bound.most is None else jnp.clip(new, -bound.most, bound.most)


def project(bound: LimitRows, asked: jax.Array, impulse: jax.Array) -> jax.Array:
    """Return the nearest impulse within the bounds.

    Of a limit's two ends, `asked` says by its sign which one pushes.
    """
    # Dry friction acts either way, whatever the sweep asked for.
    if bound.most is not None:
        return jnp.clip(impulse, -bound.most, bound.most)
    least, greatest = jnp.where(asked < 0, -jnp.inf, 0.0), jnp.where(asked > 0, jnp.inf, 0.0)
    return jnp.clip(impulse, least, greatest)


def squared_norm(bound: LimitRows, change: jax.Array) -> jax.Array:
    """Return the square of a change of impulses in the metric of their steps, (links, batch)."""
    # The step is the inverse of the diagonal of J M^-1 J^T.
    return change * change * (1.0 / bound.step)


def add_impulses(
    loads: PerDof, bounded: Sequence[LimitRows], impulses: Sequence[jax.Array]
) -> PerDof:
    """Return impulses along the degrees of freedom of a group, with those of its rows added."""
    out = list(loads)
    for bound, impulse in zip(bounded, impulses, strict=True):
        for k, rate in enumerate(bound.per_rate):
            if rate is not None:
                # J^T f of one row.
                out[k] = out[k] + rate * impulse
    return tuple(out)
