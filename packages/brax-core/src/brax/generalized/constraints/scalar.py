"""Scalar constraints: equalities, limits and dry friction of one number each."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.generalized.constraints.constraint_laws import ScalarLaw, impedance, reference_parameters
from brax.impacts import MAX_SPEED

MIN_REGULARIZER = 1e-15
"""Smallest regularizer R of a constraint, MuJoCo's mjMINVAL."""


class ScalarSoftness(NamedTuple):
    """Softness of constraints, constant during a step, (constraints, 1 or batch)."""

    solimp: tuple[jax.Array, ...]
    """Impedance parameters, MuJoCo's `solimp`."""
    reference_stiffness: jax.Array
    """k of the reference acceleration."""
    reference_damping: jax.Array
    """b of the reference acceleration."""
    inverse_weight: jax.Array
    """Inverse weight of what is constrained, MuJoCo's `diagApprox`."""

    def stiffness(self, imp: jax.Array) -> jax.Array:
        """Return D = 1 / R at an impedance, with R = (1 - d) / d diagApprox."""
        # Written as d / ((1 - d) diagApprox), which needs one division.
        return imp / jnp.maximum((1.0 - imp) * self.inverse_weight, MIN_REGULARIZER)


class ScalarConstraints(NamedTuple):
    """Constraints at a state, (constraints, batch)."""

    signs: jax.Array
    """Direction in which each acts: 1 or -1."""
    law: ScalarLaw
    """The constraint law."""
    reference_acc: jax.Array
    """The part -k d(r) r of the reference acceleration."""


def scalar_softness(
    sys: System, solref: jax.Array, solimp: jax.Array, inverse_weight: jax.Array
) -> ScalarSoftness:
    """Return the softness from tables of `solref` and `solimp`, (constraints, 2 or 5, ...)."""
    numbers = columns(solimp)
    reference_stiffness, reference_damping = reference_parameters(
        columns(solref), numbers[1], sys.opt.timestep
    )
    return ScalarSoftness(numbers, reference_stiffness, reference_damping, inverse_weight)


def equality(
    soft: ScalarSoftness, distance: jax.Array, size: jax.Array | None = None
) -> ScalarConstraints:
    """Return equalities: a distance that is to be zero, with the impedance at `size`.

    By default `size` is the distance itself. A `connect` or `weld` passes the norm of all its rows.
    """
    imp = impedance(soft.solimp, distance if size is None else size)
    unbounded = jnp.full_like(distance, jnp.inf)
    full = jnp.ones_like(distance)
    law = ScalarLaw(soft.stiffness(imp) * full, -unbounded, unbounded)
    return ScalarConstraints(full, law, -soft.reference_stiffness * imp * distance)


def limit(
    soft: ScalarSoftness,
    at: jax.Array,
    bounds: tuple[jax.Array, jax.Array],
    margin: jax.Array,
    farther: Sequence[bool],
) -> ScalarConstraints:
    """Return the limits of coordinates: of each the nearer bound, or the farther one.

    Args:
        soft: the softness.
        at: the coordinates, (constraints, batch).
        bounds: lower and upper bounds.
        margin: distance from a bound below which it acts.
        farther: for each constraint, True for the farther bound. A large margin lets both act.
    """
    below, above = at - bounds[0], bounds[1] - at
    # One row serves both bounds: at most one acts where the margin is smaller than half the range.
    lower = below < above
    if any(farther):
        lower = lower != np.asarray(farther)[:, None]
    signs = jnp.where(lower, 1.0, -1.0).astype(at.dtype)
    # A bound may be infinite: zero times an infinite distance would be NaN.
    distance = jnp.minimum(jnp.where(lower, below, above), MAX_SPEED) - margin
    imp = impedance(soft.solimp, distance)
    # Not active: D is zero, and so is the force.
    stiffness = jnp.where(distance < 0, soft.stiffness(imp), 0.0)
    zero = jnp.zeros_like(stiffness)
    return ScalarConstraints(
        signs,
        ScalarLaw(stiffness, zero, zero + jnp.inf),
        -soft.reference_stiffness * imp * distance,
    )


def dry_friction(soft: ScalarSoftness, loss: jax.Array, like: jax.Array) -> ScalarConstraints:
    """Return dry friction: a force against the motion, up to `loss`."""
    # Dry friction has no position: r is zero, and aref is -b qvel.
    imp = impedance(soft.solimp, jnp.zeros_like(soft.inverse_weight))
    full = jnp.ones_like(like)
    law = ScalarLaw(soft.stiffness(imp) * full, -loss * full, loss * full)
    return ScalarConstraints(full, law, jnp.zeros_like(like))


def columns(table: jax.Array) -> tuple[jax.Array, ...]:
    """Return the columns of a table (rows, columns, ...)."""
    return tuple(table[:, i] for i in range(table.shape[1]))


def stacked(*parts: jax.Array) -> jax.Array:
    """Return tables (rows, ..., 1 or batch) joined row by row."""
    size = max(p.shape[-1] for p in parts)
    return jnp.concatenate([jnp.broadcast_to(p, (*p.shape[:-1], size)) for p in parts])


def joined(parts: Sequence[ScalarConstraints]) -> ScalarConstraints:
    """Return all constraints of several parts, one part after another."""
    return jax.tree.map(stacked, *parts) if len(parts) > 1 else parts[0]
