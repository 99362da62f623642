"""Actuator types, one a file, behind one interface, and their evaluation in a model.

The types are `affine`, `general`, `integral`, `filter`, `pid`, `dc_motor`, `muscle` and `frozen`.
`actuator_forces` evaluates the actuators of a model at a state, by their laws (`force_law`), the
transmissions to joints and sites (`joint_transmission`, `rotation_transmission`,
`site_transmission`, `crank_transmission`) and the tendons (`tendons`, `spatial_tendons`,
`tendon_wrapping`). The pipelines and `brax.sensors` import those; plugins import only what is
exported here. Start reading at `interface`, then `actuator_forces`.
"""

from brax.actuators.interface import ActuatorParams, ActuatorType

DEFAULT_ACTUATOR = "affine"
"""The actuator type of an actuator that names none."""

__all__ = ["DEFAULT_ACTUATOR", "ActuatorParams", "ActuatorType"]
