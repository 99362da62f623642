"""Transmissions to joints: lengths from coordinates, and forces along degrees of freedom."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from brax.base import System
from brax.components import rows
from brax.tree import sum_rows


class JointTransmission(NamedTuple):
    """The Jacobian of owners' lengths by joint coordinates, one row for each entry."""

    owner: tuple[int, ...]
    """The actuator or tendon."""
    q: tuple[int, ...]
    """Index of the joint's coordinate."""
    qd: tuple[int, ...]
    """Index of the joint's degree of freedom."""
    weight: jax.Array
    """Derivative of the owner's length by the coordinate, (rows, batch)."""
    n: int
    """Number of owners."""

    def along(self, values: jax.Array, index: tuple[int, ...]) -> jax.Array:
        """Return the owners' lengths from coordinates, or their velocities, read at `index`."""
        return sum_rows(self.weight * rows(values, index), self.owner, self.n)

    def pull(self, force: jax.Array, nv: int) -> jax.Array:
        """Return the owners' forces along the degrees of freedom, (nv, batch): the transpose."""
        return sum_rows(self.weight * rows(force, self.owner), self.qd, nv)


def tendon_transmission(sys: System) -> JointTransmission:
    """Return the transmission from fixed tendons to joints."""
    return _joint_transmission(sys, sys.tendon_joints, sys.tendon.coef)


def actuator_transmission(sys: System) -> JointTransmission:
    """Return the transmission from actuators to joints with one degree of freedom."""
    plain = [j >= 0 and sys.joint_types[j].qd_width == 1 for j in sys.actuator_joint]
    joints = [(j,) if one else () for j, one in zip(sys.actuator_joint, plain, strict=True)]
    driving = [a for a, one in enumerate(plain) if one]
    return _joint_transmission(sys, joints, rows(sys.actuator.gear, driving))


def _joint_transmission(
    sys: System, joints: Sequence[Sequence[int]], weight: jax.Array
) -> JointTransmission:
    """Return the transmission to each owner's joints, with weights in the same order."""
    # One row for each joint of each owner: a fixed tendon has several, an actuator one.
    flat = [j for each in joints for j in each]
    at = np.asarray(sys.joint_q_start(), int), np.asarray(sys.joint_qd_start(), int)
    q, qd = (tuple(starts[flat].tolist()) for starts in at)
    owner = tuple(i for i, each in enumerate(joints) for _ in each)
    return JointTransmission(owner, q, qd, weight, len(joints))
