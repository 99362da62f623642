"""A model with an inertial unit, for sensors.md."""

import jax.numpy as jnp

from brax import plugins
from brax.builder import ModelBuilder


def hand():
    """Return a free body with a site."""
    model = ModelBuilder()
    model.add_body("hand", mass=1.0, inertia=(0.1, 0.1, 0.1))
    model.add_joint("hand", "free")
    model.add_site("hand", "imu")
    return model


builder = hand()
builder.add_sensor("gyro", ("site", "imu"), "torso_gyro")
system = builder.build()
state = plugins.get("pipeline", "generalized").init(system, system.init_q, jnp.zeros(6))
act = jnp.zeros(0)
builder = hand()
