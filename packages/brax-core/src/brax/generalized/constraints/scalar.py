"""Scalar constraints: how stiff they are, and which force they give."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.generalized.constraints.constraint_laws import ScalarLaw, impedance, reference_parameters
from brax.impacts import MAX_SPEED

MIN_COMPLIANCE = 1e-15
"""The least compliance of a constraint."""


class ScalarSoftness(NamedTuple):
    """Numbers of constraints, constant during a step, (constraints, 1 or batch)."""

    solimp: tuple[jax.Array, ...]
    reference_stiffness: jax.Array
    """Stiffness and damping of the acceleration asked for."""
    reference_damping: jax.Array
    inverse_weight: jax.Array
    """Inverse weight of what is constrained."""

    def stiffness(self, share: jax.Array) -> jax.Array:
        """Force per unit of violated acceleration, at an impedance."""
        return share / jnp.maximum((1.0 - share) * self.inverse_weight, MIN_COMPLIANCE)


class ScalarConstraints(NamedTuple):
    """Constraints at a state, (constraints, batch)."""

    signs: jax.Array
    """Which way each acts, 1 or -1."""
    law: ScalarLaw
    reference_acc: jax.Array
    """The acceleration that it asks for at rest."""


def scalar_softness(
    sys: System, solref: jax.Array, solimp: jax.Array, inverse_weight: jax.Array
) -> ScalarSoftness:
    """Takes tables (constraints, 2, ...) and (constraints, 5, ...) apart."""
    numbers = columns(solimp)
    reference_stiffness, reference_damping = reference_parameters(
        columns(solref), numbers[1], sys.opt.timestep
    )
    return ScalarSoftness(numbers, reference_stiffness, reference_damping, inverse_weight)


def equality(
    soft: ScalarSoftness, distance: jax.Array, size: jax.Array | None = None
) -> ScalarConstraints:
    """A distance that is to be zero, of an impedance at `size`; by default its own."""
    share = impedance(soft.solimp, distance if size is None else size)
    unbounded = jnp.full_like(distance, jnp.inf)
    full = jnp.ones_like(distance)
    law = ScalarLaw(soft.stiffness(share) * full, -unbounded, unbounded)
    return ScalarConstraints(full, law, -soft.reference_stiffness * share * distance)


def limit(
    soft: ScalarSoftness,
    at: jax.Array,
    bounds: tuple[jax.Array, jax.Array],
    margin: jax.Array,
    farther: Sequence[bool],
) -> ScalarConstraints:
    """The nearer bound of each coordinate, or the farther one, which a margin may make act too."""
    below, above = at - bounds[0], bounds[1] - at
    lower = below < above
    if any(farther):
        lower = lower != np.asarray(farther)[:, None]
    signs = jnp.where(lower, 1.0, -1.0).astype(at.dtype)
    # A force of zero per infinite distance would be no number.
    distance = jnp.minimum(jnp.where(lower, below, above), MAX_SPEED) - margin
    share = impedance(soft.solimp, distance)
    stiffness = jnp.where(distance < 0, soft.stiffness(share), 0.0)
    zero = jnp.zeros_like(stiffness)
    return ScalarConstraints(
        signs,
        ScalarLaw(stiffness, zero, zero + jnp.inf),
        -soft.reference_stiffness * share * distance,
    )


def dry_friction(soft: ScalarSoftness, loss: jax.Array, like: jax.Array) -> ScalarConstraints:
    """Dry friction: a force against the motion, up to a bound."""
    share = impedance(soft.solimp, jnp.zeros_like(soft.inverse_weight))
    full = jnp.ones_like(like)
    law = ScalarLaw(soft.stiffness(share) * full, -loss * full, loss * full)
    return ScalarConstraints(full, law, jnp.zeros_like(like))


def columns(table: jax.Array) -> tuple[jax.Array, ...]:
    """The columns of a table (rows, columns, ...)."""
    return tuple(table[:, i] for i in range(table.shape[1]))


def stacked(*parts: jax.Array) -> jax.Array:
    """Joins tables (rows, ..., 1 or batch) row by row."""
    size = max(p.shape[-1] for p in parts)
    return jnp.concatenate([jnp.broadcast_to(p, (*p.shape[:-1], size)) for p in parts])


def joined(parts: Sequence[ScalarConstraints]) -> ScalarConstraints:
    """All constraints, one part after another."""
    return jax.tree.map(stacked, *parts) if len(parts) > 1 else parts[0]
