"""Sensors: what a model measures, as named slices of one array. One family of types a file."""

from brax.sensors.here import Here
from brax.sensors.interface import Asked, SensorType
from brax.sensors.measure import sensors, slices

__all__ = ["Asked", "Here", "SensorType", "sensors", "slices"]
