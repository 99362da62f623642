"""Equality constraints in maximal coordinates: loops, welds and couplings against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import physics_lab
import pytest
from physics_lab import FAST_COMPILE, G, record, settings
from scipy.integrate import solve_ivp

from brax.builder import ModelBuilder
from brax.positional.pipeline import POSITIONAL
from brax.spring.pipeline import SPRING

NO_GRAVITY = (0, 0, 0)


@pytest.fixture(params=[SPRING, POSITIONAL], ids=lambda p: p.name)
def pipeline(request, monkeypatch):
    """Return the pipeline of the test, which `record` runs too."""
    monkeypatch.setattr(physics_lab, "PIPELINE", request.param)
    return request.param


def rotate(quat, vector):
    """Vectors turned by quaternions (..., 4)."""
    w, v = quat[..., :1], quat[..., 1:]
    return vector + 2 * np.cross(v, np.cross(v, vector) + w * vector)


MASS, COUPLER, LENGTH, WIDTH = 0.5, 0.8, 0.4, 0.6


def rod(model, name, parent, pos, mass, along, **joint):
    """Return a thin rod from its hinge along y to `along`."""
    moment = mass * np.dot(along, along) / 12
    model.add_body(
        name, parent, pos, mass=mass, inertia=(moment,) * 3, ipos=np.multiply(0.5, along)
    )
    model.add_joint(name, "hinge", name=name, axis=(0, 1, 0), **joint)


def linkage():
    """Return a parallelogram of crank, coupler and rocker, closed by an equality."""
    model = ModelBuilder()
    rod(model, "crank", "world", (0, 0, 0), MASS, (0, 0, -LENGTH))
    rod(model, "coupler", "crank", (0, 0, -LENGTH), COUPLER, (WIDTH, 0, 0))
    rod(model, "rocker", "world", (WIDTH, 0, 0), MASS, (0, 0, -LENGTH))
    model.add_connect("coupler", "rocker", anchor=(WIDTH, 0, 0))
    return model.build()


@pytest.mark.slow
def test_a_parallelogram_swings_as_a_pendulum(bound_slow, pipeline):
    """Its coupler does not turn, so it is a pendulum with a known moment of inertia."""
    start, dt, seconds = np.radians(60), 2e-3, 10.0
    steps = int(seconds / dt)
    motion = record(settings(linkage(), dt), q=[start, -start, start], steps=steps, every=10)
    moment = (2 * MASS / 3 + COUPLER) * LENGTH**2
    pull = (MASS + COUPLER) * LENGTH * G / moment
    times = dt * np.arange(10, steps + 1, 10)
    exact = solve_ivp(
        lambda _, y: [y[1], -pull * np.sin(y[0])],
        (0, seconds),
        [start, 0.0],
        t_eval=times,
        rtol=1e-10,
        atol=1e-10,
    )
    tips = [
        motion.pos[:, link] + rotate(motion.rot[:, link], np.asarray(at, float))
        for link, at in ((1, (WIDTH, 0, 0)), (2, (0, 0, -LENGTH)))
    ]
    # Measured 3e-7 m, 4e-9 rad and 5.7e-3 rad, which is of first order in the time step.
    assert np.abs(tips[0] - tips[1]).max() < bound_slow(1e-6, 1e-5)
    assert np.abs(motion.q[:, 1] + motion.q[:, 0]).max() < bound_slow(1e-7, 1e-4)
    assert np.abs(motion.q[:, 0] - exact.y[0]).max() < 7e-3


def bob(by):
    """Return a body that hangs from a point of the world, by a ball joint or by an equality."""
    model = ModelBuilder()
    model.add_body("bob", mass=1.0, inertia=(0.02, 0.03, 0.01), ipos=(0.1, 0.2, -0.3))
    model.add_joint("bob", "ball" if by == "ball" else "free")
    if by == "connect":
        model.add_connect("bob")
    elif by == "weld":
        model.add_weld("bob", torquescale=0.0)
    return model.build()


@pytest.mark.parametrize("by", ["connect", "weld"])
def test_an_equality_with_the_world_is_a_ball_joint(f64, pipeline, by):
    """So is a weld without torque."""
    rate = [1.0, 2.0, 3.0]
    ball = record(settings(bob("ball"), 1e-3), qd=rate, steps=1000, every=10)
    tied = record(settings(bob(by), 1e-3), qd=[0, 0, 0, *rate], steps=1000, every=10)
    np.testing.assert_allclose(tied.pos, 0, atol=1e-5)  # 3e-6
    # 1e-3 in `spring`, where a link without joints turns to higher order; 8e-9 in `positional`
    np.testing.assert_allclose(tied.rot, ball.rot, atol=2e-3)


PARTS = (((0.1, 0.2, 0.15), 1.0), ((0.05, 0.04, 0.08), 0.5))
"""Half sides of two boxes [m], and their masses [kg]."""
OFFSET = np.array([0.2, 0.1, 0.3])


def moments(sides, mass):
    square = np.square(sides)
    return mass / 3 * (square.sum() - square)


def welded(times=1):
    """Two boxes that a weld makes one, `times` times."""
    model = ModelBuilder()
    for name, pos, part in (("a", np.zeros(3), PARTS[0]), ("b", OFFSET, PARTS[1])):
        model.add_body(name, pos=pos, mass=part[1], inertia=moments(*part))
        model.add_joint(name, "free")
    for i in range(times):
        model.add_weld("a", "b", f"weld{i}", anchor=(0.1 * i, 0, 0))
    model.set_option(gravity=NO_GRAVITY)
    return model.build()


def one():
    """Return the two boxes as one body, about the first one's frame."""
    masses = [mass for _, mass in PARTS]
    centre = masses[1] * OFFSET / sum(masses)
    inertia = np.zeros((3, 3))
    for (sides, mass), at in zip(PARTS, (-centre, OFFSET - centre), strict=True):
        inertia += np.diag(moments(sides, mass))
        inertia += mass * (at @ at * np.eye(3) - np.outer(at, at))
    values, axes = np.linalg.eigh(inertia)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    turn = np.array(
        [
            1 + np.trace(axes),
            axes[2, 1] - axes[1, 2],
            axes[0, 2] - axes[2, 0],
            axes[1, 0] - axes[0, 1],
        ]
    )
    model = ModelBuilder()
    model.add_body("a", mass=sum(masses), inertia=values, ipos=centre, iquat=turn)
    model.add_joint("a", "free")
    model.set_option(gravity=NO_GRAVITY)
    return model.build()


