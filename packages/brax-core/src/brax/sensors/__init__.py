"""Sensors: measurements of a model, as named slices of one array. One family of types a file.

`interface` defines a sensor type, `evaluation_context` gives it the model at a state, and `measure`
reads all sensors of a model. Sensor types may import kinematics and the generalized dynamics; only
environments and plugins import this folder. Start reading at `interface`.
"""

from brax.sensors.evaluation_context import EvaluationContext
from brax.sensors.interface import Asked, SensorType
from brax.sensors.measure import sensors, slices

Here = EvaluationContext
"""The name of `EvaluationContext` in plugins written for earlier versions."""

__all__ = ["Asked", "EvaluationContext", "Here", "SensorType", "sensors", "slices"]
