"""Sensors of frames: position, orientation, velocity, acceleration.

Source: MuJoCo's documentation, chapter XML reference, sensor/framepos to sensor/frameangacc.
"""

import jax

from brax.components import Vec3, stack
from brax.kinematics import Frames
from brax.sensors.evaluation_context import EvaluationContext
from brax.sensors.interface import FRAME_OBJECTS, Asked, SensorType


class _FrameSensor(SensorType):
    """A sensor of three numbers of a frame."""

    width = 3
    objects = FRAME_OBJECTS
    reads_forces = False


class _RelativeFrameSensor(_FrameSensor):
    """A sensor of a frame that can measure in another frame."""

    relative = True


class FramePosition(_RelativeFrameSensor):
    """Position of a frame's origin [m]."""

    name = "framepos"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return positions from the reference's origin, along its axes."""
        mine, ref = _both(context, asked)
        return stack(ref.rot.inv_rotate(mine.pos - ref.pos))


class FrameQuaternion(_RelativeFrameSensor):
    """Orientation of a frame, a unit quaternion."""

    name = "framequat"
    width = 4
    limited = False

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return orientations relative to the reference."""
        mine, ref = _both(context, asked)
        return stack(ref.rot.inv_mul(mine.rot))


class FrameAxis(_RelativeFrameSensor):
    """Direction of an axis of a frame, a unit vector."""

    limited = False

    def __init__(self, axis: str) -> None:
        """Choose the axis: x, y or z."""
        self.axis = axis
        self.name = f"frame{axis}axis"  # type: ignore[misc]

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return directions along the reference's axes."""
        mine, ref = _both(context, asked)
        axis: Vec3 = getattr(mine.rot.matrix(), self.axis)
        return stack(ref.rot.inv_rotate(axis))


class FrameVelocity(_RelativeFrameSensor):
    """Velocity of a frame's origin [m/s]."""

    name = "framelinvel"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return velocities as seen in the reference, which may rotate."""
        mine, ref = _both(context, asked)
        # The velocity of the point of the reference's rotating space that coincides with the
        # origin.
        carried = ref.vel + ref.ang.cross(mine.pos - ref.pos)
        return stack(ref.rot.inv_rotate(mine.vel - carried))


class FrameAngularVelocity(_RelativeFrameSensor):
    """Angular velocity of a frame [rad/s]."""

    name = "frameangvel"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return angular velocities as seen in the reference."""
        mine, ref = _both(context, asked)
        return stack(ref.rot.inv_rotate(mine.ang - ref.ang))


class FrameAcceleration(_FrameSensor):
    """Linear acceleration of a frame's origin less gravity, world axes [m/s^2]."""

    name = "framelinacc"
    reads_forces = True

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return accelerations; an element at rest accelerates upwards."""
        return stack(context.accelerations(asked.objects).lin - context.gravity)


class FrameAngularAcceleration(_FrameSensor):
    """Angular acceleration of a frame, world axes [rad/s^2]."""

    name = "frameangacc"
    reads_forces = True

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return angular accelerations, with the constraints."""
        return stack(context.accelerations(asked.objects).ang)


def _both(context: EvaluationContext, asked: Asked) -> tuple[Frames, Frames]:
    """Return the frames that are measured, and the reference frames."""
    # The world is a frame at rest, so sensors without a reference need no case of their own.
    references = [("world", -1) if ref is None else ref for ref in asked.references]
    return context.frames(asked.objects), context.frames(references)


FRAME_POSITION = FramePosition()
FRAME_QUATERNION = FrameQuaternion()
FRAME_X, FRAME_Y, FRAME_Z = (FrameAxis(axis) for axis in "xyz")
FRAME_VELOCITY = FrameVelocity()
FRAME_ANGULAR_VELOCITY = FrameAngularVelocity()
FRAME_ACCELERATION = FrameAcceleration()
FRAME_ANGULAR_ACCELERATION = FrameAngularAcceleration()
