"""Impacts at their time within a step, for the pipelines that throw back what touches."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

MAX_SPEED = 1e10
"""A speed that nothing reaches [m/s or rad/s]."""


def later(dist: jax.Array, hits: jax.Array, elasticity: jax.Array) -> jax.Array:
    """Which contacts are left to the next step: elastic ones that only another impact brings about.

    They are then thrown back by the speed that the impact gave them. Stopped in this step, as what
    is not elastic is, they would lose it.

    Args:
        dist: distances at the start of the step.
        hits: where the free motion meets within the step.
        elasticity: coefficients of restitution.
    """
    return (dist > 0) & ~hits & (elasticity > 0)


class Impacts(NamedTuple):
    """What happens at contacts during a step."""

    throws: jax.Array
    """True if it is thrown back."""
    leave: jax.Array
    """Its normal velocity after the step then, at least zero."""
    share: jax.Array
    """Share of the step after the impact, in which its impulse acts; one without an impact."""


def in_time(
    dist: jax.Array, along: jax.Array, fall: jax.Array, elasticity: jax.Array, dt: jax.Array
) -> Impacts:
    """Finds impacts within a step, and what is thrown back by them.

    It flies freely before and after the impact. So the end of a step is a continuous function of
    its start, whose derivative is that of the motion.

    Source: Hu et al. (2020), DiffTaichi, appendix on time of impact. Departure: what acts on the
    links during the step counts in the velocity that they meet with, and that they leave with.

    Args:
        dist: distances at the start of the step.
        along: normal velocities there, negative where they approach.
        fall: their changes over the step without contacts.
        elasticity: coefficients of restitution.
        dt: time step.
    """
    speed = -(along + fall)
    away = jnp.maximum(dist, 0.0)
    meets = speed * dt > away
    before = away / jnp.where(meets, speed * dt, 1.0)
    share = 1.0 - before
    # Euler's velocities are half a kick ahead of the motion, before the impact and after it.
    rebound = -elasticity * (along + (before + 0.5) * fall)
    throws = meets & (rebound > 0)
    leave = jnp.maximum(rebound + (share - 0.5) * fall, 0.0)
    return Impacts(throws, leave, jnp.where(throws, share, 1.0))
