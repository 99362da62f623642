"""Lengths, velocities and forces of tendons and actuators."""

import jax

from brax.components import rows
from brax.sensors.evaluation_context import EvaluationContext
from brax.sensors.interface import Asked, SensorType


class TendonPosition(SensorType):
    """The length of a tendon."""

    name = "tendonpos"
    reads_forces = False
    objects = ("tendon",)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Off the coordinates, or the path."""
        return _taken(context.tendons.length, asked)


class TendonVelocity(SensorType):
    """The rate of a tendon's length."""

    name = "tendonvel"
    reads_forces = False
    objects = ("tendon",)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Off the rates, or how the path moves."""
        return _taken(context.tendons.velocity, asked)


class ActuatorPosition(SensorType):
    """The length of an actuator, its gear in it."""

    name = "actuatorpos"
    reads_forces = False
    objects = ("actuator",)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Off the transmission."""
        return _taken(context.drive.seen.length, asked)


class ActuatorVelocity(SensorType):
    """The rate of an actuator's length."""

    name = "actuatorvel"
    reads_forces = False
    objects = ("actuator",)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Off the transmission."""
        return _taken(context.drive.seen.velocity, asked)


class ActuatorForce(SensorType):
    """The force of an actuator, before its gear [N or N m]."""

    name = "actuatorfrc"
    reads_forces = False
    objects = ("actuator",)

    def read(self, context: EvaluationContext, asked: Asked) -> jax.Array:
        """Off the actuators' laws."""
        return _taken(context.drive.force, asked)


def _taken(values: jax.Array, asked: Asked) -> jax.Array:
    return rows(values, [i for _, i in asked.objects])[:, None]


TENDON_POSITION = TendonPosition()
TENDON_VELOCITY = TendonVelocity()
ACTUATOR_POSITION = ActuatorPosition()
ACTUATOR_VELOCITY = ActuatorVelocity()
ACTUATOR_FORCE = ActuatorForce()
