"""Sensors of joints: coordinates, velocities, and forces of actuators.

Source: MuJoCo's documentation, chapter XML reference, sensor/jointpos to sensor/ballangvel.
"""

import jax
import jax.numpy as jnp

from brax.components import Quat, normalize_quat
from brax.sensors.evaluation_context import EvaluationContext
from brax.sensors.interface import Asked, SensorType


class JointPosition(SensorType):
    """Coordinate of a joint with one coordinate [rad or m]."""

    name = "jointpos"
    reads_forces = False
    objects = ("joint",)
    coordinates = (1,)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the joints' coordinates."""
        return _taken(context.q, context.sys.joint_q_start(), asked, 1)


class JointVelocity(SensorType):
    """Velocity of a joint with one coordinate [rad/s or m/s]."""

    name = "jointvel"
    reads_forces = False
    objects = ("joint",)
    coordinates = (1,)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the joints' velocities."""
        return _taken(context.qd, context.sys.joint_qd_start(), asked, 1)


class JointActuatorForce(SensorType):
    """Total force of all actuators along a joint with one coordinate [N or N m]."""

    name = "jointactuatorfrc"
    reads_forces = False
    objects = ("joint",)
    coordinates = (1,)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the actuators' forces along the joints."""
        return _taken(context.actuator_force, context.sys.joint_qd_start(), asked, 1)


class BallQuaternion(SensorType):
    """Orientation of a ball joint, a unit quaternion."""

    name = "ballquat"
    reads_forces = False
    width = 4
    objects = ("joint",)
    coordinates = (4,)
    limited = False

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the joints' quaternions, at unit length."""
        # Users may set quaternions of any length, and pipelines normalize them when they read them.
        found = _taken(context.q, context.sys.joint_q_start(), asked, 4)
        return jnp.stack(normalize_quat(Quat(*jnp.moveaxis(found, 1, 0))), axis=1)


class BallVelocity(SensorType):
    """Angular velocity of a ball joint, axes of the child [rad/s]."""

    name = "ballangvel"
    reads_forces = False
    width = 3
    objects = ("joint",)
    coordinates = (4,)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the joints' angular velocities."""
        return _taken(context.qd, context.sys.joint_qd_start(), asked, 3)


def _taken(values: jax.Array, starts: tuple[int, ...], asked: Asked, width: int) -> jax.Array:
    """Return numbers of the joints, (sensors, width, batch)."""
    return jnp.stack([values[starts[j] : starts[j] + width] for _, j in asked.objects])


JOINT_POSITION = JointPosition()
JOINT_VELOCITY = JointVelocity()
JOINT_ACTUATOR_FORCE = JointActuatorForce()
BALL_QUATERNION = BallQuaternion()
BALL_VELOCITY = BallVelocity()
