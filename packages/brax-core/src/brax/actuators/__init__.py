"""Actuator types, one a file, behind one interface."""

from brax.actuators.interface import ActuatorParams, ActuatorType

DEFAULT_ACTUATOR = "affine"
"""The actuator type of a model that names none."""

__all__ = ["DEFAULT_ACTUATOR", "ActuatorParams", "ActuatorType"]
