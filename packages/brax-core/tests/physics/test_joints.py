"""Slides and hinges: T04, T05, T07, T16, T17, T19, T20, and momentum of chains (T59).

Where a bound has a comment, the number in it is the residual that was measured.
"""

import numpy as np
import physics_lab
import pytest
from physics_lab import PIPELINES, G, chain, pendulum, rail, record, settings

from brax import plugins
from brax.builder import ModelBuilder


def slope_of(dts, errors):
    return np.polyfit(np.log(dts), np.log(errors), 1)[0]


def crossings(values, dt):
    """Return the times of zero crossings of a sampled oscillation, by linear interpolation."""
    (at,) = np.nonzero(np.diff(np.sign(values)))
    return (at + 1 + values[at] / (values[at] - values[at + 1])) * dt


@pytest.mark.parametrize("dt", [1e-2, 1e-4, 1e-6, 1e-8])
def test_strong_damping_never_turns_the_motion_round(bound, dt):
    # T04
    sys = settings(rail(damping=1e6), dt)
    v = record(sys, qd=[1.0], steps=100).qd[:, 0]
    assert (v >= 0).all() and v[0] < 1
    assert (np.diff(v) <= 0).all()


def test_implicit_damping_is_the_discrete_power(bound):
    # T03 for a joint: v / (1 + damping dt) each step, .368797 after 2 s at dt .01.
    v = record(settings(rail(damping=0.5), 0.01), qd=[1.0], steps=200).qd[-1, 0]
    assert v == pytest.approx((1 + 0.005) ** -200, rel=bound(1e-12, 1e-5))


@pytest.mark.parametrize("dt", [0.01, 0.005, 0.001])
def test_oscillator_has_the_discrete_frequency(f64, dt):
    # T05: cos(w_d dt) = 1 - (w dt)^2 / 2, and bounded for ever; k = 300, m = 2. 2e-10 at dt .001
    k, m, n = 300.0, 2.0, round(0.5130199 / dt) * 100
    wd = np.arccos(1 - k / m * dt**2 / 2) / dt
    sys = settings(rail(mass=m, stiffness=300.0), dt)
    motion = record(sys, q=[0.1], steps=n)
    # In closed form a cos(w_d t) + b sin(w_d t), where q_1 = q_0 - w^2 dt^2 q_0.
    t = dt * np.arange(1, n + 1)
    b = (0.1 * (1 - k / m * dt**2) - 0.1 * np.cos(wd * dt)) / np.sin(wd * dt)
    want = 0.1 * np.cos(wd * t) + b * np.sin(wd * t)
    np.testing.assert_allclose(motion.q[:, 0], want, atol=1e-9 * 0.1)


def test_oscillator_in_single_precision():
    # T05: the frequency over 50 periods.
    dt, k, m = 0.005, 300.0, 2.0
    q = record(settings(rail(mass=m, stiffness=k), dt), q=[0.1], steps=5300).q[:, 0]
    times = crossings(q.astype(float), dt)[:101]
    measured = np.pi * 100 / (times[-1] - times[0])
    wd = np.arccos(1 - k / m * dt**2 / 2) / dt
    assert len(times) == 101
    assert measured == pytest.approx(wd, rel=1e-5)


def plane_oscillator():
    """Return a mass on two crossed slides, each with a spring of stiffness one."""
    model = ModelBuilder()
    model.add_body("mass", mass=1.0, inertia=(0.1, 0.1, 0.1))
    model.add_joint("mass", "slide", axis=(1, 0, 0), stiffness=1.0)
    model.add_joint("mass", "slide", axis=(0, 1, 0), stiffness=1.0)
    model.set_option(gravity=(0, 0, 0))
    return model.build()


@pytest.mark.slow
def test_orbit_of_two_springs_keeps_its_angular_momentum(bound_slow):
    # T07: 100 periods; an ellipse with semi-axes 1 and .5, L = .5, E = .625.
    dt, every = 0.02, 4
    n = round(200 * np.pi / dt)
    motion = record(settings(plane_oscillator(), dt), q=[1, 0], qd=[0, 0.5], steps=n, every=every)
    (x, y), (u, v) = motion.q.T.astype(float), motion.qd.T.astype(float)
    assert np.abs(x * v - y * u - 0.5).max() < bound_slow(1e-12, 1e-4)


def test_orbit_of_two_springs_closes(f64):
    # T07: E = .625 up to the swing of a symplectic method; axes to dt^2 of the discrete ellipse.
    dt = 0.02
    n = round(200 * np.pi / dt)
    motion = record(settings(plane_oscillator(), dt), q=[1, 0], qd=[0, 0.5], steps=n)
    tail = motion.q[-round(2 * np.pi / dt) :]
    # Samples of a symplectic step lie on the exact invariant q^2 + v^2 - dt q v of each axis.
    for axis, semi in ((0, 1.0), (1, 0.5)):
        assert abs(np.abs(tail[:, axis]).max() - semi) < dt**2


