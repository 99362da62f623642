"""Adhesion: MuJoCo's motion, forces by arithmetic, derivatives, and what is refused."""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from generalized_lab import both
from physics_lab import FAST_COMPILE, G

from brax.builder import ModelBuilder
from brax.contracts import ADHESION
from brax.errors import ModelError
from brax.generalized.pipeline import GENERALIZED
from brax.io import json as brax_json
from brax.io import mjcf
from brax.positional.pipeline import POSITIONAL
from brax.sensors import sensors
from brax.spring.pipeline import SPRING

SCENE = """<mujoco><option timestep=".002" cone="{cone}"/><compiler angle="radian"/>
<default><geom friction=".8 .1 .1" contype="0" conaffinity="0"/></default><worldbody>
<geom type="plane" size="1 1 1" zaxis=".2 .1 -1" pos="0 0 1" margin=".002" gap=".006"
contype="1"/>
<body name="box" pos="-.026 -.013 .88"><freejoint/><geom type="box" size=".1 .08 .12" mass="1"
margin=".001" gap=".004" conaffinity="1"/></body>
<body name="ball" pos="2 0 .01"><freejoint/><geom name="ball" size=".1" mass=".5"
contype="2"/></body>
<body name="arm" pos="2 0 -.3"><joint name="hinge" axis="0 1 0" damping=".1"/>
<geom name="arm" type="capsule" fromto="0 0 0 0 0 .1" size=".1" mass=".4" conaffinity="2"
gap=".02"/><body name="knob" pos=".08 0 .02"><geom name="knob" pos="0 0 .08" size=".1" mass=".1"
conaffinity="2"/></body></body></worldbody>
<contact><pair geom1="ball" geom2="knob" gap=".05" margin=".001"/></contact>
<actuator><adhesion name="under" body="box" ctrlrange="0 1" gain="40"/>
<adhesion body="arm" ctrlrange="0 2" gain="9"/><adhesion body="knob" ctrlrange="0 2" gain="5"/>
<general name="slow" body="ball" ctrlrange="0 2" gainprm="12" dyntype="filter" dynprm=".1"/>
<motor joint="hinge" gear=".3"/></actuator>
<sensor><jointactuatorfrc joint="hinge"/><actuatorfrc actuator="slow"/></sensor></mujoco>"""


@functools.cache
def move():
    return jax.jit(GENERALIZED.step, compiler_options=FAST_COMPILE)


def run(sys, peer, steps, seed=0):
    """Step both from MuJoCo's states, with a new control every ten; yield both accelerations."""
    data, rng, dt = peer.data, np.random.default_rng(seed), peer.model.opt.timestep
    data.qvel[:] = 0.1 * rng.normal(size=peer.model.nv)
    state = GENERALIZED.init(sys, jnp.array(data.qpos), jnp.array(data.qvel))
    for i in range(steps):
        if i % 10 == 0:
            data.ctrl[:] = rng.uniform(0.2, 2.5, peer.model.nu)
        now = dict(q=data.qpos, qd=data.qvel, activation=data.act)
        state = state.replace(**{k: jnp.array(v) for k, v in now.items()})
        before = data.qvel.copy()
        state = move()(sys, state, jnp.array(data.ctrl))
        mujoco.mj_step(peer.model, data)
        yield (np.asarray(state.qd) - before) / dt, (data.qvel - before) / dt


@pytest.mark.slow
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_accelerations_are_mujocos(f64, cone):
    """Adhesion accelerates a box under a slope, and a ball on an arm, as in MuJoCo.

    The arm has two bodies. Contacts open and close, and some are in their gap.
    """
    peer = both(SCENE.format(cone=cone))
    sys = peer.sys.tree_replace({"opt.iterations": 20, "opt.ls_iterations": 10})
    seen, in_gap = set(), 0
    for mine, want in run(sys, peer, 120):
        np.testing.assert_allclose(mine, want, rtol=0, atol=1e-9 * np.abs(want).max())  # 1e-13
        found = peer.data.contact
        seen.add(peer.data.ncon)
        in_gap += (found.exclude == 1).any() and (found.exclude == 0).any()
    assert len(seen) > 1 and in_gap > 10


@pytest.mark.slow
def test_sensors_are_mujocos(f64):
    peer = both(SCENE.format(cone="pyramidal"))
    for _ in run(peer.sys, peer, 15):
        pass
    data = peer.data
    mujoco.mj_forward(peer.model, data)
    state = GENERALIZED.init(peer.sys, jnp.array(data.qpos), jnp.array(data.qvel))
    state = state.replace(activation=jnp.array(data.act))
    got = sensors(peer.sys, state, jnp.array(data.ctrl))
    np.testing.assert_allclose(got, data.sensordata, rtol=1e-9)
    assert abs(data.sensordata[0] - 0.3 * min(data.ctrl[4], 2.5)) > 0.01  # more than the motor's


