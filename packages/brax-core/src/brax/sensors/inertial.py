"""Inertial sensors on a site: gyro, velocimeter and accelerometer.

Source: MuJoCo's documentation, chapter XML reference, sensor/accelerometer, velocimeter and gyro.
"""

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
    """Angular velocity, along the site's axes [rad/s]."""

    name = "gyro"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return angular velocities along the sites' axes."""
        site = context.frames(asked.objects)
        return stack(site.rot.inv_rotate(site.ang))


class Velocimeter(_OnSite):
    """Linear velocity, along the site's axes [m/s]."""

    name = "velocimeter"

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return velocities along the sites' axes."""
        site = context.frames(asked.objects)
        return stack(site.rot.inv_rotate(site.vel))


class Accelerometer(_OnSite):
    """Linear acceleration less gravity, along the site's axes [m/s^2]."""

    name = "accelerometer"
    reads_forces = True

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return accelerations along the sites' axes; an element at rest accelerates upwards."""
        # An accelerometer measures proper acceleration, which is zero in free fall.
        felt = context.accelerations(asked.objects).lin - context.gravity
        return stack(context.frames(asked.objects).rot.inv_rotate(felt))


GYRO = Gyro()
VELOCIMETER = Velocimeter()
ACCELEROMETER = Accelerometer()
