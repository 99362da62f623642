"""Poses: frames in other frames, as NumPy arrays."""

from typing import NamedTuple

import numpy as np

from brax.builder.elements import IDENTITY_QUAT
from brax.components import Quat, Vec3


class Pose(NamedTuple):
    """A frame in another: `pos` (3,), unit quaternion `quat` (4,)."""

    pos: np.ndarray
    quat: np.ndarray

    def do(self, pos: np.ndarray, quat: np.ndarray | None = None) -> "Pose":
        """Return a frame, given in this one, in the frame that this one is given in."""
        turn = Quat(*self.quat)
        quat = np.array(IDENTITY_QUAT) if quat is None else quat
        return Pose(self.pos + np.array(turn.rotate(Vec3(*pos))), np.array(turn.mul(Quat(*quat))))

    def inverse(self) -> "Pose":
        """Return the outer frame in this one."""
        # The conjugate of a unit quaternion is its inverse.
        back = self.quat * np.array([1.0, -1.0, -1.0, -1.0])
        return Pose(-np.array(Quat(*back).rotate(Vec3(*self.pos))), back)
