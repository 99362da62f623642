"""Cameras of a model: they stand where MuJoCo's do, and pictures are taken through them."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from scenes import BALL

from brax import kinematics
from brax.base import State, Transform
from brax.builder import ModelBuilder
from brax.errors import ConfigError, ModelError
from brax.io import image, json, mjcf
from brax.io.rendering.camera import camera_poses

MODES = {
    "fixed": 'mode="fixed"',
    "track": 'mode="track"',
    "trackcom": 'mode="trackcom"',
    "targetbody": 'mode="targetbody" target="hand"',
    "targetbodycom": 'mode="targetbodycom" target="arm"',
}
PLACE = 'pos=".3 -2 .4" quat="1 .7 .1 .2" fovy="33"'
ARM = f"""<mujoco><worldbody>
{"".join(f'<camera name="{m}" {PLACE} {a}/>' for m, a in MODES.items() if "track" not in m)}
<body name="trunk" pos="0 0 1" quat="1 .2 0 0"><freejoint/><geom size=".1"/>
{"".join(f'<camera name="trunk {mode}" {PLACE} {words}/>' for mode, words in MODES.items())}
<body name="box" pos=".1 0 0" euler="0 0 20"><geom size=".05" pos=".1 0 0"/>
<camera name="plate" {PLACE}/>
<body name="arm" pos=".2 0 .3"><joint axis="0 1 0"/><geom size=".05" pos=".1 0 .2"/>
<camera name="arm trackcom" {PLACE} mode="trackcom"/>
<body name="hand" pos=".2 0 .1"><joint axis="1 0 0"/><geom size=".05" pos="0 .1 0"/></body></body>
</body></body></worldbody></mujoco>"""


@pytest.fixture
def f64():
    with jax.enable_x64(True):
        yield


@pytest.mark.slow
def test_they_stand_where_mujocos_do(f64):
    sys, model = mjcf.loads(ARM), mujoco.MjModel.from_xml_string(ARM)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    q = np.array(model.qpos0) + 0.4 * rng.normal(size=(5, model.nq))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    still = jnp.zeros((5, model.nv))
    x, _ = jax.vmap(kinematics.forward, (None, 0, 0))(sys, jnp.asarray(q), still)
    assert len(sys.camera_names) == model.ncam == 10
    found = [camera_poses(sys, c, x) for c in range(model.ncam)]
    for frame in range(5):
        data.qpos = q[frame]
        mujoco.mj_forward(model, data)
        for c, name in enumerate(sys.camera_names):
            turn = np.zeros(9)
            mujoco.mju_quat2Mat(turn, np.array(found[c].rot[frame]))
            close: Any = dict(atol=1e-12, err_msg=name)  # 9e-16
            np.testing.assert_allclose(found[c].pos[frame], data.cam_xpos[c], **close)
            np.testing.assert_allclose(turn, data.cam_xmat[c], **close)
    np.testing.assert_allclose(sys.cam_fovy, model.cam_fovy)


def test_what_they_track_from_is_the_reference_and_not_the_initial_state(f64):
    """Both joints have a reference other than 0; `init_qpos` turns the trunk and bends them."""
    text = ARM.replace('<joint axis="0 1 0"/>', '<joint axis="0 1 0" ref="20"/>')
    start = np.array([0.1, 0.2, 0.3, 0.5, 0.5, -0.5, 0.5, 0.7, -0.4])
    numeric = f'<custom><numeric name="init_qpos" data="{" ".join(map(str, start))}"/></custom>'
    sys = mjcf.loads(text.replace("</mujoco>", f"{numeric}</mujoco>"))
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos = start
    mujoco.mj_forward(model, data)
    x, _ = kinematics.forward(sys, sys.init_q, jnp.zeros(model.nv))
    np.testing.assert_allclose(x.pos[0], start[:3], atol=1e-12)
    for c, name in enumerate(sys.camera_names):
        found = camera_poses(sys, c, jax.tree.map(lambda leaf: leaf[None], x))
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, np.array(found.rot[0]))
        close: Any = dict(atol=1e-12, err_msg=name)
        np.testing.assert_allclose(found.pos[0], data.cam_xpos[c], **close)
        np.testing.assert_allclose(turn, data.cam_xmat[c], **close)


@pytest.mark.parametrize("mode", ["targetbody", "targetbodycom"])
def test_one_without_a_target_stays_as_it_is(f64, mode):
    """In the world and on a body, as MuJoCo has it."""
    camera = f'<camera mode="{mode}" pos=".3 -2 .4" euler="50 0 20"/>'
    text = f"""<mujoco><worldbody>{camera}<light mode="{mode}"/>
<body pos="0 0 1"><freejoint/><geom size=".1"/>{camera}</body></worldbody></mujoco>"""
    sys, model = mjcf.loads(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos = [0.3, -0.2, 0.7, 0.8, 0.6, 0, 0]
    mujoco.mj_forward(model, data)
    x, _ = kinematics.forward(sys, jnp.asarray(data.qpos), jnp.zeros(6))
    for c in range(2):
        found = camera_poses(sys, c, jax.tree.map(lambda leaf: leaf[None], x))
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, np.array(found.rot[0]))
        np.testing.assert_allclose(found.pos[0], data.cam_xpos[c], atol=1e-12)
        np.testing.assert_allclose(turn, data.cam_xmat[c], atol=1e-12)


def test_one_that_sees_nothing_is_left_out_and_listed():
    text = """<mujoco><worldbody><camera name="blind" fovy="0"/><camera name="eye"/>
