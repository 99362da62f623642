"""Steps of models beside MuJoCo's, from random states, in double precision."""

import jax
import mujoco
import mujoco_steps
import numpy as np

from brax.io import mjcf


def check_steps(xml, states=6, tolerance=1e-9, spread=(0.5, 1.0)):
    """Compare the change of the velocities in a step, and the activations, with MuJoCo's.

    Args:
        xml: the text of the model.
        states: the number of random states, their controls and activations random too.
        spread: standard deviations of the coordinates and of the velocities.
        tolerance: bound of the error, relative to the largest change of a velocity.
    """
    model = mujoco_steps.exact(mujoco.MjModel.from_xml_string(xml))
    before, right = mujoco_steps.scattered(model, states, spread)
    with jax.enable_x64(True):
        found = mujoco_steps.steps(mjcf.loads(xml), before)
    error = mujoco_steps.errors(before, found.qd, right.qd)
    assert error.max() < tolerance, error
    np.testing.assert_allclose(found.activation, right.activation, rtol=1e-10, atol=1e-12)
