"""Impulses of a physics step, as sensors read them, in maximal coordinates."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from brax.components import Vec3, rows, zero_vec
from brax.impulses import Impulses
from brax.spatial import Spatial
from brax.tree import Layout, join


def step_impulses(
    plan: Layout,
    origins: Vec3,
    contact: jax.Array,
    *momenta: Sequence[Spatial | None],
) -> Impulses:
    """Return the sum of what contacts, equalities and tendons add to the momenta of the links.

    Args:
        plan: the layout.
        origins: the common point of each link's tree, one row if there is one tree.
        contact: impulses on the second geoms, world axes, (n_contacts, 3, batch).
        momenta: about the common points, by group of links; None where nothing acts.
    """
    summed = []
    for group, *parts in zip(plan.groups, *momenta, strict=True):
        none = zero_vec(jnp.zeros((len(group.links), contact.shape[-1]), contact.dtype))
        whole = Spatial(none, none)
        for part in parts:
            whole = whole if part is None else whole + part
        summed.append(whole)
    load = join(summed)
    # From the common points to the world's origin, where `Impulses` are taken about.
    load = Spatial(load.ang + origins.cross(load.lin), load.lin)
    return Impulses(contact, rows(load, plan.position))