@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_weld_makes_two_bodies_one(f64, pipeline, times):
    """It tumbles as one body; a second weld that says the same changes nothing."""
    spin = np.array([1.0, 2.0, -1.5])
    rates = [0, 0, 0, *spin, *np.cross(spin, OFFSET), *spin]
    both = record(settings(welded(times), 1e-3), qd=rates, steps=1000, every=10)
    alone = record(settings(one(), 1e-3), qd=[0, 0, 0, *spin], steps=1000, every=10)
    np.testing.assert_allclose(both.pos[:, 0], alone.pos[:, 0], atol=2e-4)
    np.testing.assert_allclose(both.rot[:, 0], alone.rot[:, 0], atol=2e-4)
    apart = both.pos[:, 1] - both.pos[:, 0] - rotate(both.rot[:, 0], OFFSET)
    assert np.abs(apart).max() < 1e-5
    turned = np.abs((both.rot[:, 0] * both.rot[:, 1]).sum(-1))
    np.testing.assert_allclose(turned, 1, atol=1e-9)


def geared(polycoef):
    """Two carts, of which the first follows the second; a motor drives this one."""
    model = ModelBuilder()
    for name, mass in (("follows", 2.0), ("leads", 3.0)):
        model.add_body(name, mass=mass, inertia=(0.1, 0.1, 0.1))
        model.add_joint(name, "slide", name=name, axis=(1, 0, 0))
    model.add_coupling("follows", "leads", polycoef=polycoef)
    model.add_actuator("leads")
    model.set_option(gravity=NO_GRAVITY)
    return model.build()


