"""Actuators on one slide: T23 to T25. A force F on a mass of one for one step gives F dt."""

import jax
import jax.numpy as jnp
import numpy as np
import physics_lab
import pytest
from physics_lab import PIPELINES, chain, rail, record, settings

from brax import plugins
from brax.errors import ModelError, ShapeError
from brax.spring.pipeline import SPRING

DT = 0.01


def force(ctrl, q=0.0, v=0.0, mass=1.0, **actuator):
    """Force on the slide at a state, from the change of its rate in one step."""
    sys = settings(rail(mass=mass, actuators=[actuator]), DT)
    return (record(sys, q=[q], qd=[v], act=[ctrl], steps=1).qd[0, 0] - v) / DT * mass


@pytest.mark.parametrize(
    ("want", "case"),
    [
        (6.0, dict(ctrl=2.0, gear=3.0)),
        (2.0, dict(ctrl=0.5, q=0.3, gainprm=(10.0,), biasprm=(0.0, -10.0))),
        (-2.0, dict(ctrl=0.0, v=1.0, gainprm=(2.0,), biasprm=(0.0, 0.0, -2.0))),
        # gear 3: length .9, so 3 (10 .5 - 10 .9) = -12
        (-12.0, dict(ctrl=0.5, q=0.3, gear=3.0, gainprm=(10.0,), biasprm=(0.0, -10.0))),
        # gear 3: velocity 3, so 3 (-2 3) = -18
        (-18.0, dict(ctrl=0.0, v=1.0, gear=3.0, gainprm=(2.0,), biasprm=(0.0, 0.0, -2.0))),
        (2.5, dict(ctrl=1.0, gainprm=(2.0,), biasprm=(0.5,))),
    ],
    ids=["motor", "position", "velocity", "position-gear", "velocity-gear", "constant-bias"],
)
def test_force_is_gear_times_gain_and_bias(bound, want, case):
    # T23: 1e-13 / 1e-6 of the force; the difference of rates rounds the rate, v / DT of it.
    rounding = abs(case.get("v", 0.0)) / DT * bound(1e-15, 2e-7)
    assert force(**case) == pytest.approx(want, rel=bound(1e-13, 1e-6), abs=rounding)


@pytest.mark.parametrize(("ctrl", "want"), [(10.0, 0.4), (-10.0, -0.4), (0.3, 0.3)])
def test_force_is_clamped(bound, ctrl, want):
    # T24; the clamp is on the actuator's force, before the gear.
    limits = dict(force_range=(-0.4, 0.4))
    assert force(ctrl, **limits) == pytest.approx(want, rel=bound(1e-13, 1e-6))
    assert force(ctrl, gear=3.0, **limits) == pytest.approx(3 * want, rel=bound(1e-13, 1e-6))


@pytest.mark.parametrize(("ctrl", "want"), [(5.0, 1.0), (-5.0, -1.0), (0.25, 0.25)])
def test_control_is_clamped(bound, ctrl, want):
    # T24
    got = force(ctrl, ctrl_range=(-1.0, 1.0))
    assert got == pytest.approx(want, rel=bound(1e-13, 1e-6), abs=0)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_control_that_is_nan_breaks_what_it_drives(f64, monkeypatch, pipeline):
    monkeypatch.setattr(physics_lab, "PIPELINE", plugins.get("pipeline", pipeline))
    sys = settings(rail(actuators=[dict(), dict(gear=2.0)]), DT)
    step = jax.jit(physics_lab.PIPELINE.step, static_argnums=3)
    start = physics_lab.PIPELINE.init(sys, sys.init_q, jnp.zeros(sys.qd_size()))
    broken, one = (step(sys, start, jnp.array([c, 1.0]), 1).qd for c in (np.nan, 1.0))
    assert np.isnan(broken[0])
    assert one[0] == pytest.approx(3 * DT, rel=1e-12)


def test_clamping_does_not_change_the_control(f64):
    # T24
    act = jnp.array([5.0])
    record(settings(rail(actuators=[dict(ctrl_range=(-1.0, 1.0))]), DT), act=act, steps=1)
    np.testing.assert_array_equal(act, [5.0])


def test_actuators_of_one_joint_add_up(bound_slow):
    sys = settings(rail(mass=2.0, actuators=[dict(gear=2.0), dict(gainprm=(3.0,))]), DT)
    v = record(sys, act=[1.0, -1.0], steps=1).qd[0, 0]
    assert v == pytest.approx(-1.0 / 2.0 * DT, rel=bound_slow(1e-13, 1e-6))


