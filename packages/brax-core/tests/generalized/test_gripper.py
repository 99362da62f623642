"""A gripper: two fingers on slides, driven by position servos, hold a ball by friction alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import plugins
from brax.builder import ModelBuilder

RADIUS, MASS, SQUEEZE = 0.03, 0.2, 10.0


def gripper(friction):
    """Fingers of 6 mm that close along x on a ball, which touches nothing else."""
    builder = ModelBuilder()
    # Friction is soft, so that what it holds creeps; the ratio makes that a tenth.
    builder.set_option(timestep=0.004, iterations=10, cone="elliptic", impratio=10.0)
    moment = 0.4 * MASS * RADIUS**2
    builder.add_body("ball", pos=(0, 0, 0.5), mass=MASS, inertia=(moment,) * 3)
    builder.add_joint("ball", "free")
    builder.add_geom("ball", "sphere", size=(RADIUS,), condim=4, friction=friction)
    for name, side in (("left", -1.0), ("right", 1.0)):
        builder.add_body(name, pos=(side * 0.04, 0, 0.5), mass=0.1, inertia=(1e-4,) * 3)
        builder.add_joint(name, "slide", name, axis=(-side, 0, 0), damping=2.0)
        builder.add_geom(name, "box", size=(0.006, 0.02, 0.02), condim=4, friction=friction)
        # The finger meets the ball at 4 mm; the servo asks for more, which makes the squeeze.
        builder.add_actuator(name, gainprm=(500.0,), biasprm=(0, -500.0, -5.0))
    return builder.build()


def held(friction):
    """Height of the ball above where it was, and its spin, each tenth of two seconds."""
    sys, pipeline = gripper(friction), plugins.get("pipeline", "generalized")
    closed = jnp.full(2, 0.004 + SQUEEZE / 500.0)
    state = pipeline.init(sys, sys.init_q, jnp.zeros(8))
    step = jax.jit(lambda s: pipeline.step(sys, s, closed, n_frames=25))
    found = []
    for _ in range(20):
        state = step(state)
        found.append([state.q[2] - 0.5, jnp.linalg.norm(state.qd[3:6])])
    return np.array(found)


@pytest.mark.slow
def test_a_gripper_holds_a_ball_for_two_seconds():
    """Friction 1 on two sides carries 20 N, ten times the ball's weight."""
    height, spin = held((1.0, 0.01, 0.0001)).T
    assert height[0] > -0.02  # until the fingers are there it falls
    assert abs(height[-1] - height[4]) < 0.002
    assert spin[-1] < 0.1


@pytest.mark.slow
def test_it_drops_the_ball_where_friction_does_not_carry_the_weight():
    """0.05 on two sides carries 1 N of two."""
    height, _ = held((0.05, 0.001, 0.0001)).T
    assert height[-1] < -0.1
