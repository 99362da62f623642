"""Rotors, dry friction, ref, ball joints and gimbal lock, in maximal coordinates."""

import numpy as np
import physics_lab
import pytest
from physics_lab import rail, record, settings

from brax.builder import ModelBuilder

pytestmark = pytest.mark.slow


def test_a_heavy_rotor_on_a_light_link(f64):
    # As the ant's: armature 1 on 40 g. A torque of 1 N m turns the rotor at 1 / (1 + I) rad/s^2.
    model = ModelBuilder()
    model.add_body("leg", mass=0.04, inertia=(1e-4, 1e-4, 1e-4), ipos=(0.1, 0, 0))
    model.add_joint("leg", "hinge", name="hip", axis=(0, 1, 0), armature=1.0)
    model.add_actuator("hip")
    sys = settings(model.build(), 0.01, (0, 0, 0))
    motion = record(sys, act=[1.0], steps=300)
    assert motion.qd[-1, 0] == pytest.approx(3.0 / (1.0 + 1e-4 + 0.04 * 0.01), rel=1e-3)


@pytest.mark.parametrize(("force", "moves"), [(0.9, False), (1.5, True)])
def test_dry_friction_holds_and_slips(f64, force, moves):
    # A slide of mass 1 with friction loss 1 N: nothing below, (F - 1) t above.
    sys = settings(rail(frictionloss=1.0, actuators=[{}]), 0.01)
    v = record(sys, act=[force], steps=100).qd[-1, 0]
    assert v == pytest.approx(force - 1.0 if moves else 0.0, abs=1e-9)


def test_coordinates_at_rest_are_ref(f64):
    # The spring is at rest at springref, whatever ref is.
    sys = settings(rail(ref=0.7, springref=0.2, stiffness=4.0, damping=4.0), 0.01)
    motion = record(sys, q=[0.7], steps=1500)
    assert motion.q[-1, 0] == pytest.approx(0.2, abs=1e-6)
    assert motion.pos[-1, 0, 0] == pytest.approx(0.2 - 0.7, abs=1e-6)


def ball_joint(**joint):
    """Return a ball of mass one and moments .1 that turns about its centre."""
    model = ModelBuilder()
    model.add_body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1))
    model.add_joint("ball", "ball", **joint)
    model.set_option(gravity=(0, 0, 0), timestep=1e-3)
    return model.build()


def test_a_ball_joint_swings_on_its_spring(f64):
    # About any axis: angle a cos(w t), w^2 = k / I; k = .9, so w = 3 and half a period is pi / 3.
    axis, a = np.array([0.6, 0.0, 0.8]), 0.5
    q = np.array([np.cos(a / 2), *(np.sin(a / 2) * axis)])
    motion = record(ball_joint(stiffness=0.9), q=q, steps=1047)
    turn = 2 * motion.q[-1, 1:] / np.sinc(a / 2 / np.pi)
    np.testing.assert_allclose(turn, -a * axis, atol=2e-3)


def test_a_ball_joint_stops_at_its_range(f64):
    # 1 rad/s about an axis, half a radian allowed. Pushing back leaves 8e-6 rad/s in spring.
    spin = np.array([0.6, 0.0, 0.8])
    motion = record(ball_joint(range=(0.0, 0.5)), qd=spin, steps=1000)
    np.testing.assert_allclose(2 * np.arccos(np.abs(motion.q[-1, 0])), 0.5, atol=1e-3)
    assert (
        np.abs(motion.qd[-1]).max()
        < {"spring": 1e-5, "positional": 1e-6}[physics_lab.PIPELINE.name]
    )


def test_a_ball_joint_with_a_range_passes_through_no_angle(f64):
    # From .1 rad back at 1 rad/s: nothing holds it where the angle begins.
    axis = np.array([0.6, 0.0, 0.8])
    start = np.array([np.cos(0.05), *(np.sin(0.05) * axis)])
    motion = record(ball_joint(range=(0.0, 0.5)), q=start, qd=-axis, steps=300)
    want = np.array([np.cos(0.1), *(-np.sin(0.1) * axis)])
    np.testing.assert_allclose(motion.q[-1], want, atol=1e-6)
    np.testing.assert_allclose(motion.qd[-1], -axis, atol=1e-6)


@pytest.mark.parametrize("armature", [0.0, 0.01])
def test_gimbal_lock_is_survived(f64, armature):
    # Three crossed hinges, the second at 90 degrees, so the third's axis is the first's.
    model = ModelBuilder()
    model.add_body("top", mass=1.0, inertia=(0.1, 0.12, 0.14), ipos=(0, 0, -0.3))
    for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
        model.add_joint("top", "hinge", axis=axis, armature=armature)
    sys = settings(model.build(), 0.005)
    motion = record(sys, q=[0.2, np.pi / 2, 0.0], steps=100)  # asserts that it is finite
    assert np.abs(motion.qd).max() < 100