def test_each_actuator_drives_its_own_joint(f64):
    # Hinges at q = 0 without gravity; only the driven one is pushed forward.
    sys = settings(chain(4, 0.02, actuated=True, free=True), DT, (0, 0, 0))
    for i in range(3):
        rates = record(sys, act=np.eye(3)[i], steps=1).qd[0, 6:]
        assert rates[i] > 0 and np.argmax(np.abs(rates)) == i


@pytest.fixture(params=PIPELINES)
def pipeline(request):
    return plugins.get("pipeline", request.param)


def after(pipeline, ctrl, steps, start=None, **actuator):
    """Return the state after some steps of a mass of one under a constant control."""
    sys = settings(rail(actuators=[actuator]), DT)
    state = pipeline.init(sys, jnp.zeros(1), jnp.zeros(1))
    if start is not None:
        state = state.replace(activation=jnp.array([start]))
    return jax.jit(pipeline.step, static_argnums=3)(sys, state, jnp.array([ctrl]), steps)


@pytest.mark.parametrize(
    ("want", "case"),
    [
        (0.5 + 10 * DT * 2, dict(type="integral", ctrl=2.0, start=0.5)),
        (0.6, dict(type="integral", ctrl=2.0, start=0.5, activation_range=(-1, 0.6))),
        # ten times a' = a + .1 (1 - a)
        (1 - 0.9**10, dict(type="filter", ctrl=1.0, dynprm=(10 * DT,))),
        (1 - np.exp(-1), dict(type="filterexact", ctrl=1.0, dynprm=(10 * DT,))),
    ],
    ids=["integrator", "range", "filter", "filterexact"],
)
def test_an_activation_follows_its_control(f64, pipeline, want, case):
    # T25
    # The force is that of the activations before each step: a slide's rate is their sum times DT.
    state = after(pipeline, steps=10, **case)
    assert state.activation == pytest.approx(want, rel=1e-12)
    if case["type"] == "integral" and "activation_range" not in case:
        assert state.qd == pytest.approx(DT * (10 * 0.5 + 45 * DT * 2), rel=1e-9)


def test_an_early_actuator_is_a_step_ahead(f64, pipeline):
    for early, push in ((False, 0.0), (True, 2 * DT)):
        state = after(pipeline, 2.0, 1, type="integral", early=early)
        assert state.activation == pytest.approx(2 * DT, rel=1e-12)
        assert state.qd == pytest.approx(push * DT, rel=1e-9)


def test_a_gain_that_depends_on_the_motion(f64, pipeline):
    # (2 + 3 .4 - 4 .5) .7 + .1 - .2 .4 + .3 .5 = 1.01
    sys = settings(
        rail(actuators=[dict(type="general", gainprm=(2, 3, -4), biasprm=(0.1, -0.2, 0.3))]), DT
    )
    state = pipeline.init(sys, jnp.array([0.4]), jnp.array([0.5]))
    moved = jax.jit(pipeline.step)(sys, state, jnp.array([0.7]))
    assert (moved.qd - 0.5) / DT == pytest.approx(1.01, rel=1e-9)


def test_a_state_without_activations_starts_at_zero(f64):
    state = SPRING.init(rail(actuators=[{}]), jnp.zeros(1), jnp.zeros(1))
    assert state.activation is None
    sys = rail(actuators=[dict(type="integral")])
    state = SPRING.init(sys, jnp.zeros(1), jnp.zeros(1))
    assert state.activation is not None
    np.testing.assert_array_equal(state.activation, [0.0])
    old = SPRING.step(sys, state.replace(activation=None), jnp.ones(1))
    assert old.activation is not None
    np.testing.assert_allclose(old.activation, [sys.opt.timestep])
    with pytest.raises(ShapeError, match=r"state\.activation.*1 activations"):
        SPRING.step(sys, state.replace(activation=jnp.zeros(2)), jnp.ones(1))


def test_what_an_activation_asks_for_is_refused_without_one():
    for wrong in (dict(early=True), dict(activation_range=(0, 1))):
        with pytest.raises(ModelError, match="actuator 'drive0': type 'affine' has no activation"):
            rail(actuators=[wrong])
    with pytest.raises(ModelError, match="'drive0': length_range needs a lower and a larger"):
        rail(actuators=[dict(type="muscle")])
