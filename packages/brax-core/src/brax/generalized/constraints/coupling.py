"""Scalar constraints on several coordinates: joint and tendon equalities, limits, dry friction.

The limits and the dry friction are those of tendons.

Source: MuJoCo's documentation, chapter Computation, section Constraint model; XML reference,
equality/joint and equality/tendon.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.actuators.site_transmission import LinkTransmission
from brax.actuators.spatial_tendons import tendon_reach
from brax.base import System
from brax.components import polynomial, rows
from brax.generalized.constraints.constraint_laws import Along, IndependentLaw
from brax.generalized.constraints.constraint_layout import ConstraintFamily, ConstraintLayout
from brax.generalized.constraints.coupling_layout import (
    CoordinateSum,
    CouplingLayout,
    coupling_layout,
)
from brax.generalized.constraints.jacobians import (
    FamilyConstraints,
    SpatialTendonTerms,
    at_places,
)
from brax.generalized.constraints.scalar import (
    ScalarConstraints,
    ScalarSoftness,
    columns,
    dry_friction,
    equality,
    joined,
    limit,
    scalar_softness,
    stacked,
)
from brax.generalized.smooth_dynamics.frames import world_frames
from brax.generalized.smooth_dynamics.smooth import SmoothDynamics, common_points
from brax.generalized.smooth_dynamics.structure import link_dofs
from brax.tree import Layout, sum_rows


class CouplingSoftness(NamedTuple):
    """Softness of all these constraints; None where there are none."""

    equalities: ScalarSoftness | None
    """Softness of equalities between joints or tendons."""
    limits: ScalarSoftness | None
    """Softness of tendon limits."""
    dry: ScalarSoftness | None
    """Softness of the tendons' dry friction."""


def coupling_softness(sys: System) -> CouplingSoftness:
    """Return the softness of all these constraints."""
    mine, tendon = coupling_layout(sys), sys.tendon
    equalities = limits = dry = None
    if mine.equalities:
        equality = rows(sys.equality, mine.equalities)
        equalities = scalar_softness(
            sys, equality.solref, equality.solimp, equality.invweight[:, 0]
        )
    if mine.limited:
        numbers = tendon.solref_limit, tendon.solimp_limit, tendon.invweight
        limits = scalar_softness(sys, *rows(numbers, mine.limited))
    if mine.dry:
        numbers = tendon.solref_friction, tendon.solimp_friction, tendon.invweight
        dry = scalar_softness(sys, *rows(numbers, mine.dry))
    return CouplingSoftness(equalities, limits, dry)


class CoordinateSums(NamedTuple):
    """Terms of the weighted sums of coordinates at a state."""

    weights: jax.Array
    """The weights, numbered as in `CoordinateSum.weights`, and a last one of 1, (weights,
    batch)."""
    length: jax.Array
    """Lengths of spatial tendons, zero for fixed ones, and a last zero, (n_tendons + 1, batch)."""


def couplings(
    sys: System,
    links: Layout,
    plan: ConstraintLayout,
    family: ConstraintFamily,
    soft: CouplingSoftness,
    dynamics: SmoothDynamics,
    q: jax.Array,
) -> FamilyConstraints:
    """Return the constraints of a family at coordinates (nq, batch)."""
    mine = coupling_layout(sys)
    table = _coordinate_sums(sys, links, plan, mine, dynamics)
    n, m = len(mine.equalities), len(mine.limited)
    parts: list[ScalarConstraints] = []
    one = jnp.ones_like(q[:1])
    # `slopes` holds the derivative of the second sum's polynomial for each equality; entry 0 is 1,
    # for the first sums.
    dampings, slopes = [], [one]
    if soft.equalities is not None:
        moved = q - sys.ref
        # MuJoCo's polynomials are in displacements from the reference pose, of joints and of
        # tendons alike.
        since = table._replace(length=table.length - stacked(sys.tendon.length0, one - one))
        coefficients = columns(rows(sys.equality.data, mine.equalities))[:5]
        wanted, slope = polynomial(coefficients, _lengths(since, mine.second[:n], moved))
        # y - y0 = a0 + a1 (x - x0) + ... + a4 (x - x0)⁴, so that J has 1 at y and minus the slope
        # at x.
        parts.append(equality(soft.equalities, _lengths(since, mine.first[:n], moved) - wanted))
        slopes.append(-slope)
        dampings.append(soft.equalities.reference_damping)
    if soft.limits is not None:
        bounds, margin = rows((sys.tendon.limit, sys.tendon.margin), mine.limited)
        at = _lengths(table, mine.first[n : n + m], q)
        parts.append(limit(soft.limits, at, bounds, margin, mine.farther))
        dampings.append(soft.limits.reference_damping)
    if soft.dry is not None:
        loss = rows(sys.tendon.frictionloss, mine.dry)
        parts.append(dry_friction(soft.dry, loss, _lengths(table, mine.first[n + m :], q)))
        dampings.append(soft.dry.reference_damping)
    scalar, damping = joined(parts), stacked(*dampings)
    law, reference_acc, damping = rows((scalar.law, scalar.reference_acc, damping), family.order)
    factors = stacked(*slopes)
    jacobian = _jacobian(table, plan, family, mine, scalar.signs, factors)
    tendons = _spatial_tendons(family, mine, scalar.signs, factors)
    return FamilyConstraints(
        IndependentLaw((law,)), jacobian, (reference_acc,), damping, None, tendons
    )


