"""Actuator types, one a file, behind one interface."""

from brax.actuators.interface import ActuatorParams, ActuatorType

__all__ = ["ActuatorParams", "ActuatorType"]