<body><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    assert mjcf.loads(text).camera_names == ("eye",)
    findings = mjcf.report(mujoco.MjModel.from_xml_string(text))
    told = "fovy is 0: nothing can be seen through it"
    assert ("camera", "blind", "ignored", told) in findings


CARRIED = """<mujoco><worldbody><body name="hand" mocap="true" pos="1 2 3" euler="10 20 30">
<geom size=".1"/><camera name="on it" pos=".3 -2 .4" euler="50 0 20"/>
<camera name="beside it" pos=".3 -2 .4" mode="track"/></body>
<body name="ball"><freejoint/><geom size=".1"/>
<camera name="towards it" pos="0 -1 0" mode="targetbody" target="hand"/></body>
</worldbody></mujoco>"""


@pytest.mark.slow
def test_those_of_mocap_bodies_move_with_them(f64):
    """On one, beside one, and turned towards one."""
    sys, model = mjcf.loads(CARRIED), mujoco.MjModel.from_xml_string(CARRIED)
    data, rng = mujoco.MjData(model), np.random.default_rng(1)
    hand, ball = (rng.normal(size=(4, 7)) for _ in range(2))
    for pose in (hand, ball):
        pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
    both = jnp.stack([ball, hand], axis=1)
    x = Transform(both[..., :3], both[..., 3:])
    for c, name in enumerate(sys.camera_names):
        found = camera_poses(sys, c, x)
        for frame in range(4):
            data.qpos = ball[frame]
            data.mocap_pos[0], data.mocap_quat[0] = hand[frame, :3], hand[frame, 3:]
            mujoco.mj_forward(model, data)
            turn = np.zeros(9)
            mujoco.mju_quat2Mat(turn, np.array(found.rot[frame]))
            close: Any = dict(atol=1e-12, err_msg=name)
            np.testing.assert_allclose(found.pos[frame], data.cam_xpos[c], **close)
            np.testing.assert_allclose(turn, data.cam_xmat[c], **close)
    still = camera_poses(sys, 0, Transform(x.pos[:, :1], x.rot[:, :1]))
    np.testing.assert_allclose(still.pos, np.tile(sys.cam_pos[0], (4, 1)))


def test_they_go_through_json():
    sys = mjcf.loads(ARM)
    again = json.loads(json.dumps(sys))
    chex.assert_trees_all_equal_structs(again, sys.replace(file_model=None))
    np.testing.assert_array_equal(again.cam_pos, sys.cam_pos)


def scene():
    """Return a ball on a slide along x, a camera four metres above its start and one on it."""
    made = ModelBuilder()
    made.add_body("ball", mass=1.0, inertia=(1, 1, 1))
    made.add_joint("ball", "slide", axis=(1, 0, 0))
    made.add_geom("ball", "sphere", size=(0.3,), rgba=BALL)
    made.add_camera("world", "above", pos=(0, 0, 4), fovy=40)
    made.add_camera("ball", "with it", pos=(0, 0, 4), fovy=20)
    return made


def middle(picture):
    """Row and column of the middle of what is red, and its number of pixels."""
    colours = picture.astype(int)
    rows, columns = np.nonzero((colours[..., 0] > 1.6 * colours[..., 1]) & (colours[..., 0] > 60))
    return rows.mean(), columns.mean(), len(rows)


def test_pictures_are_taken_through_them():
    """One metre along x is, at four metres and 40 degrees, 34 of 100 pixels to the right."""
    sys = scene().build()
    q = jnp.array([[0.0], [1.0]])
    x, xd = jax.vmap(kinematics.forward, (None, 0, 0))(sys, q, jnp.zeros((2, 1)))
    try:
        pictures = {c: image.render_array(sys, State(q, q, x, xd), 100, 200, c) for c in (0, 1)}
    except ConfigError as error:
        pytest.skip(str(error))
    start, later = map(middle, pictures[0])
    assert start[:2] == pytest.approx((49.5, 99.5), abs=1.5)
    assert later[1] - start[1] == pytest.approx(100 / (2 * 4 * np.tan(np.radians(20))), abs=3)
    first, second = map(middle, pictures[1])
    assert first == pytest.approx(second, abs=1) and first[2] > 3 * start[2]
    named = image.render_array(sys, State(q, q, x, xd), 100, 200, "with it")
    np.testing.assert_array_equal(named, pictures[1])


@pytest.mark.parametrize(
    ("camera", "said"),
    [
        (
            "abov",
            "no camera and no link 'abov'. Cameras: above, with it. Links: ball. Did you mean",
        ),
        (2, "camera 2: the model has 2 cameras"),
    ],
)
def test_an_unknown_one_is_named(camera, said):
    sys = scene().build()
    x, xd = kinematics.forward(sys, jnp.zeros(1), jnp.zeros(1))
    with pytest.raises(ConfigError) as caught:
        image.render_array(sys, State(jnp.zeros(1), jnp.zeros(1), x, xd), camera=camera)
    if "cannot draw" in str(caught.value) or "needs OpenGL" in str(caught.value):
        pytest.skip(str(caught.value))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (dict(body="bal"), "camera 'wrong': there is no body 'bal'. Did you mean 'ball'"),
        (dict(mode="trac"), "camera 'wrong': mode is 'trac'; allowed: fixed, track"),
        (dict(mode="targetbody", target="bal"), "camera 'wrong': there is no body 'bal'"),
        (dict(fovy=180), "camera 'wrong': fovy must lie between 0 and 180 degrees, got 180.0"),
    ],
)
def test_a_bad_one_is_refused(wrong, said):
    made = scene()
    made.add_camera(**{"body": "ball", "name": "wrong", **wrong})
    with pytest.raises(ModelError) as caught:
        made.build()
    assert said in str(caught.value)
