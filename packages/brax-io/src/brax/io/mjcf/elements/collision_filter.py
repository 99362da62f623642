"""Which geoms of a compiled model can meet."""

import mujoco
import numpy as np

from brax.io.mjcf.names import is_flag_set


def can_collide(model: mujoco.MjModel) -> np.ndarray:
    """Return whether each pair of geoms is tested for contact, (ngeom, ngeom).

    MuJoCo's filter: contype and conaffinity, bodies without a joint between them, a body and
    its carrier unless that is the world, and excluded pairs of bodies. Explicit pairs pass it.
    """
    if no_contact(model):
        return np.zeros((model.ngeom, model.ngeom), bool)
    body = model.geom_bodyid
    weld = model.body_weldid
    carrier = weld[model.body_parentid[weld]]
    of, up = weld[body], carrier[body]
    bits = (model.geom_contype[:, None] & model.geom_conaffinity[None, :]) != 0
    nested = (of[:, None] == up[None, :]) & (of[:, None] != 0)
    excluded = np.zeros((model.nbody, model.nbody), bool)
    first, second = excluded_bodies(model)
    excluded[first, second] = excluded[second, first] = True
    meets = (
        (bits | bits.T)
        & (of[:, None] != of[None, :])
        & ~(nested | nested.T)
        & ~excluded[np.ix_(body, body)]
    )
    first, second = model.pair_geom1, model.pair_geom2
    meets[first, second] = meets[second, first] = True
    return meets


def excluded_bodies(model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """First and second body of each `<exclude>`."""
    return model.exclude_signature >> 16, model.exclude_signature & 0xFFFF


def no_contact(model: mujoco.MjModel) -> bool:
    """Return whether the file's flags turn contact off."""
    return is_flag_set(model.opt.disableflags, mujoco.mjtDisableBit, ("CONTACT", "CONSTRAINT"))
