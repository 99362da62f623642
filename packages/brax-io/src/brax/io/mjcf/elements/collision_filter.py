"""The pairs of geoms in a compiled model that can collide."""

import mujoco
import numpy as np

from brax.io.mjcf.names import disabled


def can_collide(model: mujoco.MjModel) -> np.ndarray:
    """Return whether each pair of geoms is tested for contact, (ngeom, ngeom).

    MuJoCo's filter (documentation, Computation, "Selection"): contype and conaffinity, bodies
    without a joint between them, a body and its parent unless that is the world (flag
    `filterparent`), and excluded pairs of bodies. Explicit pairs skip the filter.
    """
    if no_contact(model):
        return np.zeros((model.ngeom, model.ngeom), bool)
    body = model.geom_bodyid
    # Bodies without a joint between them have one weld id, which stands for their common link.
    weld = model.body_weldid
    parent = weld[model.body_parentid[weld]]
    own, above = weld[body], parent[body]
    bits = (model.geom_contype[:, None] & model.geom_conaffinity[None, :]) != 0
    # The world (0) is no parent here: everything may touch the floor.
    nested = (own[:, None] == above[None, :]) & (own[:, None] != 0)
    excluded = np.zeros((model.nbody, model.nbody), bool)
    first, second = excluded_bodies(model)
    excluded[first, second] = excluded[second, first] = True
    collides = (
        (bits | bits.T)
        & (own[:, None] != own[None, :])
        & ~((nested | nested.T) & (not disabled(model, "FILTERPARENT")))
        & ~excluded[np.ix_(body, body)]
    )
    first, second = model.pair_geom1, model.pair_geom2
    collides[first, second] = collides[second, first] = True
    return collides


def excluded_bodies(model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second body of each `<exclude>`.

    MuJoCo packs both into one number, 16 bits each.
    """
    return model.exclude_signature >> 16, model.exclude_signature & 0xFFFF


def no_contact(model: mujoco.MjModel) -> bool:
    """Return whether the file's flags disable contacts."""
    return disabled(model, "CONTACT", "CONSTRAINT")
