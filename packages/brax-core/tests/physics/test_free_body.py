"""A body that nothing holds: T01, T02, T03, T08, T09, T10, T11, T14, T15.

Where a bound has a comment, the number in it is the residual that was measured.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import BOX, G, free_body, record, settings

from brax.spring.pipeline import SPRING


def spin(motion):
    """Angular velocity in body axes, as MuJoCo's qvel has it."""
    return motion.qd[:, 3:]


def energy(motion):
    return 0.5 * np.sum(np.array(BOX) * spin(motion) ** 2, axis=-1)


def momentum(motion):
    """Angular momentum in world axes."""
    w, v = motion.rot[:, 0, :1], motion.rot[:, 0, 1:]
    body = np.array(BOX) * spin(motion)
    t = 2 * np.cross(v, body)
    return body + w * t + np.cross(v, t)


def rounding(count, x):
    """Return a bound of the relative error of so many roundings, in the precision of an array.

    In double precision it is the worst case. In single precision it is four times what roundings of
    random signs add up to, as in Higham and Mary (2019), A new approach to probabilistic rounding
    error analysis, SIAM Journal on Scientific Computing 41(5).
    """
    unit = float(np.finfo(x.dtype).eps) / 2
    return count * unit if x.dtype == np.float64 else 4 * math.sqrt(count) * unit


def tumble(dt, omega, steps, every=1):
    sys = settings(free_body(), dt, (0, 0, 0))
    return record(sys, qd=[0, 0, 0, *omega], steps=steps, every=every)


@pytest.mark.parametrize(
    ("dt", "fallen"), [(0.01, 4.95405), (0.005, 4.929525), (0.002, 4.91481), (0.001, 4.909905)]
)
def test_free_fall_is_the_discrete_sum(bound, dt, fallen):
    # T01: symplectic Euler falls g dt^2 n (n + 1) / 2 in n steps. 6e-15 / 1.4e-6, by XLA 2.2e-6
    n = round(1 / dt)
    motion = record(settings(free_body(), dt), steps=n)
    # Step k rounds the velocity k g dt, which then is wrong for the rest of the fall, and the path
    # k (k + 1) g dt^2 / 2. The sums of either error are (n + 2) / 3 roundings of the whole fall.
    # Five more are those of g, of dt in both of its factors, and of the products g dt and v dt.
    roundings = 2 * (n + 2) / 3 + 5
    assert motion.q[-1, 2] == pytest.approx(-fallen, rel=rounding(roundings, motion.q))


def test_error_of_free_fall_is_of_first_order(f64):
    # T01: against the continuum, -g / 2.
    dts = np.array([0.01, 0.005, 0.002, 0.001])
    ends = [record(settings(free_body(), dt), steps=round(1 / dt)).q[-1, 2] for dt in dts]
    slope = np.polyfit(np.log(dts), np.log(np.abs(np.array(ends) + G / 2)), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.01)


def test_projectile(bound):
    # T02: 1.2e-14 / 4.3e-6
    n, dt = 500, 1e-3
    end = record(settings(free_body(), dt), qd=[3, 0, 4, 0, 0, 0], steps=n).q[-1, :3]
    np.testing.assert_allclose(
        end, [1.5, 0, 2.0 - G * dt**2 * n * (n + 1) / 2], rtol=bound(1e-12, 5e-6)
    )


@pytest.mark.parametrize("dt", [0.01, 0.001])
def test_velocity_damping_is_exponential(bound, dt):
    # T03: exp(-1) at any dt. 4e-14 / 3.2e-6
    sys = settings(free_body(), dt, (0, 0, 0), vel_damping=-0.5)
    end = record(sys, qd=[1, 0, 0, 0, 0, 0], steps=round(2 / dt)).qd[-1, 0]
    assert end == pytest.approx(0.367879441171442, rel=bound(1e-12, 1e-5))


@pytest.mark.parametrize("dt", [0.01, 0.001])
def test_box_tumbles_as_eulers_equations_say(bound, dt):
    # T08: 1.2e-8 at dt .01, of which 3e-9 is the answer's own; 6e-4 at .001 in single precision
    motion = tumble(dt, (1, 2, 3), round(2 / dt))
    for t, want in (
        (1, (1.08610044, -1.90431156, 3.04634176)),
        (2, (-1.34673204, -1.51905584, 3.20458297)),
    ):
        np.testing.assert_allclose(spin(motion)[round(t / dt) - 1], want, atol=4 * dt)