def _spatial_tendons(
    family: ConstraintFamily, mine: CouplingLayout, signs: jax.Array, slopes: jax.Array
) -> SpatialTendonTerms | None:
    """Return the terms of the constraints along spatial tendons; None if there are none."""
    # The slope of every first sum is row 0.
    sums = [(i, 0, s.path) for i, s in enumerate(mine.first)]
    sums += [(i, 1 + i, s.path) for i, s in enumerate(mine.second)]
    places = family.places
    real = [each for each in sums if each[2] >= 0 and each[0] in places]
    if not real:
        return None
    row, slope, tendon = zip(*real, strict=True)
    scale = rows(signs, row) * rows(slopes, slope)
    return SpatialTendonTerms(tuple(places[i] for i in row), tendon, scale)


def _coordinate_sums(
    sys: System,
    links: Layout,
    plan: ConstraintLayout,
    mine: CouplingLayout,
    dynamics: SmoothDynamics,
) -> CoordinateSums:
    """Return the weights and lengths of all sums at a state."""
    one = jnp.ones_like(sys.ref[:1])
    none = jnp.zeros_like(sys.ref[:1])
    # Without constrained spatial tendons the weights are constants of the model.
    if not mine.moving:
        return CoordinateSums(
            stacked(sys.tendon.coef, one), rows(none, [0] * (len(sys.tendon_names) + 1))
        )
    reach = tendon_reach(sys, world_frames(links, dynamics))
    moving = _moving(sys, links, plan, mine.moving, dynamics, reach)
    return CoordinateSums(stacked(sys.tendon.coef, moving, one), stacked(reach.length, none))


def _moving(
    sys: System,
    links: Layout,
    plan: ConstraintLayout,
    wanted: Sequence[tuple[int, int]],
    dynamics: SmoothDynamics,
    reach: LinkTransmission,
) -> jax.Array:
    """Return the moment arms of spatial tendons: length per unit of a rate, for given pairs."""
    place = [links.position[link] for link in reach.link]
    origin = common_points(links, dynamics.pos)
    # A unit tension's wrench on each link, moved to the common point; its product with S is the
    # moment arm.
    arm = rows(dynamics.pos - origin, place)
    push = reach.push._replace(ang=reach.push.ang + arm.cross(reach.push.lin))
    pairs = [
        (number, k, plan.blocks.position[dof])
        for number, (tendon, dof) in enumerate(wanted)
        for k, (owner, link) in enumerate(zip(reach.owner, reach.link, strict=True))
        if owner == tendon and dof in link_dofs(sys, link)
    ]
    number, pushed, moved = zip(*pairs, strict=True)
    work = rows(dynamics.subspace, moved).dot(rows(push, pushed))
    return sum_rows(work, number, len(wanted))


def _weights(table: CoordinateSums, each: Sequence[CoordinateSum]) -> jax.Array:
    """Return the weights of all degrees of freedom of sums, (dofs, batch)."""
    # The number -1 means the weight 1, which is the table's last row.
    last = len(table.weights) - 1
    return rows(table.weights, [k if k >= 0 else last for s in each for k in s.weights])


def _lengths(table: CoordinateSums, each: Sequence[CoordinateSum], q: jax.Array) -> jax.Array:
    """Return the lengths of sums, (sums, batch); zero for one without coordinates or a path."""
    size = max(q.shape[-1], table.length.shape[-1])
    last = len(table.length) - 1
    paths = rows(table.length, [s.path if s.path >= 0 else last for s in each])
    paths = jnp.broadcast_to(paths, (len(each), size))
    plain = [s if s.path < 0 else CoordinateSum((), (), ()) for s in each]
    if not any(s.q for s in plain):
        return paths
    at = rows(q, [i for s in plain for i in s.q])
    owner = tuple(i for i, s in enumerate(plain) for _ in s.q)
    return paths + sum_rows(_weights(table, plain) * at, owner, len(each))


def _jacobian(
    table: CoordinateSums,
    plan: ConstraintLayout,
    family: ConstraintFamily,
    mine: CouplingLayout,
    signs: jax.Array,
    slopes: jax.Array,
) -> tuple[Along | None, ...]:
    """Return J: weights of the first sum, and those of the second one times the slope."""
    owner = [i for i, s in enumerate(mine.first) for _ in s.dofs]
    other = [i for i, s in enumerate(mine.second) for _ in s.dofs]
    factors = rows(slopes, [0] * len(owner) + [1 + i for i in other])
    values = _weights(table, [*mine.first, *mine.second]) * factors * rows(signs, owner + other)
    dofs = [d for s in (*mine.first, *mine.second) for d in s.dofs]
    entries = list(zip(owner + other, dofs, strict=True))
    # Both sums may have a degree of freedom in common: its entries are added.
    place = {entry: i for i, entry in enumerate(dict.fromkeys(entries))}
    found = sum_rows(values, tuple(place[e] for e in entries), len(place))
    return at_places(plan, family, found, list(place))
