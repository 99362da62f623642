"""Conformance checks, the same for Brax's own plugins and those of other packages.

There is one module for each kind of object that plugins register. Tests import what is exported
here, and no module of the engine does. Start reading at `joint`.
"""

from brax.testing.actuator import check_actuator
from brax.testing.collider import check_collider
from brax.testing.environment import check_environment
from brax.testing.geometry_type import check_geometry_type
from brax.testing.integrator import check_integrator
from brax.testing.joint import check_joint
from brax.testing.model_format import check_model_format
from brax.testing.pipeline import check_pipeline
from brax.testing.sensor import check_sensor
from brax.testing.trainer import check_trainer

__all__ = [
    "check_actuator",
    "check_collider",
    "check_environment",
    "check_geometry_type",
    "check_integrator",
    "check_joint",
    "check_model_format",
    "check_pipeline",
    "check_sensor",
    "check_trainer",
]
