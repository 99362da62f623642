"""How easily links and degrees of freedom move at rest: the scale of soft constraints.

MuJoCo's `body_invweight0` and `dof_invweight0`. They are computed once, when a model is built, and
stay as they are when masses are changed later.

Source: MuJoCo's documentation, chapter Computation, section Constraint model: diagApprox.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.components import Vec3
from brax.joints import JointParams

Array = np.ndarray


def inverse_weights(sys: System) -> tuple[Array, Array]:
    """Inverse weights of a concrete model, in double precision.

    Returns:
        For each link, of its centre of mass [1/kg] and of its rotation [1/(kg m^2)], (n_links, 2);
        for each degree of freedom, (nv,).
    """
    pos, rot = _rest(sys)
    subspace = _subspace(sys, pos, rot)
    jacobians = _jacobians(sys, subspace, pos, rot)
    mass = np.diag(np.asarray(sys.dof.armature, float))
    for i, jacobian in enumerate(jacobians):
        turned = rot[i] @ _matrix(sys.link.inertia.transform.rot[i])
        moments = turned @ np.diag(np.asarray(sys.link.inertia.i[i], float)) @ turned.T
        ang, lin = jacobian[:3], jacobian[3:]
        mass += ang.T @ moments @ ang + float(sys.link.inertia.mass[i]) * lin.T @ lin
    inverse = np.linalg.pinv(mass, hermitian=True)
    links = [
        [np.einsum("ij,jk,ik", part, inverse, part) / 3 for part in (j[3:], j[:3])]
        for j in jacobians
    ]
    return np.array(links).reshape(-1, 2), _by_kind(sys, subspace, np.diag(inverse))


def _by_kind(sys: System, subspace: Array, diagonal: Array) -> Array:
    """Averages over the turning, and over the other, degrees of freedom of each joint."""
    turns = np.abs(subspace[:, :3]).sum(axis=1) > 0
    kinds = list(zip(sys.dof_joint(), turns.tolist(), strict=True))
    return np.array([diagonal[[k == kind for k in kinds]].mean() for kind in kinds])


def _rest(sys: System) -> tuple[Array, list[Array]]:
    """Link frames with every joint at rest."""
    pos: list[Array] = []
    rot: list[Array] = []
    for i, parent in enumerate(sys.link_parents):
        here = np.asarray(sys.link.transform.pos[i], float)
        turn = _matrix(sys.link.transform.rot[i])
        if parent >= 0:
            here, turn = pos[parent] + rot[parent] @ here, rot[parent] @ turn
        pos.append(here)
        rot.append(turn)
    return np.array(pos), rot


def _subspace(sys: System, pos: Array, rot: list[Array]) -> Array:
    """Unit velocities of the degrees of freedom, angular and, at the world's origin, linear."""
    out = []
    for joint, (kind, link) in enumerate(zip(sys.joint_types, sys.joint_link, strict=True)):
        axis = np.asarray(sys.joint.axis[joint], float)
        user = np.asarray(sys.joint.user[joint], float)
        params = JointParams(_column(axis), tuple(x[None, None] for x in user))
        point = pos[link] + rot[link] @ np.asarray(sys.joint.pos[joint], float)
        for twist in kind.motion_subspace(params, kind.zero(np.zeros((1, 1)))):
            ang, vel = (rot[link] @ _numbers(part) for part in twist)
            out.append(np.concatenate([ang, vel + np.cross(point, ang)]))
    return np.array(out).reshape(-1, 6)


def _jacobians(sys: System, subspace: Array, pos: Array, rot: list[Array]) -> list[Array]:
    """For each link, its angular velocity and that of its centre, per rate, (6, nv)."""
    owners = np.array(sys.dof_link(), int)
    moved: list[Array] = []
    out = []
    for i, parent in enumerate(sys.link_parents):
        moved.append((owners == i) | (moved[parent] if parent >= 0 else False))
        centre = pos[i] + rot[i] @ np.asarray(sys.link.inertia.transform.pos[i], float)
        ang, lin = subspace[:, :3], subspace[:, 3:]
        columns = np.concatenate([ang, lin + np.cross(ang, centre)], axis=1)
        out.append((columns * moved[i][:, None]).T)
    return out


def _column(v: Array) -> Vec3:
    return Vec3(*(jnp.asarray([[x]]) for x in v))


def _numbers(v: Vec3 | None) -> Array:
    return np.zeros(3) if v is None else np.array([float(np.asarray(c).item()) for c in v])


def _matrix(quat: Any) -> Array:
    w, x, y, z = np.asarray(quat, float)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
