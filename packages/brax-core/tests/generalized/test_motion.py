"""Motion without contacts against closed forms and MuJoCo (T01 to T24, T35)."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import MODELS, both, run
from physics_lab import BOX, G, chain, free_body, pendulum, rail, settings

NONE = jnp.zeros(0)


def test_free_fall_and_throw_are_the_discrete_sums():
    # T01, T02
    dt, n = 0.01, 100
    sys = settings(free_body(), dt=dt)
    q, qd = run(sys, sys.init_q, jnp.array([3.0, 0, 4, 0, 0, 0]), NONE, n)
    np.testing.assert_allclose(q[-1, 0], 3.0 * dt * n, rtol=1e-12)
    np.testing.assert_allclose(q[-1, 2], 4.0 * dt * n - G * dt**2 * n * (n + 1) / 2, rtol=1e-12)
    np.testing.assert_allclose(qd[-1, 2], 4.0 - G * dt * n, rtol=1e-12)


@pytest.mark.slow
def test_tumbling_box_follows_eulers_equations():
    """T08; the reference is an integration of Euler's equations."""
    wanted = np.array([1.08610044, -1.90431156, 3.04634176])
    for dt in (1e-2, 1e-3):
        sys = settings(free_body(), dt=dt, gravity=(0, 0, 0))
        _, qd = run(sys, sys.init_q, jnp.array([0.0, 0, 0, 1, 2, 3]), NONE, 100, round(0.01 / dt))
        # Measured .040 and .0040, as MuJoCo's Euler.
        assert np.abs(qd[-1, 3:] - wanted).max() < 4.1 * dt
    momentum = np.linalg.norm(qd[:, 3:] * np.array(BOX), axis=1)
    assert np.abs(momentum / momentum[0] - 1).max() < 1.6 * dt


def test_damping_is_implicit():
    """T03 and T04: (1 + d dt / m)^-n, whatever the damping."""
    dt, n = 0.01, 100
    sys = settings(rail(damping=0.5), dt=dt)
    _, qd = run(sys, jnp.zeros(1), jnp.ones(1), NONE, n)
    np.testing.assert_allclose(qd[:, 0], (1 + 0.5 * dt) ** -np.arange(1.0, n + 1), rtol=1e-12)
    stiff = sys.replace(dof_damping=jnp.array([1e6]))
    _, qd = run(stiff, jnp.zeros(1), jnp.ones(1), NONE, n)
    assert (qd >= 0).all() and (np.diff(qd[:, 0]) <= 0).all()


def test_oscillator_has_the_discrete_frequency():
    """T05: cos(w' dt) = 1 - w^2 dt^2 / 2, and the amplitude stays."""
    dt = 0.01
    sys = settings(rail(mass=2.0, stiffness=300.0), dt=dt)
    q, _ = run(sys, jnp.array([0.1]), jnp.zeros(1), NONE, 1000)
    phase = np.arccos(1 - 150.0 * dt**2 / 2)
    # Starts at rest: q_n = a cos(n w') + b sin(n w'), with b from the first step.
    n = np.arange(1, 1001)
    b = (q[0, 0] - 0.1 * np.cos(phase)) / np.sin(phase)
    np.testing.assert_allclose(q[:, 0], 0.1 * np.cos(n * phase) + b * np.sin(n * phase), atol=1e-10)


@pytest.mark.parametrize(("degrees", "ratio"), [(30, 1.017408798), (90, 1.180340599)])
def test_pendulum_has_the_period_of_the_elliptic_integral(degrees, ratio):
    """T16, less the shift of the discrete step, -(w dt)^2 cos(angle) / 24."""
    dt, moment = 0.01, 0.4 * 0.05**2
    natural = np.sqrt(G / (1 + moment))
    sys = settings(pendulum(), dt=dt)
    q, qd = run(sys, jnp.array([np.radians(degrees)]), jnp.zeros(1), NONE, 600)
    # The rate, zero at the start, is zero again and falling after one period.
    rate, k = np.asarray(qd[:, 0]), np.argmax((qd[1:, 0] < 0) & (qd[:-1, 0] >= 0))
    period = (k + 1 + rate[k] / (rate[k] - rate[k + 1])) * dt
    shift = -((natural * dt) ** 2) * np.cos(np.radians(degrees)) / 24
    assert abs(period * natural / (2 * np.pi) / (ratio * (1 + shift)) - 1) < 2e-5
    assert np.isfinite(q).all()


