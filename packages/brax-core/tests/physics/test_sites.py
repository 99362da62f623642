"""Actuators on sites in every pipeline: what one step changes, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics_lab import PIPELINES, rail

from brax import plugins
from brax.builder import ModelBuilder
from brax.errors import ModelError
from brax.sensors import sensors

DT = 0.01


@pytest.fixture(params=PIPELINES)
def pipeline(request):
    return plugins.get("pipeline", request.param)


def craft():
    """Return a body of 2 kg, its centre off its origin, with a site on a fused part."""
    model = ModelBuilder()
    model.add_body("body", mass=2.0, inertia=(0.1, 0.2, 0.25), ipos=(0.1, 0, 0))
    model.add_joint("body", "free")
    model.add_body("arm", "body", pos=(0, 0.5, 0), quat=(np.sqrt(0.5), 0, 0, np.sqrt(0.5)))
    model.add_site("arm", "rotor", pos=(0.2, 0, 0))
    model.add_actuator(
        site="rotor", gear=3.0, wrench=np.array([1, 0, 0, 0, 0, 0.5]), ctrl_range=(-1, 1)
    )
    model.set_option(timestep=DT, gravity=(0, 0, 0))
    return model


def test_a_force_on_a_site_pushes_and_turns(f64, pipeline):
    sys = craft().build()
    state = pipeline.init(sys, sys.init_q, jnp.zeros(6))
    state = jax.jit(pipeline.step)(sys, state, jnp.array([2.0]))
    # The arm's x is the body's y: 3 N along y at (0, .7, 0), and 1.5 N m about z.
    # About the centre (.1, 0, 0): -.1 3 + 1.5 = 1.2 N m, over .25 kg m^2.
    spin = np.array([0, 0, 1.2 / 0.25]) * DT
    np.testing.assert_allclose(state.xd.ang[0], spin, atol=1e-12)
    centre = np.array([0, 3 / 2 * DT, 0])
    arm = state.x.pos[0] - (np.array([0.1, 0, 0]) + centre * DT)
    np.testing.assert_allclose(state.xd.vel[0], centre + np.cross(spin, arm), atol=2e-5)


@pytest.mark.parametrize(
    ("sites", "length"),
    [
        (dict(site="a", wrench=(2, 0, 0, 0, 0, 0)), 0.0),
        # 2 (.1 - .4) along the reference's x
        (dict(site="a", refsite="b", wrench=(2, 0, 0, 0, 0, 0)), -0.6),
        # Of the two places .4 m above and below the crank's site, MuJoCo takes the lower one.
        (dict(site="a", refsite="b", crank_length=0.5), -0.4),
    ],
    ids=["site", "reference", "crank"],
)
def test_an_actuator_on_sites_of_the_world_moves_nothing(f64, pipeline, sites, length):
    model = ModelBuilder()
    model.add_body("body", mass=2.0, inertia=(0.1, 0.2, 0.25))
    model.add_joint("body", "slide", axis=(0, 0, 1))
    model.add_site("world", "a", pos=(0.1, 0, 0))
    model.add_site("world", "b", pos=(0.4, 0, 0))
    model.add_sensor("actuatorpos", ("actuator", model.add_actuator(**sites)))
    model.set_option(gravity=(0, 0, -10), timestep=DT)
    sys = model.build()
    start = pipeline.init(sys, sys.init_q, jnp.zeros(1))
    state = jax.jit(pipeline.step)(sys, start, jnp.array([2.0]))
    np.testing.assert_allclose(state.qd, [-10 * DT], rtol=1e-9)
    np.testing.assert_allclose(sensors(sys, start, jnp.array([2.0])), [length], rtol=1e-9)


def test_what_a_joints_actuators_give_is_bounded(f64, pipeline):
    sys = rail(actuators=[dict(gear=3.0), dict()], actuator_range=(-1.0, 2.0))
    step = jax.jit(pipeline.step)
    start = pipeline.init(sys, jnp.zeros(1), jnp.zeros(1))
    for act, want in (((1.0, 1.0), 2.0), ((-1.0, 1.0), -1.0), ((1.0, -2.5), 0.5)):
        state = step(sys, start, jnp.array(act))
        assert float(state.qd[0] / sys.opt.timestep) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        ("there is no site 'motor'. Did you mean 'rotor'", dict(site="motor")),
        ("there is no site 'motor'", dict(site="rotor", refsite="motor")),
        ("it has a refsite, but no site to act on", dict(joint="body_free0", refsite="rotor")),
        ("a site to act on or a body that adheres, one of them", dict()),
        ("one of them", dict(site="rotor", joint="body_free0")),
        ("wrench needs 6 numbers", dict(site="rotor", wrench=(1, 2, 3))),
    ],
)
def test_a_bad_actuator_on_a_site_is_refused(message, wrong):
    model = craft()
    model.add_actuator(name="wrong", **wrong)
    with pytest.raises(ModelError, match=message):
        model.build()


def test_a_site_on_nothing_is_refused():
    model = craft()
    model.add_site("bodyy", "lost")
    with pytest.raises(ModelError, match="site 'lost': there is no body 'bodyy'"):
        model.build()
