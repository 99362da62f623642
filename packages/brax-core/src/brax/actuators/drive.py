"""From controls and motion to forces along the degrees of freedom: actuators and tendons."""

import functools
import operator
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax.actuators.interface import ActuatorParams
from brax.base import System
from brax.components import rows
from brax.tree import sum_rows


def joint_forces(sys: System, act: jax.Array, q: jax.Array, qd: jax.Array) -> jax.Array:
    """Forces of all actuators along the degrees of freedom, MuJoCo's `qfrc_actuator`.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        act: controls (nu, batch); one that is not a number counts as zero.
        q: coordinates (nq, batch).
        qd: rates (nv, batch).

    Returns:
        Forces [N or N m], (nv, batch).
    """
    strands = _actuator_strands(sys)
    force = _forces(sys, act, strands.along(q, strands.q), strands.along(qd, strands.qd))
    return strands.pull(force, sys.qd_size())


def drive_forces(sys: System, act: jax.Array, q: jax.Array, qd: jax.Array) -> jax.Array | None:
    """Forces of actuators and tendons, as `joint_forces`; None if the model has neither."""
    parts = []
    if sys.actuator_names:
        parts.append(joint_forces(sys, act, q, qd))
    if sys.tendon_names:
        parts.append(tendon_forces(sys, q, qd))
    return functools.reduce(operator.add, parts) if parts else None


def tendon_forces(sys: System, q: jax.Array, qd: jax.Array) -> jax.Array:
    """Forces of the tendons' springs and dampers along the degrees of freedom.

    A spring is at rest between the two lengths of `lengthspring`.

    Args:
        sys: the model, with at least one tendon, its leaves with a trailing batch axis.
        q: coordinates (nq, batch).
        qd: rates (nv, batch).

    Returns:
        Forces [N or N m], (nv, batch).
    """
    tendon, strands = sys.tendon, _tendon_strands(sys)
    length, velocity = strands.along(q, strands.q), strands.along(qd, strands.qd)
    rest = jnp.clip(length, tendon.lengthspring[:, 0], tendon.lengthspring[:, 1])
    pull = tendon.stiffness * (rest - length) - tendon.damping * velocity
    return strands.pull(pull, sys.qd_size())


class _Strands(NamedTuple):
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


def _strands(sys: System, joints: Sequence[Sequence[int]], weight: jax.Array) -> _Strands:
    flat = [j for each in joints for j in each]
    at = np.asarray(sys.joint_q_start(), int), np.asarray(sys.joint_qd_start(), int)
    q, qd = (tuple(starts[flat].tolist()) for starts in at)
    owner = tuple(i for i, each in enumerate(joints) for _ in each)
    return _Strands(owner, q, qd, weight, len(joints))


def _tendon_strands(sys: System) -> _Strands:
    return _strands(sys, sys.tendon_joints, sys.tendon.coef)


def _actuator_strands(sys: System) -> _Strands:
    joints = [
        (j,) if t < 0 else sys.tendon_joints[t]
        for j, t in zip(sys.actuator_joint, sys.actuator_tendon, strict=True)
    ]
    if max(sys.actuator_tendon) < 0:
        return _strands(sys, joints, sys.actuator.gear)
    coef = sys.tendon.coef
    first = np.cumsum([0, *map(len, sys.tendon_joints)])
    one = len(coef)  # the row after the last, which holds ones
    index = [
        k
        for t in sys.actuator_tendon
        for k in ([one] if t < 0 else range(int(first[t]), int(first[t + 1])))
    ]
    gear = rows(sys.actuator.gear, [a for a, each in enumerate(joints) for _ in each])
    weight = gear * rows(jnp.concatenate([coef, jnp.ones_like(coef[:1])]), index)
    return _strands(sys, joints, weight)


def _forces(sys: System, act: jax.Array, length: jax.Array, velocity: jax.Array) -> jax.Array:
    """Force of each actuator on what it drives, before its gear, (nu, batch)."""
    actuator = sys.actuator
    forces, order = [], []
    for kind in dict.fromkeys(sys.actuator_types):
        index = [i for i, t in enumerate(sys.actuator_types) if t is kind]
        given = rows(act, index)
        bounds = rows(actuator.ctrl_range, index)
        control = jnp.clip(jnp.where(jnp.isnan(given), 0.0, given), bounds[:, 0], bounds[:, 1])
        params = ActuatorParams(
            *(
                tuple(table[:, k] for k in range(table.shape[1]))
                for table in (rows(actuator.gainprm, index), rows(actuator.biasprm, index))
            )
        )
        limits = rows(actuator.force_range, index)
        force = kind.force(params, control, rows(length, index), rows(velocity, index))
        forces.append(jnp.clip(force, limits[:, 0], limits[:, 1]))
        order += index
    return rows(jnp.concatenate(forces, axis=0), np.argsort(order).tolist())
