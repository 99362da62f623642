"""Places, velocities and accelerations of frames, in the world's axes or another frame's."""

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
    """One that may measure in another frame."""

    relative = True


class FramePosition(_RelativeFrameSensor):
    """The origin of a frame [m]."""

    name = "framepos"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """From the reference's origin, along its axes."""
        mine, ref = _both(context, asked)
        return stack(ref.rot.inv_rotate(mine.pos - ref.pos))


class FrameQuaternion(_RelativeFrameSensor):
    """The orientation of a frame."""

    name = "framequat"
    width = 4
    limited = False

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """From the reference's orientation."""
        mine, ref = _both(context, asked)
        return stack(ref.rot.inv_mul(mine.rot))


class FrameAxis(_RelativeFrameSensor):
    """An axis of a frame."""

    limited = False

    def __init__(self, axis: str) -> None:
        """The sensor of an axis, x, y or z."""
        self.axis = axis
        self.name = f"frame{axis}axis"  # type: ignore[misc]

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Along the reference's axes."""
        mine, ref = _both(context, asked)
        axis: Vec3 = getattr(mine.rot.matrix(), self.axis)
        return stack(ref.rot.inv_rotate(axis))


class FrameVelocity(_RelativeFrameSensor):
    """The velocity of a frame's origin [m/s]."""

    name = "framelinvel"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """As the reference sees it, that turns itself."""
        mine, ref = _both(context, asked)
        carried = ref.vel + ref.ang.cross(mine.pos - ref.pos)
        return stack(ref.rot.inv_rotate(mine.vel - carried))


class FrameAngularVelocity(_RelativeFrameSensor):
    """The angular velocity of a frame [rad/s]."""

    name = "frameangvel"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """As the reference sees it."""
        mine, ref = _both(context, asked)
        return stack(ref.rot.inv_rotate(mine.ang - ref.ang))


class FrameAcceleration(_FrameSensor):
    """The acceleration of a frame's origin, less gravity's, world axes [m/s^2]."""

    name = "framelinacc"
    reads_forces = True

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """What is at rest accelerates upwards."""
        return stack(context.accelerations(asked.objects).lin - context.gravity)


class FrameAngularAcceleration(_FrameSensor):
    """The angular acceleration of a frame, world axes [rad/s^2]."""

    name = "frameangacc"
    reads_forces = True

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """With the constraints."""
        return stack(context.accelerations(asked.objects).ang)


def _both(context: EvaluationContext, asked: Asked) -> tuple[Frames, Frames]:
    """What is measured, and the frames that it is measured in."""
    references = [("world", -1) if ref is None else ref for ref in asked.references]
    return context.frames(asked.objects), context.frames(references)


FRAME_POSITION = FramePosition()
FRAME_QUATERNION = FrameQuaternion()
FRAME_X, FRAME_Y, FRAME_Z = (FrameAxis(axis) for axis in "xyz")
FRAME_VELOCITY = FrameVelocity()
FRAME_ANGULAR_VELOCITY = FrameAngularVelocity()
FRAME_ACCELERATION = FrameAcceleration()
FRAME_ANGULAR_ACCELERATION = FrameAngularAcceleration()
