"""Limits, dry friction and couplings of tendons, by arithmetic, in every pipeline."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import PIPELINES, G

from brax import plugins
from brax.builder import ModelBuilder

MASSES = 1.0, 2.0
SOFT = {"generalized": 0.02}
"""Tolerance of soft limits against hard ones."""


@functools.cache
def carts(pipeline, **tendon):
    """Return rates and positions of two carts in a row, each tenth of a second.

    The tendon measures how much farther the second one is.
    """
    builder = ModelBuilder()
    builder.set_option(timestep=0.001, gravity=(0, 0, 0))
    for i, mass in enumerate(MASSES):
        builder.add_body(f"cart{i}", pos=(0, i, 0), mass=mass, inertia=(1, 1, 1))
        builder.add_joint(f"cart{i}", "slide", name=f"slide{i}", axis=(1, 0, 0))
    builder.add_tendon({"slide1": 1.0, "slide0": -1.0}, "band", **tendon)
    return recorded(builder.build(), pipeline)


def recorded(sys, pipeline, tenths=20):
    run = plugins.get("pipeline", pipeline)

    @jax.jit
    def motion(q, qd):
        def tenth(state, _):
            state = run.step(sys, state, jnp.zeros(0), n_frames=100)
            return state, (state.q, state.qd)

        return jax.lax.scan(tenth, run.init(sys, q, qd), length=tenths)[1]

    return motion


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("way", [1.0, -1.0])
def test_two_carts_on_a_band_that_gets_tight_go_on_together(pipeline, way, f64):
    """The second runs ahead, or the first past it, until they are .2 m apart."""
    motion = carts(pipeline, range=(-0.2, 0.2))
    q, qd = map(np.asarray, motion(jnp.zeros(2), jnp.array([0.0, way])))
    soft = SOFT.get(pipeline, 1e-9)
    # what happens where a limit is soft: it throws back a little of what comes
    np.testing.assert_allclose(q[1, 1] - q[1, 0], 0.2 * way, atol=1e-3 + soft)
    np.testing.assert_allclose(qd[-1] @ MASSES, 2.0 * way, rtol=1e-9)
    assert np.abs(q[:, 1] - q[:, 0]).max() < 0.2 + 1e-3 + soft
    if pipeline != "generalized":
        np.testing.assert_allclose(qd[3:], 2.0 / 3.0 * way, rtol=1e-9)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_band_that_rubs_brings_two_carts_to_one_speed(pipeline, f64):
    """0.5 N slow their relative motion by .75 m/s^2: it stops after 1.33 s."""
    motion = carts(pipeline, frictionloss=0.5)
    _, qd = map(np.asarray, motion(jnp.zeros(2), jnp.array([1.0, 0.0])))
    time = 0.1 * np.arange(1, 21)
    apart = np.maximum(1.0 - 0.75 * time, 0.0)
    np.testing.assert_allclose(qd[:, 0] - qd[:, 1], apart, atol=2e-3)
    np.testing.assert_allclose(qd @ MASSES, 1.0, rtol=1e-9)


@functools.cache
def on_a_string(pipeline):
    """Return a ball that hangs on a string of a metre from the origin."""
    builder = ModelBuilder()
    builder.set_option(timestep=0.001)
    builder.add_site("world", "hook")
    builder.add_body("ball", pos=(0.6, 0, -0.6), mass=1.0, inertia=(0.004,) * 3)
    builder.add_joint("ball", "free")
    builder.add_site("ball", "eye")
    builder.add_tendon({}, "string", path=["hook", "eye"], range=(0, 1.0))
    return recorded(builder.build(), pipeline, tenths=10)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_ball_falls_freely_until_its_string_is_tight(pipeline, f64):
    """At (.6, -.8); then it swings, as a pendulum that begins with what of its speed is along."""
    motion = on_a_string(pipeline)
    start = jnp.array([0.6, 0, -0.6, 1, 0, 0, 0])
    q, qd = map(np.asarray, motion(start, jnp.zeros(6)))
    soft = SOFT.get(pipeline, 0.0)
    np.testing.assert_allclose(q[1, 2], -0.6 - 0.5 * G * 0.2**2, atol=2e-3)
    far = np.linalg.norm(q[:, :3], axis=1)
    assert (far < 1.0 + 1e-3 + soft).all()
    if pipeline != "generalized":  # whose limits are soft, and throw back
        assert (far[3:] > 1.0 - 1e-3).all()
        along = 2 * G * 0.2 * 0.6**2  # of the speed squared when it gets tight
        speed2 = (qd[3:, :3] ** 2).sum(1)
        np.testing.assert_allclose(speed2, along + 2 * G * (-0.8 - q[3:, 2]), atol=1e-2)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_rod_on_a_leash_swings_no_further_than_that(pipeline, f64):
    """Half a metre of leash from where its end hangs: the chord of 0.505 rad of a metre."""
    builder = ModelBuilder()
    builder.set_option(timestep=0.001)
    builder.add_site("world", "post", pos=(0, 0, -1))
    builder.add_body("rod", mass=1.0, ipos=(0, 0, -0.5), inertia=(1 / 12, 1 / 12, 1e-3))
    builder.add_joint("rod", "hinge", axis=(0, -1, 0))
    builder.add_site("rod", "end", pos=(0, 0, -1))
    builder.add_tendon({}, "leash", path=["post", "end"], range=(-1.0, 0.5))
    q, qd = map(np.asarray, recorded(builder.build(), pipeline)(jnp.zeros(1), jnp.array([3.0])))
    far = 2 * np.arcsin(0.25)
    soft = SOFT.get(pipeline, 0.0)
    assert q.max() < far + 3e-3 + soft
    # It is there after .2 s, stops, and swings back from rest: 3/2 g sin(angle) slow it.
    if pipeline != "generalized":
        np.testing.assert_allclose(q[1], far, atol=2e-2)
        assert -3.0 < qd[1, 0] <= 1e-6
        energy = qd[2:8, 0] ** 2 / 6 + 0.5 * G * (1 - np.cos(q[2:8, 0]))
        np.testing.assert_allclose(energy, 0.5 * G * (1 - np.cos(far)), rtol=2e-2)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_its_derivatives_are_finite(pipeline, f64):
    start = jnp.array([0.6, 0, -0.6, 1, 0, 0, 0])
    slope = jax.jacfwd(lambda qd: on_a_string(pipeline)(start, qd)[0][-1])(jnp.zeros(6))
    assert np.isfinite(slope).all()


@pytest.mark.parametrize("pipeline", ["spring", "positional"])
def test_a_leash_coupled_to_a_cart_hands_it_momentum(pipeline, f64):
    """A rod of 1/3 kg m^2 at one radian pulls a cart of 1 kg by a tendon.

    The tendon lengthens by cos(1/2) per radian. Both have their rates after one step without
    gravity.
    """
    builder = ModelBuilder()
    builder.set_option(timestep=1e-6, gravity=(0, 0, 0))
    builder.add_site("world", "post", pos=(0, 0, -1))
    builder.add_body("rod", mass=1.0, ipos=(0, 0, -0.5), inertia=(1 / 12, 1 / 12, 1e-3))
    builder.add_joint("rod", "hinge", axis=(0, -1, 0))
    builder.add_site("rod", "end", pos=(0, 0, -1))
    builder.add_body("cart", mass=1.0, inertia=(1, 1, 1))
    builder.add_joint("cart", "slide", "rail", axis=(1, 0, 0))
    builder.add_tendon({}, "leash", path=["post", "end"])
    builder.add_tendon({"rail": 1.0}, "rail")
    builder.add_coupling("rail", "leash", of="tendon")
    sys, run = builder.build(), plugins.get("pipeline", pipeline)
    q = jnp.array([1.0, 2 * np.sin(0.5)])
    state = run.step(sys, run.init(sys, q, jnp.array([1.0, 0.0])), jnp.zeros(0))
    rate, longer = (1 / 3) / (1 / 3 + np.cos(0.5) ** 2), np.cos(0.5)
    np.testing.assert_allclose(state.qd, [rate, longer * rate], rtol=1e-4)


@functools.cache
def atwood(pipeline, spatial):
    """Return an Atwood machine: weights of 1 and 2 kg on tendons under two hooks.

    One tendon shortens as the other lengthens.
    """
    builder = ModelBuilder()
    builder.set_option(timestep=0.001)
    for i, mass in enumerate(MASSES):
        name = f"weight{i}"
        builder.add_body(name, pos=(i, 0, -1), mass=mass, inertia=(0.01,) * 3)
        builder.add_joint(name, "free" if spatial else "slide", name, axis=(0, 0, 1))
        if spatial:
            builder.add_site("world", f"hook{i}", pos=(i, 0, 0))
            builder.add_site(name, f"eye{i}")
        joints, path = ({}, [f"hook{i}", f"eye{i}"]) if spatial else ({name: -1.0}, ())
        builder.add_tendon(joints, f"string{i}", path=path)
    builder.add_coupling("string0", "string1", of="tendon", polycoef=(0, -1, 0, 0, 0))
    return builder.build(), recorded(builder.build(), pipeline, tenths=5)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("spatial", [False, True])
def test_two_weights_on_a_pulley_fall_and_rise_as_atwood_says(pipeline, spatial, f64):
    """The heavier falls by a third of gravity."""
    sys, motion = atwood(pipeline, spatial)
    q, qd = map(np.asarray, motion(sys.init_q, jnp.zeros(sys.qd_size())))
    place = (2, 9) if spatial else (0, 1)
    rate = (2, 8) if spatial else (0, 1)
    moved = q[:, place] - np.asarray(sys.init_q)[list(place)]
    soft = 0.003 if pipeline == "generalized" else 1e-6
    np.testing.assert_allclose(moved.sum(1), 0, atol=soft)
    time = 0.1 * np.arange(1, 6)
    fallen = 0.5 * G / 3 * time * (time + 0.001)
    np.testing.assert_allclose(moved, np.outer(fallen, [1, -1]), atol=2e-3 + soft)
    np.testing.assert_allclose(qd[-1, rate], np.array([1, -1]) * G / 3 * 0.5, rtol=1e-2)
