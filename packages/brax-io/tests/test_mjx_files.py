"""The pipeline `mjx` on systems from files: MuJoCo's own model, with the numbers of the system."""

import re

import chex
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from brax import mjx as pipeline
from brax.base import Force
from brax.errors import ModelError
from brax.io import json, mjcf

# A hand on an arm: two bodies without joints, one of them with mass, a mesh, gravity compensation,
# a weld, a spatial tendon, a site, a camera, a keyframe and a filtered actuator.
ROBOT = """<mujoco model="robot"><compiler angle="radian"/>
<option timestep=".004" solver="Newton" iterations="20"/>
<asset><mesh name="wedge" vertex="0 0 0 .1 0 0 0 .1 0 0 0 .1"/></asset>
<worldbody><geom name="floor" type="plane" size="1 1 1"/>
<camera name="side" pos="0 -2 1" xyaxes="1 0 0 0 0 1"/>
<body name="arm" pos="0 0 .6" gravcomp=".5"><joint name="turn" axis="0 1 0" damping=".2" ref=".1"/>
  <geom name="upper" type="capsule" size=".03" fromto="0 0 0 .3 0 0" mass="1"/>
  <body name="mount" pos=".3 0 0" euler=".2 .1 .3">
    <geom name="plate" type="box" size=".04 .05 .02" mass=".3"/>
    <site name="tip" pos=".02 .01 .05"/>
  <body name="hand" pos=".05 0 -.05">
    <joint name="bend" axis="0 1 0" range="-1 1" stiffness="2" springref=".2"/>
    <geom name="finger" type="mesh" mesh="wedge" mass=".2"/></body></body></body>
<body name="ball" pos=".2 0 .05"><freejoint/>
  <geom name="ball" size=".05" mass=".1" friction=".7"/></body>
<site name="anchor" pos=".1 0 1"/></worldbody>
<tendon><spatial name="rope" stiffness="5" damping=".1"><site site="anchor"/><site site="tip"/>
</spatial></tendon>
<actuator><motor name="push" joint="turn" gear="2"/><position joint="bend" kp="4"/>
  <general joint="bend" dyntype="filter" dynprm=".05" gainprm=".5"/></actuator>
<sensor><jointpos joint="turn"/></sensor>
<keyframe><key name="home" qpos=".3 -.2 .2 0 .05 1 0 0 0"/></keyframe></mujoco>"""

CONTROLS = [0.1, -0.2, 0.3]


@pytest.fixture(scope="module")
def robot():
    return mjcf.loads(ROBOT)


@pytest.fixture(scope="module")
def start(robot):
    """Return the state of the keyframe, under controls."""
    pytest.importorskip("mujoco.mjx")
    init = jax.jit(lambda q, ctrl: pipeline.MJX.init(robot, q, jnp.zeros(8), ctrl=ctrl))
    return init(robot.keyframes.q[0], jnp.array(CONTROLS))


@pytest.fixture(scope="module")
def plain_start():
    """Return a state of the model without what MJX can only take from the file."""
    pytest.importorskip("mujoco.mjx")
    sys = mjcf.loads(_text_with(PLAIN))
    return jax.jit(lambda: pipeline.MJX.init(sys, sys.init_q, jnp.zeros(8)))()


@pytest.fixture(scope="module")
def step():
    """Return a compiled step of a system that is an argument, which is compiled once."""
    pytest.importorskip("mujoco.mjx")
    return jax.jit(lambda sys, state, act: pipeline.MJX.step(sys, state, act))


def test_a_system_prints_the_name_of_its_file(robot):
    assert repr(robot).startswith("System('robot', 3 links, 3 joints, ")


def test_a_system_from_a_file_has_mujocos_model_and_counts(robot):
    model = mujoco.MjModel.from_xml_string(ROBOT)
    np.testing.assert_array_equal(robot.mj_model.keyframe("home").qpos, model.key_qpos[0])
    assert robot.mj_model.site("tip").id == model.site("tip").id
    for count in ("nq", "nv", "nu", "na", "njnt", "ngeom", "nsite", "ncam", "ntendon", "nkey"):
        assert getattr(robot, count) == getattr(model, count), count
    # A body without joints is part of its parent.
    assert robot.nbody == model.nbody - 1 == robot.body_mass.shape[0]


def test_another_system_has_no_model_of_a_file(robot):
    read = json.loads(json.dumps(robot))
    with pytest.raises(ModelError, match="mj_model: the system did not come from a file"):
        read.mj_model  # noqa: B018


def test_the_users_model_is_not_changed_and_not_followed():
    model = mujoco.MjModel.from_xml_string(ROBOT)
    sys = mjcf.load_model(model)
    model.body_mass[1] = 99
    assert sys.mj_model.body_mass[1] != 99


