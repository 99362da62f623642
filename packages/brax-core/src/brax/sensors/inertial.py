"""What an inertial unit on a site measures, along the site's axes."""

import jax

from brax.components import stack
from brax.sensors.evaluation_context import EvaluationContext
from brax.sensors.interface import Asked, SensorType


class _OnSite(SensorType):
    """A sensor of three numbers on a site."""

    width = 3
    objects = ("site",)
    reads_forces = False


class Gyro(_OnSite):
    """Angular velocity [rad/s]."""

    name = "gyro"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Along the site's axes."""
        site = context.frames(asked.objects)
        return stack(site.rot.inv_rotate(site.ang))


class Velocimeter(_OnSite):
    """Velocity [m/s]."""

    name = "velocimeter"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Along the site's axes."""
        site = context.frames(asked.objects)
        return stack(site.rot.inv_rotate(site.vel))


class Accelerometer(_OnSite):
    """Acceleration, less gravity's [m/s^2]."""

    name = "accelerometer"
    reads_forces = True

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Along the site's axes; what is at rest accelerates upwards."""
        felt = context.accelerations(asked.objects).lin - context.gravity
        return stack(context.frames(asked.objects).rot.inv_rotate(felt))


GYRO = Gyro()
VELOCIMETER = Velocimeter()
ACCELEROMETER = Accelerometer()