def hanging(lower=1, **option):
    """Return a ball of 0.5 kg a centimetre under a ceiling, within the gap, and others below.

    It has two geoms in one place, which share the force.
    """
    model = ModelBuilder()
    model.set_option(**option)
    model.add_geom(type="plane", name="ceiling", pos=(0, 0, 1), quat=(0, 1, 0, 0), gap=0.02)
    for i in range(1 + lower):
        name = f"ball{i}"
        model.add_body(name, pos=(i, 0, 0.89 - 0.3 * i), mass=0.5, inertia=(0.002,) * 3)
        model.add_joint(name, "slide", name=f"slide{i}", axis=(0, 0, 1))
        for _ in range(2 - i):
            model.add_geom(name, "sphere", size=(0.1,), condim=1)
        model.add_actuator(body=name, gainprm=(20.0,), ctrl_range=(0, 2))
    return model


def accelerations(sys, pos, act):
    state = GENERALIZED.init(sys, jnp.array(pos, float), jnp.zeros(sys.qd_size()))
    return move()(sys, state, jnp.array(act, float)).qd / sys.opt.timestep


@pytest.mark.slow
@pytest.mark.parametrize("option", [{}, {"max_contact_points": 1}])
def test_a_ball_is_pulled_over_the_gap_and_one_out_of_reach_falls(f64, option):
    """F / m - g; of the nearest contact alone as of all."""
    sys = hanging(**option).build()
    fall = accelerations(sys, (0.0, 0.0), (0.7, 0.7))
    np.testing.assert_allclose(fall, [20 * 0.7 / 0.5 - G, -G], rtol=1e-12)
    fall = accelerations(sys, (-0.011, 0.0), (3.0, 3.0))
    np.testing.assert_allclose(fall, -G, rtol=1e-12)
    fall = accelerations(sys.replace(geom_gap=sys.geom_gap + 0.001), (-0.011, 0), (3.0, 3.0))
    np.testing.assert_allclose(fall, [20 * 2 / 0.5 - G, -G], rtol=1e-12)


@functools.cache
def pressed():
    """Return a ball's rate after a step, and its derivatives by control and gain in both modes."""
    sys = hanging(lower=0).build()

    def moved(x, depth):
        model = sys.replace(actuator_gainprm=sys.actuator_gainprm * x[1])
        state = GENERALIZED.init(model, 0.01 + depth[None], jnp.zeros(1))
        return GENERALIZED.step(model, state, x[:1]).qd[0]

    every = (moved, jax.jacfwd(moved), jax.grad(moved))
    return jax.jit(lambda *x: [f(*x) for f in every], compiler_options=FAST_COMPILE)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [-0.005, 0.001])
def test_derivatives_by_the_control_and_the_gain(f64, depth):
    """Against central differences, across the gap and pressed against the ceiling."""
    x, depth, small = jnp.array([0.8, 1.1]), jnp.array(depth), 1e-5
    _, *slopes = pressed()(x, depth)
    ends = [[pressed()(x + d, depth)[0] for d in (h, -h)] for h in small * jnp.eye(2)]
    measured = [(above - below) / (2 * small) for above, below in ends]
    assert min(np.abs(measured)) > 1e-4
    for slope in slopes:
        np.testing.assert_allclose(slope, measured, rtol=1e-6)


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        ("there is no body 'bal1'. Did you mean 'ball1'", dict(body="bal1", ctrl_range=(0, 1))),
        ("'wrong': it only pulls, so its ctrl_range needs bounds", dict(body="ball0")),
        ("not negative, got \\(-1, 1\\)", dict(body="ball0", ctrl_range=(-1, 1))),
        ("or a body that adheres, one of them", dict(body="ball0", joint="slide0")),
    ],
)
def test_bad_adhesion_is_refused(message, wrong):
    model = hanging()
    model.add_actuator(**{"name": "wrong"} | wrong)
    with pytest.raises(ModelError, match=message):
        model.build()


def test_a_negative_gap_is_refused():
    model = hanging()
    model.add_geom("ball0", "sphere", "skin", size=(0.1,), gap=-0.1)
    with pytest.raises(ModelError, match=r"geom 'skin': gap must be >= 0, got -0\.1"):
        model.build()


def test_pipelines_without_adhesion_refuse_it_by_name():
    sys = hanging().build()
    for pipeline in (SPRING, POSITIONAL):
        with pytest.raises(ModelError, match=r"the model has adhesion \(actuators of a body\)"):
            pipeline.init(sys, sys.init_q, jnp.zeros(2))
        assert (ADHESION, "refused") in [row[:2] for row in pipeline.report(sys)]
    model = hanging()
    model.add_body("cart", mass=1.0, inertia=(0.1,) * 3)
    model.add_joint("cart", "slide", actuator_range=(-1, 1))
    sys = model.build()
    with pytest.raises(ModelError, match=r"\(actuatorfrcrange\) together with adhesion"):
        GENERALIZED.init(sys, sys.init_q, jnp.zeros(3))


def test_it_survives_json_and_a_body_that_is_not_there_does_not():
    sys = mjcf.loads(SCENE.format(cone="pyramidal"))
    assert sys.actuator_body == (("link", 0), ("link", 2), ("fixed", 0), ("link", 1), None)
    assert brax_json.loads(brax_json.dumps(sys)).actuator_body == sys.actuator_body
    text = brax_json.dumps(sys.replace(actuator_body=(("link", 7), *sys.actuator_body[1:])))
    with pytest.raises(ModelError, match=r"system\.actuator_body\[0\]: there is no link 7"):
        brax_json.loads(text)
