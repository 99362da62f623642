"""Scalar constraints on several coordinates: joints and tendons that are tied to one another, and
the limits and the dry friction of tendons.

Source: MuJoCo's documentation, chapter Computation, section Constraint model; XML reference,
equality/joint and equality/tendon.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.components import rows
from brax.generalized.jacobians import Found
from brax.generalized.laws import Along, Separate
from brax.generalized.singles import (
    Held,
    Single,
    braked,
    columns,
    joined,
    limited,
    single,
    stacked,
    tied,
)
from brax.generalized.slots import Family, Plan
from brax.generalized.strands import Strand, Strands, strands
from brax.tree import sum_rows


class Coupled(NamedTuple):
    """The parameters of all these constraints; None where there are none."""

    ties: Single | None
    limits: Single | None
    dry: Single | None


def coupled_softness(sys: System) -> Coupled:
    """Collects them."""
    mine, tendon = strands(sys), sys.tendon
    ties = limits = dry = None
    if mine.equalities:
        equality = rows(sys.equality, mine.equalities)
        ties = single(sys, equality.solref, equality.solimp, equality.invweight[:, 0])
    if mine.limited:
        numbers = tendon.solref_limit, tendon.solimp_limit, tendon.invweight
        limits = single(sys, *rows(numbers, mine.limited))
    if mine.dry:
        numbers = tendon.solref_friction, tendon.solimp_friction, tendon.invweight
        dry = single(sys, *rows(numbers, mine.dry))
    return Coupled(ties, limits, dry)


def coupled(sys: System, plan: Plan, family: Family, soft: Coupled, q: jax.Array) -> Found:
    """Evaluates a family at coordinates (nq, batch)."""
    mine = strands(sys)
    n, m = len(mine.equalities), len(mine.limited)
    parts: list[Held] = []
    dampers, slopes = [], [jnp.ones_like(q[:1])]
    if soft.ties is not None:
        moved = q - sys.ref
        coefficients = columns(rows(sys.equality.data, mine.equalities))[:5]
        wanted, slope = _polynomial(coefficients, _lengths(sys, mine.second[:n], moved))
        parts.append(tied(soft.ties, _lengths(sys, mine.first[:n], moved) - wanted))
        slopes.append(-slope)
        dampers.append(soft.ties.damper)
    if soft.limits is not None:
        bounds, margin = rows((sys.tendon.limit, sys.tendon.margin), mine.limited)
        at = _lengths(sys, mine.first[n : n + m], q)
        parts.append(limited(soft.limits, at, bounds, margin))
        dampers.append(soft.limits.damper)
    if soft.dry is not None:
        loss = rows(sys.tendon.frictionloss, mine.dry)
        parts.append(braked(soft.dry, loss, _lengths(sys, mine.first[n + m :], q)))
        dampers.append(soft.dry.damper)
    held, damper = joined(parts), stacked(*dampers)
    law, wanted, damper = rows((held.law, held.wanted, damper), family.order)
    jacobian = _jacobian(sys, plan, family, mine, held.arms, stacked(*slopes))
    return Found(Separate((law,)), jacobian, (wanted,), damper, None)


def _polynomial(coefficients: Sequence[jax.Array], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A polynomial, lowest power first, and its slope."""
    value, slope = jnp.zeros_like(x), jnp.zeros_like(x)
    for c in reversed(coefficients):
        value, slope = c + x * value, value + x * slope
    return value, slope


def _weights(sys: System, each: Sequence[Strand]) -> jax.Array:
    """The weights of all coordinates of strands, (coordinates, batch)."""
    one = jnp.ones_like(sys.ref[:1])
    index = [k if k >= 0 else len(sys.tendon.coef) for s in each for k in s.weights]
    return rows(stacked(sys.tendon.coef, one), index)


def _lengths(sys: System, each: Sequence[Strand], q: jax.Array) -> jax.Array:
    """Lengths of strands, (strands, batch); of one without coordinates zero."""
    if not any(s.q for s in each):
        return jnp.zeros((len(each), q.shape[-1]), q.dtype)
    at = rows(q, [i for s in each for i in s.q])
    owner = tuple(i for i, s in enumerate(each) for _ in s.q)
    return sum_rows(_weights(sys, each) * at, owner, len(each))


def _jacobian(
    sys: System, plan: Plan, family: Family, mine: Strands, arms: jax.Array, slopes: jax.Array
) -> tuple[Along | None, ...]:
    """As `jacobians.jacobian`: weights of the first strand, and of the second by the slope."""
    owner = [i for i, s in enumerate(mine.first) for _ in s.dofs]
    other = [i for i, s in enumerate(mine.second) for _ in s.dofs]
    factors = rows(slopes, [0] * len(owner) + [1 + i for i in other])
    values = _weights(sys, [*mine.first, *mine.second]) * factors * rows(arms, owner + other)
    dofs = [d for s in (*mine.first, *mine.second) for d in s.dofs]
    entries = list(zip(owner + other, dofs, strict=True))
    place = {entry: i for i, entry in enumerate(dict.fromkeys(entries))}
    table = sum_rows(values, tuple(place[e] for e in entries), len(place))
    table = jnp.concatenate([table, jnp.zeros_like(table[:1])])
    out: list[Along | None] = []
    for block, slots in zip(plan.blocks.blocks, family.slots, strict=True):
        if slots is None:
            out.append(None)
            continue
        index = np.full(slots.real.shape, len(place))
        for at, i, k in np.argwhere(slots.real):
            number = family.order[slots.start + i * slots.copies + k]
            where = at if slots.reach is None else slots.reach[at, i, k]
            index[at, i, k] = place[number, block.path[k][where]]
        out.append((rows(table, index.ravel().tolist()).reshape(*index.shape, -1),))
    return tuple(out)
