"""Impulses of contacts, equality constraints and spatial tendons, summed over physics steps."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from brax.base import Force, Forces, System
from brax.components import Vec3, stack
from brax.spatial import Spatial


class Impulses(NamedTuple):
    """Impulses of contacts, equality constraints and spatial tendons, world axes.

    Arrays have a trailing batch axis.
    """

    contact: jax.Array
    """Impulse on the second geom of each contact [N s], (n_contacts, 3, batch)."""
    load: Spatial
    """Impulse on each link, in the model's order: the angular one about the world's origin [N m s],
    and the linear one [N s], components (n_links, batch)."""


def every_contact(sys: System) -> int:
    """Return the number of candidate contact points of a model."""
    return sum(len(g.geom1) * g.collider.n_contacts for g in sys.collisions)


def no_forces(sys: System, contacts: int, like: jax.Array) -> Forces:
    """Return zero forces of one environment, with the element type of `like`."""
    links = jnp.zeros((sys.num_links(), 3), like.dtype)
    return Forces(
        jnp.zeros(sys.qd_size(), like.dtype),
        jnp.zeros((contacts, 3), like.dtype),
        Force(links, links),
    )


def zero(forces: Forces) -> Impulses:
    """Return zero impulses, with the shapes of forces with a trailing batch axis."""
    none = jnp.zeros_like(forces.load.ang[:, 0])
    still = Vec3(none, none, none)
    return Impulses(jnp.zeros_like(forces.contact), Spatial(still, still))


def more(before: Impulses | None, now: Impulses | None) -> Impulses | None:
    """Return the sum of impulses; None if they are not reported."""
    if before is None or now is None:
        return None
    return jax.tree.map(lambda a, b: a + b, before, now)


def mean_forces(impulses: Impulses, change: jax.Array, time: jax.Array) -> Forces:
    """Return the mean forces and accelerations of a step.

    Args:
        impulses: impulses of the step.
        change: change of the joint velocities over it, (nv, batch).
        time: its length [s].
    """
    load = Force(stack(impulses.load.ang), stack(impulses.load.lin))
    return Forces(*(jax.tree.map(lambda x: x / time, x) for x in (change, impulses.contact, load)))
