"""From controls to joint forces, for all actuators of a model."""

import jax
import jax.numpy as jnp
import numpy as np

from brax.actuators.interface import ActuatorParams
from brax.base import System
from brax.components import rows


def actuator_forces(sys: System, act: jax.Array, q: jax.Array, qd: jax.Array) -> jax.Array:
    """Force of each actuator on its joint.

    Args:
        sys: the model, its leaves with a trailing batch axis.
        act: controls (nu, batch); one that is not a number counts as zero.
        q: coordinates (nq, batch).
        qd: rates (nv, batch).

    Returns:
        Joint forces [N or N m], (nu, batch), gear included.
    """
    actuator = sys.actuator
    starts = np.asarray(sys.joint_q_start()), np.asarray(sys.joint_qd_start())
    forces, order = [], []
    for kind in dict.fromkeys(sys.actuator_types):
        index = [i for i, t in enumerate(sys.actuator_types) if t is kind]
        joints = [sys.actuator_joint[i] for i in index]
        gear = rows(actuator.gear, index)
        given = rows(act, index)
        bounds = rows(actuator.ctrl_range, index)
        control = jnp.clip(jnp.where(jnp.isnan(given), 0.0, given), bounds[:, 0], bounds[:, 1])
        params = ActuatorParams(
            *(
                tuple(table[:, k] for k in range(table.shape[1]))
                for table in (rows(actuator.gainprm, index), rows(actuator.biasprm, index))
            )
        )
        length = gear * rows(q, starts[0][joints].tolist())
        velocity = gear * rows(qd, starts[1][joints].tolist())
        limits = rows(actuator.force_range, index)
        force = kind.force(params, control, length, velocity)
        forces.append(gear * jnp.clip(force, limits[:, 0], limits[:, 1]))
        order += index
    return rows(jnp.concatenate(forces, axis=0), np.argsort(order).tolist())
