"""Sensors of tendons and actuators: lengths, velocities and forces.

Source: MuJoCo's documentation, chapter XML reference, sensor/tendonpos to sensor/actuatorfrc.
"""

import jax

from brax.components import rows
from brax.sensors.evaluation_context import EvaluationContext
from brax.sensors.interface import Asked, SensorType


class TendonPosition(SensorType):
    """Length of a tendon."""

    name = "tendonpos"
    reads_forces = False
    objects = ("tendon",)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the lengths."""
        return _taken(context.tendons.length, asked)


class TendonVelocity(SensorType):
    """Rate of a tendon's length."""

    name = "tendonvel"
    reads_forces = False
    objects = ("tendon",)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the rates of the lengths."""
        return _taken(context.tendons.velocity, asked)


class ActuatorPosition(SensorType):
    """Length of an actuator, which includes its gear."""

    name = "actuatorpos"
    reads_forces = False
    objects = ("actuator",)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the lengths."""
        return _taken(context.drive.seen.length, asked)


class ActuatorVelocity(SensorType):
    """Rate of an actuator's length, which includes its gear."""

    name = "actuatorvel"
    reads_forces = False
    objects = ("actuator",)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the rates of the lengths."""
        return _taken(context.drive.seen.velocity, asked)


class ActuatorForce(SensorType):
    """Force of an actuator, before its gear [N or N m]."""

    name = "actuatorfrc"
    reads_forces = False
    objects = ("actuator",)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Return the forces of the actuators' laws."""
        return _taken(context.drive.force, asked)


def _taken(values: jax.Array, asked: Asked) -> jax.Array:
    """Return the numbers of the measured elements, (sensors, 1, batch)."""
    return rows(values, [i for _, i in asked.objects])[:, None]


TENDON_POSITION = TendonPosition()
TENDON_VELOCITY = TendonVelocity()
ACTUATOR_POSITION = ActuatorPosition()
ACTUATOR_VELOCITY = ActuatorVelocity()
ACTUATOR_FORCE = ActuatorForce()
