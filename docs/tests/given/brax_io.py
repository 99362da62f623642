"""A model and a state of it, for the page of brax-io."""

from pathlib import Path

import jax.numpy as jnp

from brax import plugins
from brax.io import mjcf

Path("robot.xml").write_text(
    '<mujoco><worldbody><body><joint axis="0 1 0"/><geom size=".1" pos=".3 0 0"/></body>'
    "</worldbody></mujoco>"
)
robot = mjcf.load("robot.xml")
states = [plugins.get("pipeline", "spring").init(robot, robot.init_q, jnp.zeros(1))]
