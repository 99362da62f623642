"""Inertia of links on fixed joints, which are one body with the link that carries them.

MuJoCo's compiler checks the inertia of each link. But files from CAD programs often have links on
fixed joints whose own inertia no body can have: only the sum of a rigid group moves.
"""

from typing import Any, NamedTuple

import mujoco
import numpy as np


class _Part(NamedTuple):
    """A link of a rigid group, and its frame in that of the group's first link."""

    body: Any
    pos: np.ndarray
    rot: np.ndarray


def merge_impossible_inertias(spec: mujoco.MjSpec) -> None:
    """Give the sum of a rigid group's inertias to its first link, if a part's own is impossible.

    Groups in which all inertias are possible stay as they are. In a group that is fixed to the
    world the impossible inertias become zero, since nothing moves there.
    """
    groups: dict[str, list[_Part]] = {}
    for body in spec.bodies[1:]:
        parent = None if body.joints else groups.get(body.parent.name)
        if parent is None:
            groups[body.name] = [_Part(body, np.zeros(3), np.eye(3))]
            continue
        base = next(part for part in parent if part.body.name == body.parent.name)
        pos, rot = base.pos + base.rot @ body.pos, base.rot @ _matrix(body.quat)
        parent.append(_Part(body, pos, rot))
        groups[body.name] = parent
    for group in {id(group): group for group in groups.values()}.values():
        # A link without <inertial> has the inertia of its shapes, which MuJoCo computes later.
        given = [part for part in group if part.body.explicitinertial]
        wrong = [part.body for part in given if _is_impossible(part.body, spec)]
        first = group[0].body
        if not first.joints:
            for body in wrong:
                _clear(body)
        elif wrong and first.explicitinertial:
            _sum_up(given)


def _sum_up(parts: list[_Part]) -> None:
    """Give the first link of a rigid group the mass and inertia of all."""
    masses = np.array([part.body.mass for part in parts])
    places = np.array([part.pos + part.rot @ part.body.ipos for part in parts])
    if not masses.sum() > 0:
        return
    centre = masses @ places / masses.sum()
    inertia = np.zeros((3, 3))
    for part, mass, place in zip(parts, masses, places, strict=True):
        axes, arm = part.rot @ _matrix(part.body.iquat), place - centre
        # The parallel axis theorem.
        inertia += axes @ _tensor(part.body) @ axes.T
        inertia += mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
        _clear(part.body)
    first = parts[0].body
    first.mass, first.ipos, first.iquat = masses.sum(), centre, (1, 0, 0, 0)
    first.fullinertia = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]


def _is_impossible(body: object, spec: mujoco.MjSpec) -> bool:
    """Return whether MuJoCo's compiler would reject a body's inertia."""
    low, middle, high = np.linalg.eigvalsh(_tensor(body))
    if low <= 0:
        return bool(high > 0)
    # The compiler's option `balanceinertia` replaces moments that violate the triangle inequality.
    return bool(low + middle < high) and not spec.compiler.balanceinertia


def _tensor(body: Any) -> np.ndarray:
    """Return a body's inertia tensor in its inertial frame."""
    if np.isnan(body.fullinertia[0]):  # only the moments are given
        return np.diag(body.inertia)
    xx, yy, zz, xy, xz, yz = body.fullinertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _clear(body: Any) -> None:
    """Leave a body without mass."""
    body.mass, body.inertia = 0.0, np.zeros(3)
    body.fullinertia = (np.nan, 0.0, 0.0, 0.0, 0.0, 0.0)  # MuJoCo's mark of one that is not given


def _matrix(quat: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a quaternion."""
    out = np.zeros(9)
    mujoco.mju_quat2Mat(out, quat)
    return out.reshape(3, 3)