def test_energy_of_a_double_pendulum_drifts_no_more_than_mujocos():
    """T17: MuJoCo's Euler departs by 6.6 J at dt .01."""
    sys = settings(chain(moment=1e-9), dt=0.01)
    start = jnp.array([np.pi / 2, 0.0])
    q, qd = run(sys, start, jnp.zeros(2), NONE, 1000)
    first, both_ = q[:, 0], q[:, 0] + q[:, 1]
    w1, w2 = qd[:, 0], qd[:, 0] + qd[:, 1]
    kinetic = 0.5 * w1**2 + 0.5 * (w1**2 + w2**2 + 2 * w1 * w2 * np.cos(q[:, 1]))
    energy = kinetic - G * (2 * np.cos(first) + np.cos(both_))
    assert np.abs(energy).max() < 6.8  # measured 6.6


def test_motors_and_servos_push_as_mujocos():
    """T23 and T24: gear, servo laws, and both ranges."""
    drives = [
        dict(gear=3.0),
        dict(gear=2.0, gainprm=(10.0,), biasprm=(0.0, -10.0, 0.0)),
        dict(gear=1.5, gainprm=(2.0,), biasprm=(0.0, 0.0, -2.0)),
        dict(gear=1.0, force_range=(-0.4, 0.4)),
        dict(gear=1.0, ctrl_range=(-1.0, 1.0)),
    ]
    sys = settings(rail(actuators=drives), dt=0.01)
    q, v = 0.3, 1.0
    cases = [
        ([2.0, 0.0, 0.0, 0.0, 0.0], 6.0 + 2 * -10 * 0.6 + 1.5 * -2 * 1.5),
        ([0.0, 0.5, 0.0, 0.0, 0.0], 2 * (5 - 10 * 0.6) + 1.5 * -2 * 1.5),
        ([0.0, 0.0, 4.0, 9.0, 9.0], 2 * -10 * 0.6 + 1.5 * (8 - 2 * 1.5) + 0.4 + 1.0),
    ]
    for act, force in cases:
        _, qd = run(sys, jnp.array([q]), jnp.array([v]), jnp.array(act), 1)
        np.testing.assert_allclose((qd[0, 0] - v) / 0.01, force, rtol=1e-12)


@pytest.mark.slow
def test_quaternions_are_unit_and_of_either_sign():
    # T14
    sys = settings(free_body(), dt=0.01, gravity=(0, 0, 0))
    spin = jnp.array([0.0, 0, 0, 1, 2, 3])
    turn = jnp.array([0.0, 0, 0, 0.6, 0, 0.8, 0])
    q, qd = run(sys, turn, spin, NONE, 1000)
    assert np.abs(np.linalg.norm(q[:, 3:], axis=1) - 1).max() < 4 * np.finfo(float).eps
    scaled = turn.at[3:].multiply(-2.0)
    other, rates = run(sys, scaled, spin, NONE, 1000)
    np.testing.assert_allclose(other[-1, 3:], -q[-1, 3:], atol=1e-13)
    np.testing.assert_allclose(rates[-1], qd[-1], atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["swimmer", *(pytest.param(n, marks=pytest.mark.slow) for n in ("ant", "humanoid"))]
)
def test_trajectory_without_contact_is_mujocos(name, bound_slow):
    """T35: 500 steps, limits and contacts off."""
    xml = MODELS[name].replace('limited="true"', 'limited="false"').replace('contype="0"', "")
    xml = xml.replace("<geom ", '<geom conaffinity="0" contype="0" ')
    peer = both(xml)
    rng = np.random.default_rng(42)
    qd = rng.uniform(-0.01, 0.01, peer.model.nv)
    q, rates = run(peer.sys, peer.sys.init_q, qd, NONE, 25, 20)
    peer.data.qpos[:], peer.data.qvel[:] = peer.sys.init_q, qd
    for k in range(25):
        mujoco.mj_step(peer.model, peer.data, 20)
        assert np.abs(q[k] - peer.data.qpos).max() < bound_slow(1e-8, 2e-3), k
        assert np.abs(rates[k] - peer.data.qvel).max() < bound_slow(1e-6, 0.05), k
