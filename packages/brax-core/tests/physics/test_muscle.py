"""The muscle's laws: MuJoCo's own functions of them, number by number."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from brax.actuators import ActuatorParams
from brax.actuators.muscle import MUSCLE

SPAN, PEAK = np.array([0.2, 0.9]), 66.0
GAIN = np.array([0.75, 1.05, PEAK, 200, 0.5, 1.6, 1.5, 1.3, 1.2, 0])
LENGTHS = np.array([0.1, 0.3, 0.47, 0.5, 0.7, 0.78, 0.8, 0.9, 1.2, 2.0])
VELOCITIES = np.array([-9.0, -1.0, -0.2, 0.1, 0.4, 3.0])


def column(values):
    return tuple(jnp.full((1, 1), x) for x in values)


def params(tension=0.2):
    return ActuatorParams(column(GAIN), column(GAIN), column([0.01, 0.04, tension]), column(SPAN))


def test_force_is_mujocos(f64):
    for length in LENGTHS:
        passive = mujoco.mju_muscleBias(length, SPAN, 1.0, GAIN[:9])
        for velocity in VELOCITIES:
            gain = mujoco.mju_muscleGain(length, velocity, SPAN, 1.0, GAIN[:9])
            got = MUSCLE.force(params(), *(jnp.full((1, 1), x) for x in (0.6, length, velocity)))
            assert float(got[0, 0]) == pytest.approx(0.6 * gain + passive, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("tension", [0.0, 0.2])
def test_activation_is_mujocos(f64, tension):
    for ctrl in (-0.5, 0.2, 0.6, 1.4):
        for activation in (0.0, 0.3, 0.58, 0.9, 1.2):
            want = mujoco.mju_muscleDynamics(ctrl, activation, np.array([0.01, 0.04, tension]))
            given = (jnp.full((1, 1), x) for x in (ctrl, activation, 0.5, 0.0))
            got = MUSCLE.rate(params(tension), *given)
            assert float(got[0, 0]) == pytest.approx(want, rel=1e-12, abs=1e-12)


@pytest.mark.slow
def test_derivatives_are_finite_and_right(f64):
    at = np.array([[0.6, 0.47, -0.2], [0.3, 0.78, 0.1], [0.9, 1.2, 0.4]])

    def force(x):
        return MUSCLE.force(params(), *(v[None, None] for v in x))[0, 0]

    for x in at:
        step = 1e-6 * np.eye(3)
        want = [(force(x + d) - force(x - d)) / 2e-6 for d in step]
        np.testing.assert_allclose(jax.grad(force)(jnp.array(x)), want, rtol=1e-5, atol=1e-5)
    # Where a branch ends, and where it is not taken.
    for length in (*LENGTHS, 0.2, 1.6):
        assert np.isfinite(jax.grad(force)(jnp.array([0.0, length, 0.0]))).all()
