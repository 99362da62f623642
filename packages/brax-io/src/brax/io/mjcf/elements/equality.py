"""Equality constraints of MuJoCo's compiled model."""

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from brax.builder import ModelBuilder
from brax.io.mjcf.names import Names, keyword


def equalities(
    builder: ModelBuilder,
    model: mujoco.MjModel,
    places: Mapping[tuple[str, int], str],
) -> None:
    """Add the constraints that are active and supported; `support` reports the others.

    Args:
        builder: the model builder.
        model: MuJoCo's model.
        places: the place of each element in the file.
    """
    named = Names(model)
    for e in np.flatnonzero(model.eq_active0).tolist():
        kind = keyword(mujoco.mjtEq, model.eq_type[e])
        if kind in _ADD:
            softness = dict(solref=model.eq_solref[e], solimp=model.eq_solimp[e])
            line = places.get(("equality", e), "")
            common = dict(name=named["equality"][e], line=line, **softness)
            _ADD[kind](builder, model, e, named, common)


def _objects(model: mujoco.MjModel, e: int) -> tuple[int, int]:
    return int(model.eq_obj1id[e]), int(model.eq_obj2id[e])


def _coupling(
    builder: ModelBuilder, model: mujoco.MjModel, e: int, named: Names, common: dict[str, Any]
) -> None:
    kind = keyword(mujoco.mjtEq, model.eq_type[e])
    first, second = (named[kind][k] if k >= 0 else "" for k in _objects(model, e))
    builder.add_coupling(first, second, of=kind, polycoef=model.eq_data[e, :5], **common)


def _ends(model: mujoco.MjModel, e: int, named: Names) -> tuple[list[str], tuple[int, int] | None]:
    """Return the two bodies, and the sites on them if the constraint is between sites."""
    pair = _objects(model, e)
    if model.eq_objtype[e] != mujoco.mjtObj.mjOBJ_SITE:
        return [named["body"][k] for k in pair], None
    return [named["body"][model.site_bodyid[k]] for k in pair], pair


def _connect(
    builder: ModelBuilder, model: mujoco.MjModel, e: int, named: Names, common: dict[str, Any]
) -> None:
    (first, second), sites = _ends(model, e, named)
    data = model.eq_data[e]
    # For bodies, eq_data holds the anchor in the frame of each; for sites, they are the anchors.
    points = data[:6].reshape(2, 3) if sites is None else model.site_pos[list(sites)]
    builder.add_connect(first, second, anchor=points[0], anchor2=points[1], **common)


def _weld(
    builder: ModelBuilder, model: mujoco.MjModel, e: int, named: Names, common: dict[str, Any]
) -> None:
    (first, second), sites = _ends(model, e, named)
    data = model.eq_data[e]
    # eq_data of a weld: anchor on the second body (3), pose of the second body relative to the
    # first (7), torquescale.
    anchor, relpose = data[:3], data[3:10]
    if sites is not None:
        anchor, relpose = model.site_pos[sites[1]], _site_pose(model, *sites)
    scale = float(data[10])
    builder.add_weld(first, second, anchor=anchor, relpose=relpose, torquescale=scale, **common)


def _site_pose(model: mujoco.MjModel, first: int, second: int) -> np.ndarray:
    """Return the pose at which two sites coincide, as `relpose` of their bodies.

    The position is that of the first site in its body. The rotation is that of the second body
    relative to the first when the sites have the same orientation.
    """
    back, turn = np.zeros(4), np.zeros(4)
    mujoco.mju_negQuat(back, model.site_quat[second])
    mujoco.mju_mulQuat(turn, model.site_quat[first], back)
    return np.concatenate([model.site_pos[first], turn])


_ADD = {"connect": _connect, "weld": _weld, "joint": _coupling, "tendon": _coupling}
