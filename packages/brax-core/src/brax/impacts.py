"""Impacts at their time within a step, for the pipelines with restitution.

`spring` and `positional` import it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

MAX_SPEED = 1e10
"""A speed above any that occurs [m/s or rad/s], which stands for infinity in bounds."""


def later(dist: jax.Array, hits: jax.Array, elasticity: jax.Array) -> jax.Array:
    """Return a mask of the contacts that are left to the next step.

    These are elastic contacts that close only because of another impact in the same step. In the
    next step they get the restitution of the speed that this impact gave them. If they were stopped
    in this step, as inelastic contacts are, that speed would be lost.

    Args:
        dist: distances at the start of the step [m].
        hits: mask of the contacts that the motion without contacts closes within the step.
        elasticity: coefficients of restitution.
    """
    return (dist > 0) & ~hits & (elasticity > 0)


class Impacts(NamedTuple):
    """The impacts of contacts during a step."""

    throws: jax.Array
    """True for contacts that bounce within the step."""
    leave: jax.Array
    """Normal velocity of these after the step, at least zero [m/s]."""
    share: jax.Array
    """Share of the step after the impact; one without an impact."""


def in_time(
    dist: jax.Array, along: jax.Array, fall: jax.Array, elasticity: jax.Array, dt: jax.Array
) -> Impacts:
    """Find the impacts within a step, and the velocities after them.

    The links move freely before and after the impact. So the end of a step is a continuous function
    of its start, and has the derivative of the continuous motion.

    Source: Hu et al. (2020), DiffTaichi, appendix on time of impact. Departure: gravity and other
    forces of the step change the velocities before and after the impact.

    Args:
        dist: distances at the start of the step [m].
        along: normal velocities there, negative for approach [m/s].
        fall: their changes over the step without contacts [m/s].
        elasticity: coefficients of restitution.
        dt: time step [s].
    """
    speed = -(along + fall)
    away = jnp.maximum(dist, 0.0)
    meets = speed * dt > away
    # Share of the step before the impact, at the velocity that moves the links over the step.
    before = away / jnp.where(meets, speed * dt, 1.0)
    share = 1.0 - before
    # Velocities of semi-implicit Euler are those half a step later. So the velocity at the impact,
    # a share `before` into the step, has half a step's change more.
    rebound = -elasticity * (along + (before + 0.5) * fall)
    throws = meets & (rebound > 0)
    leave = jnp.maximum(rebound + (share - 0.5) * fall, 0.0)
    return Impacts(throws, leave, jnp.where(throws, share, 1.0))
