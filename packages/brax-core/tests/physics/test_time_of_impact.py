"""Bounces whose time within a step counts, `opt.time_of_impact`: motion and derivatives, T79."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import FAST_COMPILE, G, rail, settings

from brax.builder import ModelBuilder
from brax.errors import ModelError
from brax.generalized.pipeline import GENERALIZED
from brax.integrators.variational import VARIATIONAL
from brax.positional.pipeline import POSITIONAL
from brax.spring.pipeline import SPRING

RADIUS = 0.1
PIPELINES = [
    pytest.param(SPRING, id="spring"),
    pytest.param(POSITIONAL, id="positional", marks=pytest.mark.slow),
]


def ball_on_a_rail(in_time=True):
    """Return a ball that moves up and down over a floor."""
    model = ModelBuilder()
    model.add_body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1))
    model.add_joint("ball", "slide", axis=(0, 0, 1))
    model.add_geom(type="plane", size=(0, 0, 1))
    model.add_geom("ball", "sphere", size=(RADIUS,))
    model.set_option(time_of_impact=in_time)
    return model.build()


@functools.partial(jax.jit, static_argnames="pipeline", compiler_options=FAST_COMPILE)
def fly(pipeline, sys, start, gravity, elasticity, steps):
    """Height and speed after a number of steps, and derivatives by height and speed before."""
    sys = sys.tree_replace(
        {
            "opt.gravity": jnp.array([0.0, 0.0, -1.0]) * gravity,
            "geom.elasticity": jnp.full(2, elasticity),
        }
    )

    def end(start):
        state = pipeline.init(sys, start[:1], start[1:])
        step = lambda _, s: pipeline.step(sys, s, jnp.zeros(0))  # noqa: E731
        state = jax.lax.fori_loop(0, steps, step, state)
        return jnp.concatenate([state.q, state.qd])

    return end(start), jax.jacfwd(end)(start)


def flight(pipeline, height, speed, gravity, elasticity, seconds, dt=1 / 480, in_time=True):
    sys = settings(ball_on_a_rail(in_time), dt)
    start = jnp.array([RADIUS + height, speed])
    return fly(pipeline, sys, start, gravity, elasticity, round(seconds / dt))


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_the_derivative_of_a_bounce(f64, pipeline):
    # T79: spring 2e-4, which four sweeps leave of the impulse; positional 6e-14.
    _, slopes = flight(pipeline, 0.9, -2.0, 0.0, 1.0, 1.0)
    np.testing.assert_allclose(slopes, [[-1.0, -1.0], [0.0, -1.0]], atol=2e-2)


@pytest.mark.slow
def test_without_the_option_the_derivative_of_a_bounce_has_the_wrong_sign(f64):
    # Which step the ball bounces in does not change, and it bounces from where it is then.
    _, slopes = flight(SPRING, 0.9, -2.0, 0.0, 1.0, 1.0, in_time=False)
    assert slopes[0, 0] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_bounce_under_gravity(f64, pipeline):
    # Dropped from 1 m: z = e v s - g s^2 / 2, v = sqrt(2 g h), s = T - v / g. Euler's step is
    # off by up to one step of gravity, 2e-2; measured 1.9e-2. The derivatives: 2.4e-3, 2.3e-3.
    e, end = 0.8, 0.7
    v = np.sqrt(2 * G)
    s = end - v / G
    after, slopes = flight(pipeline, 1.0, 0.0, G, e, end)
    want = [RADIUS + e * v * s - G * s * s / 2, e * v - G * s]
    np.testing.assert_allclose(after, want, rtol=0, atol=G / 480)
    by_height = np.array([e * s - e * v / G + s, e + 1.0]) * (G / v)
    np.testing.assert_allclose(slopes[:, 0], by_height, rtol=0, atol=2e-2 * by_height[1])


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_many_bounces_come_to_rest(f64, pipeline):
    (height, speed), slopes = flight(pipeline, 1.0, 0.0, G, 0.5, 5.0)
    assert height == pytest.approx(RADIUS, abs=1e-6)
    assert abs(speed) < 1e-6
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_an_elastic_ball_gains_no_energy(f64, pipeline):
    for seconds in (1.0, 2.0, 3.7, 5.0):
        height, speed = flight(pipeline, 1.0, 0.0, G, 1.0, seconds)[0]
        # The speed is half a step of gravity ahead.
        energy = G * (height - RADIUS) + (speed - G / 480 / 2) ** 2 / 2
        assert energy == pytest.approx(G, rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_ball_that_sticks_at_a_bounce(f64, pipeline):
    # Friction stops the slip of a solid ball (I = 2/5 m r^2) at once: it keeps 5/7 of its speed and
    # spins at that over its radius, whatever the gap at the start of the step of the impact was.
    model = ModelBuilder()
    model.add_body("ball", mass=1.0, inertia=[0.4 * RADIUS**2] * 3)
    model.add_joint("ball", "free")
    model.add_geom(type="plane", size=(0, 0, 1), friction=(5, 0, 0))
    model.add_geom("ball", "sphere", size=(RADIUS,), friction=(5, 0, 0))
    model.set_option(time_of_impact=True)
    sys = settings(model.build(), 0.01, (0, 0, 0))
    sys = sys.tree_replace({"geom.elasticity": jnp.ones(2)})

    @functools.partial(jax.jit, compiler_options=FAST_COMPILE)
    def end(speed):
        q = jnp.array([0, 0, RADIUS + 0.9, 1, 0, 0, 0.0])
        state = pipeline.init(sys, q, jnp.array([1.0, 0, 0, 0, 0, 0]).at[2].set(-speed))
        step = lambda _, s: pipeline.step(sys, s, jnp.zeros(0))  # noqa: E731
        state = jax.lax.fori_loop(0, 100, step, state)
        return jnp.array([state.q[0], state.qd[0], state.qd[4]])

    for speed in (2.0, 1.99, 1.983):
        x, along, spin = end(speed)
        np.testing.assert_allclose([along, spin * RADIUS], [5 / 7, 5 / 7], rtol=1e-4)
        impact = 0.9 / speed
        # In `positional` friction acts over the whole step: .01 s of the 2/7 that are lost.
        near = 1e-4 if pipeline is SPRING else 0.01 * 2 / 7
        assert x == pytest.approx(impact + 5 / 7 * (1 - impact), abs=near)
    if pipeline is SPRING:
        # A slower ball meets the floor later, and keeps its speed for longer.
        _, slope = jax.jvp(end, (2.0,), (1.0,))
        assert slope[0] == pytest.approx(-2 / 7 * 0.9 / 2.0**2, abs=1e-3)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_the_end_of_a_step_has_no_jumps(f64, pipeline):
    # The ball meets the floor in this step or in the next: once more 1 um makes no difference.
    ends = [flight(pipeline, 0.9 + h, -2.0, G, 0.8, 0.6)[0] for h in np.arange(0, 9e-3, 3e-4)]
    change = np.diff(np.array(ends), axis=0)
    assert np.abs(change).max() < 3e-3


def test_the_generalized_pipeline_refuses_the_option():
    sys = rail().tree_replace({"opt.time_of_impact": True})
    with pytest.raises(ModelError, match="time_of_impact"):
        GENERALIZED.init(sys, jnp.zeros(1), jnp.zeros(1))


@pytest.mark.parametrize("pipeline", [SPRING, POSITIONAL])
def test_an_integrator_that_drifts_before_it_kicks_is_refused(pipeline):
    # Under half a drift, a kick, half a drift an elastic ball gained a tenth of its energy in 20 s.
    sys = ball_on_a_rail().replace(integrator=VARIATIONAL)
    with pytest.raises(ModelError, match=r"init: impacts at their time.*'euler'; .*'variational'"):
        pipeline.init(sys, sys.init_q, jnp.zeros(1))