def period_ratio(sys, degrees, small):
    dt = float(sys.opt.timestep)
    q = record(sys, q=[np.radians(degrees)], steps=round(small * 2.6 / dt)).q[:, 0]
    times = crossings(q, dt)
    return 2 * (times[1] - times[0]) / small


@pytest.mark.parametrize(
    ("degrees", "ratio"),
    [
        (5, 1.000476172),
        (30, 1.017408798),
        (60, 1.073182007),
        (90, 1.180340599),
        (120, 1.372880501),
        (150, 1.762203730),
        (170, 2.439362720),
    ],
)
def test_period_of_a_pendulum(bound, degrees, ratio):
    # T16: the elliptic integral; a ball of radius .05 on a rod of length one. 2.2e-5 / 1.8e-4
    moment = 0.4 * 0.05**2
    small = 2 * np.pi * np.sqrt((moment + 1) / G)
    sys = settings(pendulum(), 1e-3)
    assert period_ratio(sys, degrees, small) == pytest.approx(ratio, rel=1e-3)


def test_period_of_a_rod(f64):
    # T16: a uniform rod of length one, released at 90 degrees: 1.933334854 s.
    sys = settings(pendulum(moment=1 / 12, length=0.5), 1e-3)
    assert period_ratio(sys, 90, 1.0 * 1.64) * 1.64 == pytest.approx(1.933334854, rel=1e-3)


def chain_energy(motion, moment):
    """Return the energy of a chain of links of mass and length one in the plane y = 0."""
    ang = motion.ang[..., 1]
    angle = np.cumsum(motion.q, axis=-1)
    step = np.stack([-np.sin(angle), -np.cos(angle)], axis=-1)
    speed = np.stack([-np.cos(angle) * ang, np.sin(angle) * ang], axis=-1)
    pos, vel = np.cumsum(step, axis=1), np.cumsum(speed, axis=1)
    kinetic = 0.5 * np.sum(vel**2, axis=(1, 2)) + 0.5 * 1.1 * moment * np.sum(ang**2, axis=1)
    return kinetic + G * np.sum(pos[..., 1], axis=1)


@pytest.mark.slow
def test_energy_of_a_double_pendulum_drifts_no_more_than_mujocos(f64):
    # T17: both horizontal at rest, so E = 0; MuJoCo's Euler drifts 6.6 J at dt .01, .57 J at .001.
    # Ours .61 J and .16 J.
    worst = []
    for dt in (0.01, 0.005, 0.002, 0.001):
        motion = record(settings(chain(2, 1e-3), dt), q=[np.pi / 2, 0], steps=round(10 / dt))
        worst.append(np.abs(chain_energy(motion, 1e-3)).max())
    assert worst[0] < 6.6 and worst[3] < 0.57
    assert slope_of((0.005, 0.002, 0.001), worst[1:]) >= 0.9  # .96


@pytest.mark.parametrize("dt", [2.5e-4, 5e-4, 1e-3])
@pytest.mark.parametrize(("force", "rest"), [(10.0, 0.1), (-10.0, 0.0)])
def test_a_slide_rests_at_its_limit(f64, dt, force, rest):
    # T19: 1e-8 m and 7e-15 m/s at dt .001
    sys = settings(rail(range=(0.0, 0.1), actuators=[{}]), dt)
    motion = record(sys, q=[0.05], act=[force], steps=2000)
    assert abs(motion.q[-1, 0] - rest) < 1100 * dt**2
    assert abs(motion.qd[-1, 0]) < 1e-12


@pytest.mark.parametrize("dt", [2.5e-4, 5e-4, 1e-3])
def test_a_hinge_rests_at_its_limit(f64, dt):
    # T20: a rod of length one, torque 1.5 N m.
    model = ModelBuilder()
    model.add_body("rod", mass=1.0, inertia=(1 / 12, 1 / 12, 1e-3), ipos=(0, 0, -0.5))
    model.add_joint("rod", "hinge", name="pin", axis=(0, 1, 0), range=(-0.5, 0.5))
    model.add_actuator("pin")
    sys = settings(model.build(), dt, (0, 0, 0))
    motion = record(sys, act=[1.5], steps=4000)
    assert abs(motion.q[-1, 0] - 0.5) < 5100 * dt**2
    assert abs(motion.qd[-1, 0]) < 1e-12