def test_gears_share_a_force(f64, pipeline):
    """Gears share a force: a = F / (m2 + r^2 m1)."""
    ratio, force, dt = -2.0, 5.5, 1e-2
    motion = record(settings(geared((0, ratio, 0, 0, 0)), dt), act=[force], steps=100)
    times = dt * np.arange(1, 101)
    np.testing.assert_allclose(motion.qd[:, 1], force / (3 + 4 * 2) * times, rtol=1e-5)
    np.testing.assert_allclose(motion.qd[:, 0], ratio * motion.qd[:, 1], rtol=1e-5)
    np.testing.assert_allclose(motion.q[:, 0], ratio * motion.q[:, 1], rtol=1e-5)


def test_a_curve_is_followed_and_keeps_its_energy(f64, pipeline):
    """x1 = x2 + x2^2: (m1 (1 + 2 x2)^2 + m2) v2^2 stays, as the second cart slows down."""
    motion = record(
        settings(geared((0, 1, 1, 0, 0)), 1e-3), qd=[1.0, 1.0], act=[0.0], steps=1000, every=10
    )
    x, v = motion.q[:, 1], motion.qd[:, 1]
    np.testing.assert_allclose(motion.q[:, 0], x + x * x, atol=1e-5)  # 3e-6
    np.testing.assert_allclose((2 * (1 + 2 * x) ** 2 + 3) * v * v, 5.0, rtol=2e-3)
    assert v[-1] < 0.8


def dumbbell():
    """Two balls over a plane, welded."""
    model = ModelBuilder()
    model.add_geom(type="plane")
    for name, x, z in (("a", 0.0, 0.15), ("b", 0.3, 0.25)):
        model.add_body(name, pos=(x, 0, z), mass=1.0, inertia=(0.004,) * 3)
        model.add_joint(name, "free")
        model.add_geom(name, "sphere", size=(0.1,))
    model.add_weld("a", "b")
    return model.build()


@pytest.mark.slow
def test_a_dumbbell_comes_to_rest_in_one_piece(bound_slow, pipeline):
    motion = record(settings(dumbbell(), 2e-3), steps=2000, every=20)
    apart = np.linalg.norm(motion.pos[:, 1] - motion.pos[:, 0], axis=1)
    assert np.abs(apart - np.hypot(0.3, 0.1)).max() < bound_slow(1e-5, 1e-4)  # 6e-6
    assert np.abs(motion.pos[-1, :, 2] - 0.1).max() < 1e-4
    assert np.abs(motion.vel[-1]).max() < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", [SPRING, pytest.param(POSITIONAL, marks=pytest.mark.long)])
def test_derivatives_through_equalities(f64, pipeline):
    """Derivatives of a step agree with differences in both modes."""
    sys, rng = linkage(), np.random.default_rng(0)
    weights = rng.normal(size=6)

    @jax.jit
    def total(x, dt):
        sys_ = sys.tree_replace({"opt.timestep": dt})
        state = pipeline.init(sys_, x[:3], x[3:])
        state = pipeline.step(sys_, state, jnp.zeros(0))
        return jnp.concatenate([state.q, state.qd]) @ weights

    x, way = np.array([0.4, -0.4, 0.4, 1.0, -1.0, 1.0]), rng.normal(size=6)
    fast = jax.jit(jax.value_and_grad(total, argnums=(0, 1)), compiler_options=FAST_COMPILE)
    _, (slope, by_dt) = fast(x, 1e-2)
    forward = jax.jvp(lambda x: total(x, 1e-2), (x,), (way,))[1]
    step = 1e-5
    found = (total(x + step * way, 1e-2) - total(x - step * way, 1e-2)) / (2 * step)
    assert float(slope @ way) == pytest.approx(float(found), rel=1e-6)
    assert float(forward) == pytest.approx(float(found), rel=1e-6)
    found = (total(x, 1e-2 + 1e-6) - total(x, 1e-2 - 1e-6)) / 2e-6
    assert float(by_dt) == pytest.approx(float(found), rel=1e-5)