@pytest.mark.parametrize("dt", [0.01, 0.001])
def test_tumbling_box_keeps_its_angular_momentum(bound, dt):
    # T08: 2e-13 in double precision; in single 3e-6 at dt .01 and 8e-6 at .001, by XLA 1.2e-5
    n = round(2 / dt)
    motion = tumble(dt, (1, 2, 3), n)
    L = momentum(motion)
    drift = np.linalg.norm(L - np.array(BOX) * (1, 2, 3), axis=-1).max() / np.linalg.norm(L[0])
    # A step rounds each component of the quaternion five times: a product and three sums, of which
    # one term is as large as the component and the others are a few hundredths, and the product
    # that keeps it of unit length. The angle's error is twice the quaternion's. The body's angular
    # velocity is rounded once, and its small change adds less than one rounding. The rotation of
    # the last angular velocity takes eight: twice the error of the length.
    assert drift < rounding(12 * n + 8, motion.qd)


def test_energy_of_a_tumble_never_grows(bound):
    # T09: 7e-12, 2e-7 in single precision
    assert np.diff(energy(tumble(0.01, (1, 2, 3), 500))).max() < bound(1e-9, 1e-4)


def test_energy_and_momentum_of_a_long_tumble(bound):
    # T09: 1 - 5e-10 and 6e-16 in double, 1 - 5e-6 and 2e-6 in single precision, by XLA 1 + 5e-6
    n = 500
    motion = tumble(0.01, (1, 2, 3), n)
    E, L = energy(motion), momentum(motion)
    # A step rounds each component of the angular velocity once, which changes the energy by at most
    # two roundings. The rounded change of the velocity, some hundredths of it, adds less than one.
    rounded = bound(0.0, rounding(3 * n, motion.qd))
    assert 0.93 <= E[-1] / (0.326666667 / 2) <= 1.0 + rounded
    assert np.abs(L - np.array(BOX) * (1, 2, 3)).max() <= 5e-3


@pytest.mark.slow
@pytest.mark.parametrize("omega", [(0.05, 5, 0.05), (20, 0.05, 0.05)])
def test_energy_never_grows_over_100_seconds(f64, omega):
    # T10
    E = energy(tumble(0.005, omega, 20000, every=10))
    assert E.max() < 1.01 * 0.5 * np.sum(np.array(BOX) * np.square(omega))


@pytest.mark.parametrize(
    ("omega", "period"), [((0.01, 5, 0.01), 12.901246), ((0.05, 5, 0.05), 10.220305)]
)
def test_flips_about_the_middle_axis(f64, omega, period):
    # T11: omega_y changes sign every half period. .19 % and .01 %
    dt, every = 1e-3, 4
    wy = spin(tumble(dt, omega, 20000, every=every))[:, 1]
    (at,) = np.nonzero(np.diff(np.sign(wy)))
    flips = (at + 1 + wy[at] / (wy[at] - wy[at + 1])) * dt * every
    assert len(flips) >= 2
    assert flips[1] - flips[0] == pytest.approx(period / 2, rel=0.01)


def test_a_quaternion_is_normalized(bound):
    # T14 i, iii
    sys = free_body()
    q = jnp.array([0, 0, 0, 2.0, 0, 0, 0])
    np.testing.assert_array_equal(SPRING.init(sys, q, jnp.zeros(6)).q[3:], [1, 0, 0, 0])
    turn = np.array([0.5, 0.5, -0.5, 0.5])
    steps = [
        record(settings(sys, 0.01), q=[0, 0, 0, *(s * turn)], qd=[0, 0, 0, 1, 2, 3], steps=1)
        for s in (1, -1)
    ]
    np.testing.assert_array_equal(steps[0].qd, steps[1].qd)


@pytest.mark.parametrize(
    "steps", [100_000, pytest.param(1_000_000, marks=[pytest.mark.slow, pytest.mark.long])]
)
def test_a_quaternion_stays_normalized(bound, steps):
    # T14 ii: within 4 units in the last place; 0.5 / 0.8
    motion = tumble(0.01, (1, 2, 3), steps, every=1000)
    ulp = np.finfo(motion.rot.dtype).eps
    assert np.abs(np.linalg.norm(motion.rot.astype(float), axis=-1) - 1).max() < 4 * ulp


def test_rotation_is_the_exact_exponential(bound):
    # T15: ten radians about z. 7e-15 / 2e-6
    motion = tumble(0.01, (0, 0, 10), 100)
    w, _, _, z = motion.rot[-1, 0].astype(float)
    off = 2 * np.arctan2(z, w) - 10
    assert abs(off - 2 * np.pi * round(off / (2 * np.pi))) < bound(1e-12, 1e-5)


def test_arrays_keep_the_precision(bound):
    # T72: nothing is promoted or cut on the way.
    want = bound(jnp.float64, jnp.float32)
    sys = free_body()
    state = SPRING.step(sys, SPRING.init(sys, sys.init_q, jnp.zeros(6)), jnp.zeros(0))
    assert {x.dtype for x in jax.tree.leaves(state)} == {jnp.dtype(want)}