def test_files_that_differ_in_numbers_can_be_stacked(robot):
    heavy = mjcf.loads(ROBOT.replace('mass="1"', 'mass="2"').replace('size=".03"', 'size=".04"'))
    both = jax.tree.map(lambda *x: jnp.stack(x), robot, heavy)
    assert both.link.inertia.mass.shape == (2, 3)
    other = mjcf.loads(ROBOT.replace('iterations="20"', 'iterations="30"'))
    with pytest.raises(AssertionError):
        chex.assert_trees_all_equal_structs(other, robot)


@pytest.mark.slow
def test_states_carry_the_data_of_mjx(robot, start):
    state = start
    data = mujoco.MjData(robot.mj_model)
    mujoco.mj_resetDataKeyframe(robot.mj_model, data, 0)
    data.ctrl[:] = CONTROLS
    mujoco.mj_forward(robot.mj_model, data)
    kinematics = ("qpos", "site_xpos", "subtree_com", "cinert", "cvel", "xpos", "ten_length")
    for name in (*kinematics, "ctrl", "qfrc_actuator"):
        np.testing.assert_allclose(getattr(state, name), getattr(data, name), atol=2e-6)
    np.testing.assert_allclose(state.x.pos, data.xpos[[1, 3, 4]], atol=1e-6)
    assert state.contact.geom.shape == (state.contact.dist.shape[0], 2)
    moved = state.tree_replace({"qvel": jnp.ones(8), "xfrc_applied": state.xfrc_applied + 1.0})
    np.testing.assert_array_equal(moved.qd, 1.0)
    data.qvel[:], data.xfrc_applied[:], data.ctrl[:] = 1, 1, 0.1
    mujoco.mj_step(robot.mj_model, data)
    after = jax.jit(lambda s: pipeline.MJX.step(robot, s, jnp.full(3, 0.1)))(moved)
    np.testing.assert_allclose(after.qvel, data.qvel, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(after.act, data.act, atol=1e-6)
    assert float(after.time) == pytest.approx(0.004)
    with pytest.raises(AttributeError, match="neither the state nor MJX's data has 'xpo'"):
        state.xpo  # noqa: B018
    with pytest.raises(ModelError, match="State has no field 'xpo'"):
        state.replace(xpo=1)


PLAIN = {
    ' gravcomp=".5"': "",
    'type="mesh" mesh="wedge"': 'type="cylinder" size=".03 .05"',
}
"""Parts in place of those whose numbers MJX can only take from the file; tendons are left out."""

NUMBERS = {
    'timestep=".004"': 'timestep=".002" gravity="1 0 -8"',
    'damping=".2" ref=".1"': 'damping=".5" ref="-.2" armature=".03"',
    'fromto="0 0 0 .3 0 0" mass="1"': 'fromto="0 0 0 .2 .1 0" mass="1.7"',
    'euler=".2 .1 .3"': 'euler=".5 .1 .3"',
    'size=".04 .05 .02" mass=".3"': 'size=".06 .05 .02" mass=".4"',
    'range="-1 1" stiffness="2" springref=".2"': 'range="-1 .1" stiffness="3" springref=".6"',
    'size=".03 .05" mass=".2"': 'size=".05 .02" mass=".5"',
    'size=".05" mass=".1" friction=".7"': 'size=".055" mass=".2" friction=".2"',
    'gear="2"': 'gear="3"',
    'kp="4"': 'kp="7"',
    'dynprm=".05"': 'dynprm=".02"',
}
"""Numbers of the file, and others in their place."""


def _text_with(numbers):
    text = re.sub("<tendon>.*</tendon>", "", ROBOT, flags=re.DOTALL)
    for old, new in numbers.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


@pytest.mark.slow
@pytest.mark.parametrize("numbers", [{}, NUMBERS], ids=["the file", "other numbers"])
def test_a_compiled_step_takes_the_numbers_of_any_such_file(plain_start, step, numbers):
    """By MuJoCo C on the file itself; both cases share one compiled program."""
    text = _text_with(PLAIN | numbers)
    model, sys = mujoco.MjModel.from_xml_string(text), mjcf.loads(text)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    touching = 0
    for _ in range(20):
        data.qpos[:] = model.key_qpos[0] + np.r_[rng.uniform(-1, 1, 2), np.zeros(7)]
        data.qvel[:], data.ctrl[:] = rng.uniform(-1, 1, 8), rng.uniform(-1, 1, 3)
        data.act[:], data.qacc_warmstart[:] = rng.uniform(0, 1, 1), 0
        state = plain_start.replace(
            q=jnp.array(data.qpos), qd=jnp.array(data.qvel), activation=jnp.array(data.act)
        )
        before = data.qvel.copy()
        state = step(sys, state, jnp.array(data.ctrl))
        mujoco.mj_step(model, data)
        touching += data.ncon > 0
        change = np.abs(data.qvel - before).max()
        np.testing.assert_allclose(state.qd, data.qvel, atol=1e-3 * change)
        # Where the step began, and so of bodies without joints too.
        np.testing.assert_allclose(state.geom_xpos, data.geom_xpos, atol=1e-5)
        np.testing.assert_allclose(state.site_xpos, data.site_xpos, atol=1e-5)
    assert touching > 10
    assert step._cache_size() == 1


@pytest.mark.slow
@pytest.mark.long
def test_numbers_are_randomized_in_a_batch(plain_start):
    """A heavier ball and another gain, by MuJoCo C with the same numbers."""
    text = _text_with(PLAIN)
    robot, model = mjcf.loads(text), mujoco.MjModel.from_xml_string(text)
    masses, gains = jnp.array([0.1, 0.3]), jnp.array([1.0, 2.0])

    @jax.jit
    @jax.vmap
    def ends(mass, gain):
        new = robot.replace(
            body_mass=robot.body_mass.at[3].set(mass),
            actuator_gainprm=robot.actuator_gainprm.at[0, 0].set(gain),
        )
        start = plain_start.replace(qvel=jnp.ones(8))
        return pipeline.MJX.step(new, start, jnp.ones(3)).qd

    ball = model.body("ball").id
    for mass, gain, found in zip(masses, gains, ends(masses, gains), strict=True):
        model.body_mass[ball], model.actuator_gainprm[0, 0] = mass, gain
        data = mujoco.MjData(model)
        mujoco.mj_setConst(model, data)  # MuJoCo has the inertia of simple bodies stored
        data.qpos[:], data.qvel[:], data.ctrl[:] = robot.init_q, 1, 1
        mujoco.mj_step(model, data)
        np.testing.assert_allclose(found, data.qvel, atol=1e-4 * np.abs(data.qvel).max())


def test_what_mjx_cannot_have_is_named(robot):
    pytest.importorskip("mujoco.mjx")
    heavy = robot.replace(body_mass=robot.body_mass * 2)
    with pytest.raises(ModelError, match=r"cannot have other numbers of 'link\.inertia\.mass'"):
        pipeline.MJX.init(heavy, heavy.init_q, jnp.zeros(8))
    moved = robot.replace(points=robot.points * 2)
    with pytest.raises(ModelError, match="cannot have other numbers of 'points' than the file"):
        pipeline.MJX.init(moved, moved.init_q, jnp.zeros(8))
    with pytest.raises(ModelError, match="the model has 7 problems") as caught:
        jax.eval_shape(pipeline.MJX.init, robot, robot.init_q, jnp.zeros(8))
    for path in ("link.gravcomp_arm", "points", "tendon.share"):
        assert f"'{path}'" in str(caught.value)


@pytest.mark.skipif(int(mujoco.__version__.split(".")[0]) < 4, reason="new in MuJoCo 4")
def test_what_mjx_would_ignore_is_refused():
    pytest.importorskip("mujoco.mjx")
    sys = mjcf.loads("""<mujoco><worldbody>
<geom type="plane" size="1 1 1" surfacevel="1 0 0 0 0 0"/>
<body pos="0 0 1"><joint name="j" axis="0 1 0"/><geom size=".1"/></body></worldbody>
<actuator><motor joint="j" armature=".1"/></actuator></mujoco>""")
    with pytest.raises(ModelError, match="the model has 2 problems") as caught:
        pipeline.MJX.init(sys, sys.init_q, jnp.zeros(1))
    for problem in (
        "MJX does not compute moving surfaces of geoms (geom_surfacevel)",
        "MJX does not compute armature of actuators (actuator_armature)",
    ):
        assert problem in str(caught.value)


@pytest.mark.slow
@pytest.mark.long
def test_an_external_force_acts_at_the_centre_of_mass_of_the_whole_link(robot, start):
    """By MuJoCo C, with the force applied at the common centre of mass of the arm's two bodies."""
    model = robot.mj_model
    data, arm, mount = mujoco.MjData(model), model.body("arm").id, model.body("mount").id
    data.qpos[:] = robot.keyframes.q[0]
    mujoco.mj_forward(model, data)
    masses = model.body_mass[[arm, mount]]
    centre = masses @ data.xipos[[arm, mount]] / masses.sum()
    force, torque = np.array([3.0, 1.0, -9.0]), np.array([0.2, -4.0, 0.5])
    mujoco.mj_applyFT(model, data, force, torque, centre, arm, data.qfrc_applied)
    mujoco.mj_step(model, data)
    push = Force(jnp.zeros((3, 3)).at[0].set(torque), jnp.zeros((3, 3)).at[0].set(force))
    after = jax.jit(lambda s: pipeline.MJX.step(robot, s, None, 1, push))(start)
    np.testing.assert_allclose(after.qd, data.qvel, atol=1e-3 * np.abs(data.qvel).max())
    np.testing.assert_array_equal(after.xfrc_applied, 0.0)
