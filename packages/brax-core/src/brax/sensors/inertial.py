"""What an inertial unit on a site measures, along the site's axes."""

import jax

from brax.components import stack
from brax.sensors.here import Here
from brax.sensors.interface import Asked, SensorType


class _OnSite(SensorType):
    """A sensor of three numbers on a site."""

    width = 3
    objects = ("site",)
    reads_forces = False


class Gyro(_OnSite):
    """Angular velocity [rad/s]."""

    name = "gyro"

    def read(self, here: Here, asked: Asked) -> jax.Array:
        """Along the site's axes."""
        site = here.frames(asked.objects)
        return stack(site.rot.inv_rotate(site.ang))


class Velocimeter(_OnSite):
    """Velocity [m/s]."""

    name = "velocimeter"

    def read(self, here: Here, asked: Asked) -> jax.Array:
        """Along the site's axes."""
        site = here.frames(asked.objects)
        return stack(site.rot.inv_rotate(site.vel))


class Accelerometer(_OnSite):
    """Acceleration, less gravity's [m/s^2]."""

    name = "accelerometer"
    reads_forces = True

    def read(self, here: Here, asked: Asked) -> jax.Array:
        """Along the site's axes; what is at rest accelerates upwards."""
        felt = here.accelerations(asked.objects).lin - here.gravity
        return stack(here.frames(asked.objects).rot.inv_rotate(felt))


GYRO = Gyro()
VELOCIMETER = Velocimeter()
ACCELEROMETER = Accelerometer()
