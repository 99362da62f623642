"""Coordinates and rates of joints, and what their actuators do."""

import jax
import jax.numpy as jnp

from brax.components import Quat, normalize_quat
from brax.sensors.evaluation_context import EvaluationContext
from brax.sensors.interface import Asked, SensorType


class JointPosition(SensorType):
    """The coordinate of a joint with one [rad or m]."""

    name = "jointpos"
    reads_forces = False
    objects = ("joint",)
    coordinates = (1,)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Off the coordinates."""
        return _taken(context.q, context.sys.joint_q_start(), asked, 1)


class JointVelocity(SensorType):
    """The rate of a joint with one coordinate [rad/s or m/s]."""

    name = "jointvel"
    reads_forces = False
    objects = ("joint",)
    coordinates = (1,)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Off the rates."""
        return _taken(context.qd, context.sys.joint_qd_start(), asked, 1)


class JointActuatorForce(SensorType):
    """Force of all actuators together along a joint with one coordinate [N or N m]."""

    name = "jointactuatorfrc"
    reads_forces = False
    objects = ("joint",)
    coordinates = (1,)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Off the actuators' forces."""
        return _taken(context.actuator_force, context.sys.joint_qd_start(), asked, 1)


class BallQuaternion(SensorType):
    """The orientation of a ball joint."""

    name = "ballquat"
    reads_forces = False
    width = 4
    objects = ("joint",)
    coordinates = (4,)
    limited = False

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Off the coordinates, at unit length."""
        found = _taken(context.q, context.sys.joint_q_start(), asked, 4)
        return jnp.stack(normalize_quat(Quat(*jnp.moveaxis(found, 1, 0))), axis=1)


class BallVelocity(SensorType):
    """The angular velocity of a ball joint, axes of the child [rad/s]."""

    name = "ballangvel"
    reads_forces = False
    width = 3
    objects = ("joint",)
    coordinates = (4,)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Off the rates."""
        return _taken(context.qd, context.sys.joint_qd_start(), asked, 3)


def _taken(values: jax.Array, starts: tuple[int, ...], asked: Asked, width: int) -> jax.Array:
    """Numbers of the joints, (sensors, width, batch)."""
    return jnp.stack([values[starts[j] : starts[j] + width] for _, j in asked.objects])


JOINT_POSITION = JointPosition()
JOINT_VELOCITY = JointVelocity()
JOINT_ACTUATOR_FORCE = JointActuatorForce()
BALL_QUATERNION = BallQuaternion()
BALL_VELOCITY = BallVelocity()
