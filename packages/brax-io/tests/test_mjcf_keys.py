"""Keyframes of a model file: MuJoCo's numbers, in the order of our joints."""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from brax import plugins
from brax.errors import ConfigError, ModelError
from brax.io import json, mjcf
from brax.io.viewer import live_source, rollout

ROBOT = """<mujoco><worldbody>
<body name="trunk" pos="0 0 1"><freejoint/><geom size=".1"/>
  <body name="plate"><geom size=".05"/><body name="arm" pos="0 0 .3"><joint name="a" ref=".2"/>
    <geom size=".05"/></body></body>
  <body name="ball" pos="0 .3 0"><joint type="ball"/><geom size=".05"/></body></body>
</worldbody>
<actuator><motor joint="a"/><intvelocity joint="a" kp="1" actrange="-1 1"/></actuator>
<keyframe>
<key name="home"/>
<key qpos="0 0 2 0 2 0 0 .7 1 2 3 4" qvel="1 2 3 4 5 6 7 8 9 10" act=".3" ctrl=".1 .2" time="3"/>
</keyframe></mujoco>"""


@pytest.fixture(scope="module")
def peers():
    return mjcf.loads(ROBOT), mujoco.MjModel.from_xml_string(ROBOT)


def test_the_numbers_are_mujocos(peers):
    sys, model = peers
    assert sys.keyframe_names == ("home", "key_1")
    data = mujoco.MjData(model)
    for number, name in enumerate(sys.keyframe_names):
        key = sys.keyframe(name)
        mujoco.mj_resetDataKeyframe(model, data, number)
        mujoco.mj_normalizeQuat(model, data.qpos)
        wanted = data.qpos, data.qvel, data.act, data.ctrl
        for got, want in zip((key.q, key.qd, key.activation, key.ctrl), wanted, strict=True):
            np.testing.assert_allclose(got, want, atol=1e-7)
    np.testing.assert_array_equal(sys.key_ctrl, np.float32(model.key_ctrl))
    found = {f.name: (f.status, f.reason) for f in mjcf.report(model) if f.element == "key"}
    assert found == {
        "home": ("supported", ""),
        "key_1": ("ignored", "its time: a state has none; the rest is read"),
    }


def test_a_state_starts_at_one(peers):
    """The trunk is turned by half a turn about x, so the arm hangs below it."""
    sys, model = peers
    key = sys.keyframe("key_1")
    state = plugins.get("pipeline", "spring").init(sys, key.q, key.qd)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 1)
    mujoco.mj_kinematics(model, data)
    np.testing.assert_allclose(state.x.pos[1], data.body("arm").xpos, atol=1e-6)
    np.testing.assert_allclose(state.x.pos[1], [0, 0, 1.7], atol=1e-6)


def test_the_command_starts_at_one(tmp_path):
    """A motor's torque at the keyframe turns the arm; without the keyframe nothing moves."""
    path = tmp_path / "arm.xml"
    path.write_text("""<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="a"/>
<geom size=".1"/></body></worldbody><actuator><motor joint="a"/></actuator>
<keyframe><key name="up" qpos="1" ctrl=".01"/></keyframe></mujoco>""")
    still = rollout.passive(path, 0.1, "spring").states.q[:, 0]
    driven = rollout.passive(path, 0.1, "spring", "up").states.q[:, 0]
    np.testing.assert_array_equal(still, 0)
    assert driven[0] == 1 and (np.diff(driven) > 0).all()
    with pytest.raises(ModelError, match="there is no keyframe 'down'"):
        rollout.passive(path, 0.1, "spring", "down")
    with pytest.raises(
        ConfigError, match="keyframe 'up': only model files have keyframes, not 'ant'"
    ):
        live_source.source("ant", "spring", 0, "up")
    shown = rollout.passive(path, 0.1, "spring", "up", forces=True)
    assert shown.forces is not None
    assert shown.forces.shape == (len(shown.states.q), 0, 3)
    first, _ = next(live_source.source(str(path), "spring", 0, "up").moments)
    assert first.q[0] == 1


def test_an_unknown_one_is_named(peers):
    with pytest.raises(ModelError, match=r"no keyframe 'hom'. Keyframes: home, key_1. Did you mea"):
        peers[0].keyframe("hom")


def test_they_go_through_json(peers):
    again = json.loads(json.dumps(peers[0]))
    np.testing.assert_array_equal(again.keyframe("key_1").q, peers[0].keyframe("key_1").q)


def test_a_pose_can_be_replaced(peers):
    sys = peers[0].replace(key_qvel=jnp.zeros((2, 10)))
    assert not sys.keyframe("key_1").qd.any()


def test_poses_of_mocap_bodies_are_listed_as_ignored():
    """A keyframe that says nothing of them, or what the bodies say, loses nothing."""
    text = """<mujoco><worldbody><body><joint/><geom size=".1"/></body>
<body mocap="true" pos="1 2 3"/><body mocap="true" quat="0 2 0 0"/></worldbody>
<keyframe><key name="plain"/><key name="same" mpos="1 2 3  0 0 0"/>
<key name="moved" mpos="1 2 3  0 0 1"/><key name="turned" mquat="0 1 0 0  0 1 0 0"/>
</keyframe></mujoco>"""
    assert mjcf.loads(text).keyframe_names == ("plain", "same", "moved", "turned")
    rows = [f for f in mjcf.report(mujoco.MjModel.from_xml_string(text)) if f.element == "key"]
    assert {f.name: f.status for f in rows} == {
        **dict.fromkeys(("plain", "same"), "supported"),
        **dict.fromkeys(("moved", "turned"), "ignored"),
    }
    assert rows[-1].reason.startswith("its mpos and mquat: ")


def test_joints_of_another_type_have_none():
    custom = """<custom><tuple name="joint_type:slide"><element objtype="joint" objname="a"/>
</tuple></custom>"""
    text = ROBOT.replace("<actuator>", f"{custom}<actuator>")
    assert mjcf.loads(text).keyframe_names == ()
    notes = {f.name: f for f in mjcf.report(mujoco.MjModel.from_xml_string(text))}
    assert notes["home"].status == "ignored"