def chain_momenta(motion, sys):
    """Linear and angular momentum about the origin, from the links' frames alone."""
    mass, moments = np.asarray(sys.link.inertia.mass), np.asarray(sys.link.inertia.moments)
    ipos = np.asarray(sys.link.inertia.transform.pos)
    w, v = motion.rot[..., :1], motion.rot[..., 1:]

    def turn(a, sign=1.0):
        t = 2 * np.cross(sign * v, a)
        return a + w * t + np.cross(sign * v, t)

    arm = turn(np.broadcast_to(ipos, v.shape))
    com, vel = motion.pos + arm, motion.vel + np.cross(motion.ang, arm)
    P = mass[:, None] * vel
    L = np.cross(com, P) + turn(moments * turn(motion.ang, -1.0))
    return P.sum(axis=1), L.sum(axis=1)


@pytest.mark.slow
def test_torques_between_links_keep_the_total_momentum(bound_slow):
    # T59: from rest, without gravity; torques and rotors are internal, so P = L = 0.
    sys = settings(
        chain(4, 0.02, actuated=True, free=True, armature=0.02, damping=0.1, stiffness=0.5),
        0.005,
        (0, 0, 0),
    )
    motion = record(sys, act=[1.0, -0.7, 0.5], steps=400)
    P, L = chain_momenta(motion, sys)
    assert np.abs(motion.qd[-1]).max() > 0.5  # it did move
    # One rounding a step of the links' momenta, which add up to 3; 50 / 105 eps and 120 / 160 eps.
    round_off = 400 * 3 * np.finfo(motion.q.dtype).eps
    assert np.abs(P).max() < round_off
    assert np.abs(L).max() < round_off


def test_a_rotor_slows_what_its_motor_turns(f64):
    # Armature adds to the inertia that the motor sees: a = F / (m + armature).
    sys = settings(rail(mass=1.0, armature=0.5, actuators=[{}]), 0.01)
    v = record(sys, act=[3.0], steps=50).qd[-1, 0]
    assert v == pytest.approx(3.0 / 1.5 * 0.5, rel=1e-12)


@pytest.mark.slow
def test_a_rotor_keeps_its_rate_while_its_link_tumbles(f64):
    # A rotor of 1 kg m^2 on a leg of 1e-3: the leg's gyroscopic torque, some I w^2, hardly moves
    # it. 7.8e-5 rad/s, 5.4e-5 in generalized coordinates.
    model = ModelBuilder()
    model.add_body("hull", mass=1.0, inertia=(0.03, 0.02, 0.01))
    model.add_joint("hull", "free")
    model.add_body("leg", "hull", pos=(0.2, 0, 0), mass=0.04, inertia=(1e-3, 8e-4, 4e-4))
    model.add_joint("leg", "hinge", axis=(0, 0, 1), armature=1.0)
    sys = settings(model.build(), 0.002, (0, 0, 0))
    end = record(sys, qd=[0, 0, 0, 5, 3, 2, 0], steps=250)
    assert abs(end.qd[-1, 6]) < 1e-3


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_spring_is_at_rest_at_springref(f64, monkeypatch, pipeline):
    # Critically damped: exp(-w t) of the way is left, w = 2 1/s.
    monkeypatch.setattr(physics_lab, "PIPELINE", plugins.get("pipeline", pipeline))
    sys = settings(rail(springref=0.2, stiffness=4.0, damping=4.0), 0.01)
    motion = record(sys, steps=1500)
    assert motion.q[-1, 0] == pytest.approx(0.2, abs=1e-9)
    assert motion.q[:, 0].max() < 0.2 + 1e-9


def bead_on_a_rod():
    """Return a mass that slides on a turntable too heavy to notice."""
    model = ModelBuilder()
    model.add_body("table", mass=1.0, inertia=(1, 1, 1))
    model.add_joint("table", "hinge", axis=(0, 0, 1), armature=1e6)
    model.add_body("bead", "table", mass=1.0, inertia=(0.1, 0.1, 0.1))
    model.add_joint("bead", "slide", axis=(1, 0, 0))
    return model.build()


@pytest.mark.slow
def test_a_bead_on_a_turning_rod(f64):
    # r'' = w^2 r, so r = .5 cosh(w t), at w = 2: 1.8e-4, and the rod holds it to 2.1e-5 m, at dt
    # .01; a rod that bends its way by Coriolis' and the centripetal acceleration too late, to 1e-3.
    sys = settings(bead_on_a_rod(), 0.01, (0, 0, 0))
    motion = record(sys, q=[0, 0.5], qd=[2, 0], steps=100)
    angle, r = motion.q.T
    assert r[-1] == pytest.approx(0.5 * np.cosh(2), rel=1e-3)
    along = np.stack([r * np.cos(angle), r * np.sin(angle), 0 * r], axis=-1)
    np.testing.assert_allclose(motion.pos[:, 1], along, atol=1e-4)
