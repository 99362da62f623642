"""How actuators and tendons are joined to joints: lengths from coordinates, and pulls back."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from brax.base import System
from brax.components import rows
from brax.tree import sum_rows


class JointTransmission(NamedTuple):
    """What joins actuators or tendons to joints, one row for each pair."""

    owner: tuple[int, ...]
    """The actuator or tendon."""
    q: tuple[int, ...]
    """The joint's coordinate."""
    qd: tuple[int, ...]
    """The joint's degree of freedom."""
    weight: jax.Array
    """How much longer the owner gets with the coordinate, (rows, batch)."""
    n: int
    """Number of owners."""

    def along(self, values: jax.Array, index: tuple[int, ...]) -> jax.Array:
        """Lengths of the owners from coordinates, or their rates, found at `index`."""
        return sum_rows(self.weight * rows(values, index), self.owner, self.n)

    def pull(self, force: jax.Array, nv: int) -> jax.Array:
        """What the owners' forces are along the degrees of freedom, (nv, batch)."""
        return sum_rows(self.weight * rows(force, self.owner), self.qd, nv)


def tendon_transmission(sys: System) -> JointTransmission:
    """What joins the tendons to joints."""
    return _joint_transmission(sys, sys.tendon_joints, sys.tendon.coef)


def actuator_transmission(sys: System) -> JointTransmission:
    """What joins the actuators to the joints that they drive; nothing of a tendon's or site's."""
    joints = [(j,) if j >= 0 else () for j in sys.actuator_joint]
    driving = [a for a, j in enumerate(sys.actuator_joint) if j >= 0]
    return _joint_transmission(sys, joints, rows(sys.actuator.gear, driving))


def _joint_transmission(
    sys: System, joints: Sequence[Sequence[int]], weight: jax.Array
) -> JointTransmission:
    flat = [j for each in joints for j in each]
    at = np.asarray(sys.joint_q_start(), int), np.asarray(sys.joint_qd_start(), int)
    q, qd = (tuple(starts[flat].tolist()) for starts in at)
    owner = tuple(i for i, each in enumerate(joints) for _ in each)
    return JointTransmission(owner, q, qd, weight, len(joints))
