"""Bodies without joints become part of the body that carries them.

All arithmetic is MuJoCo's own, in double precision, on a compiled model that is only read.
"""

from typing import NamedTuple

import mujoco
import numpy as np


class Pose(NamedTuple):
    """A frame in another: `pos` (3,), unit quaternion `quat` (4,)."""

    pos: np.ndarray
    quat: np.ndarray

    def do(self, pos: np.ndarray, quat: np.ndarray) -> "Pose":
        """Maps a frame given in this one into the one that this is given in."""
        out = Pose(np.zeros(3), np.zeros(4))
        mujoco.mju_mulPose(*out, *self, pos, quat)
        return out


class Mass(NamedTuple):
    """A mass distribution in a body's frame."""

    mass: float
    pos: np.ndarray
    """Centre of mass [m], (3,)."""
    quat: np.ndarray
    """Principal axes, (4,)."""
    inertia: np.ndarray
    """Principal moments [kg m^2], (3,)."""


IDENTITY = Pose(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))


def carriers(model: mujoco.MjModel) -> tuple[list[int], list[Pose]]:
    """For each body: the nearest body at or above it that has joints, and its frame in that one.

    Body 0, the world, carries what is fixed to it.
    """
    owner, frame = [0], [IDENTITY]
    for body in range(1, model.nbody):
        parent = model.body_parentid[body]
        moves = model.body_jntnum[body] > 0
        owner.append(body if moves else owner[parent])
        frame.append(IDENTITY if moves else frame[parent].do(*_pose(model, body)))
    return owner, frame


def link_pose(model: mujoco.MjModel, body: int, frame: list[Pose]) -> Pose:
    """The frame of a body with joints in the one that carries its parent."""
    return frame[model.body_parentid[body]].do(*_pose(model, body))


def fused_mass(model: mujoco.MjModel, parts: list[int], frame: list[Pose]) -> Mass:
    """The mass distribution of several bodies in the frame of the one that carries them.

    Source: parallel-axis theorem, for example Featherstone (2008), eq. 2.63.
    """
    massive = [b for b in parts if model.body_mass[b] > 0] or parts[:1]
    frames = [frame[b].do(model.body_ipos[b], model.body_iquat[b]) for b in massive]
    masses, moments = model.body_mass[massive], model.body_inertia[massive]
    if len(massive) == 1:
        return Mass(float(masses[0]), *frames[0], moments[0])
    total = masses.sum()
    centre = sum(m * f.pos for m, f in zip(masses, frames, strict=True)) / total
    tensor = sum(
        _tensor(f.quat, i) + m * _offset(f.pos - centre)
        for m, i, f in zip(masses, moments, frames, strict=True)
    )
    principal, axes = np.linalg.eigh(tensor)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, axes.reshape(-1))
    return Mass(float(total), centre, quat, principal)


def _pose(model: mujoco.MjModel, body: int) -> tuple[np.ndarray, np.ndarray]:
    return model.body_pos[body], model.body_quat[body]


def _tensor(quat: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Inertia tensor of principal moments along turned axes."""
    flat = np.zeros(9)
    mujoco.mju_quat2Mat(flat, quat)
    axes = flat.reshape(3, 3)
    return axes @ np.diag(moments) @ axes.T


def _offset(d: np.ndarray) -> np.ndarray:
    """Inertia tensor of a unit point mass at `d`."""
    return np.dot(d, d) * np.eye(3) - np.outer(d, d)
