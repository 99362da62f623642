"""How actuators and tendons are joined to joints: lengths from coordinates, and pulls back."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.components import rows
from brax.tree import sum_rows


class Strands(NamedTuple):
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


def tendon_strands(sys: System) -> Strands:
    """What joins the tendons to joints."""
    return _strands(sys, sys.tendon_joints, sys.tendon.coef)


def actuator_strands(sys: System) -> Strands:
    """What joins the actuators to joints, by themselves or by a tendon; nothing of a site's."""
    joints = [
        sys.tendon_joints[t] if t >= 0 else (j,) if j >= 0 else ()
        for j, t in zip(sys.actuator_joint, sys.actuator_tendon, strict=True)
    ]
    if min(sys.actuator_joint) >= 0:
        return _strands(sys, joints, sys.actuator.gear)
    coef = sys.tendon.coef
    first = np.cumsum([0, *map(len, sys.tendon_joints)])
    one = len(coef)  # the row after the last, which holds ones
    index = [
        k
        for t, each in zip(sys.actuator_tendon, joints, strict=True)
        for k in (range(int(first[t]), int(first[t + 1])) if t >= 0 else [one] * len(each))
    ]
    gear = rows(sys.actuator.gear, [a for a, each in enumerate(joints) for _ in each])
    weight = gear * rows(jnp.concatenate([coef, jnp.ones((1, *coef.shape[1:]), coef.dtype)]), index)
    return _strands(sys, joints, weight)


def _strands(sys: System, joints: Sequence[Sequence[int]], weight: jax.Array) -> Strands:
    flat = [j for each in joints for j in each]
    at = np.asarray(sys.joint_q_start(), int), np.asarray(sys.joint_qd_start(), int)
    q, qd = (tuple(starts[flat].tolist()) for starts in at)
    owner = tuple(i for i, each in enumerate(joints) for _ in each)
    return Strands(owner, q, qd, weight, len(joints))
