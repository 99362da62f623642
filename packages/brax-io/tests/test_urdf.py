"""Robots in URDF (T38): the same system as from MJCF, and every bad input by name."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from brax import plugins
from brax.dynamics import bias_force, mass_matrix
from brax.errors import ModelError
from brax.io import mjcf, urdf
from brax.kinematics import forward, frame

SHAPE = '<collision><origin xyz="0 0 0.2"/><geometry><sphere radius="0.05"/></geometry></collision>'
ARM = f"""<robot name="arm">
<link name="stand"/>
<link name="upper">
  <inertial><origin xyz="0.02 -0.01 0.25"/><mass value="2"/>
    <inertia ixx="0.1" ixy="0.01" ixz="0" iyy="0.2" iyz="0.02" izz="0.15"/></inertial>
  {SHAPE}
</link>
<link name="fore">
  <inertial><origin xyz="0 0.03 0.2" rpy="0.3 0.2 0.1"/><mass value="1.5"/>
    <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.15"/></inertial>
  {SHAPE}
</link>
<link name="tip"/>
<joint name="shoulder" type="revolute">
  <parent link="stand"/><child link="upper"/><origin xyz="0 0 1" rpy="0 0 0.5"/>
  <axis xyz="0 1 0"/><limit lower="-1.5" upper="1" effort="5" velocity="2"/>
  <dynamics damping="0.3" friction="0.1"/>
</joint>
<joint name="elbow" type="prismatic">
  <parent link="upper"/><child link="fore"/><origin xyz="0 0.1 0.5" rpy="0.4 0.3 0.2"/>
  <axis xyz="1 0 0"/><limit lower="-0.2" upper="0.3" effort="5" velocity="2"/>
</joint>
<joint name="wrist" type="fixed">
  <parent link="fore"/><child link="tip"/><origin xyz="0 0 0.4" rpy="0 0.1 0"/>
</joint>
</robot>
"""
SAME = """<mujoco>
<compiler angle="radian" eulerseq="XYZ"/>
<worldbody><body name="stand">
<body name="upper" pos="0 0 1" euler="0 0 0.5">
  <inertial pos="0.02 -0.01 0.25" mass="2" fullinertia="0.1 0.2 0.15 0.01 0 0.02"/>
  <geom type="sphere" size="0.05" pos="0 0 0.2"/>
  <joint name="shoulder" axis="0 1 0" range="-1.5 1" damping="0.3" frictionloss="0.1"/>
  <body name="fore" pos="0 0.1 0.5" euler="0.4 0.3 0.2">
    <inertial pos="0 0.03 0.2" euler="0.3 0.2 0.1" mass="1.5" diaginertia="0.1 0.2 0.15"/>
    <geom type="sphere" size="0.05" pos="0 0 0.2"/>
    <joint name="elbow" type="slide" axis="1 0 0" range="-0.2 0.3"/>
    <body name="tip" pos="0 0 0.4" euler="0 0.1 0"/>
  </body>
</body></body></worldbody>
</mujoco>
"""
Q = np.array([0.7, -0.1])
QD = np.array([1.3, -0.4])


@pytest.fixture
def f64():
    with jax.enable_x64(True):
        yield


@pytest.mark.slow
def test_an_arm_is_the_same_in_both_formats(f64):
    """Frames, inertias, limits, damping, and so the mass matrix and the bias force."""
    one, other = urdf.loads(ARM), mjcf.loads(SAME)
    for name in ("link_names", "fixed_names", "joint_names", "joint_types", "joint_limited"):
        assert getattr(one, name) == getattr(other, name)
    for part in (
        "link.transform",
        "joint",
        "dof.limit",
        "dof.damping",
        "dof.frictionloss",
        "fixed",
    ):
        for a, b in zip(leaves(one, part), leaves(other, part), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12, err_msg=part)
    assert one.dof.limit[0].tolist() == [-1.5, -0.2]
    assert one.dof.damping.tolist() == [0.3, 0]
    matrix = mass_matrix(one, jnp.asarray(Q))
    np.testing.assert_allclose(matrix, mass_matrix(other, jnp.asarray(Q)), atol=1e-10)
    bias = bias_force(one, jnp.asarray(Q), jnp.asarray(QD))
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = Q, QD
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(bias, data.qfrc_bias, atol=1e-10)
    tip = frame(one, forward(one, jnp.asarray(Q), jnp.zeros(2))[0], "tip")
    fore = data.body("fore")
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, fore.xquat)
    place = fore.xpos + turn.reshape(3, 3) @ [0, 0, 0.4]
    np.testing.assert_allclose(tip.pos, place, atol=1e-10)


def leaves(system, path):
    for name in path.split("."):
        system = getattr(system, name)
    return jax.tree.leaves(system)


def test_the_registry_reads_it_and_the_base_may_float(tmp_path):
    (tmp_path / "arm.urdf").write_text(ARM)
    system = plugins.get("model_format", "urdf").load(tmp_path / "arm.urdf")
    assert (system.link_names, system.fixed_names) == (("upper", "fore"), ("stand", "tip"))
    heavy = ARM.replace('<link name="stand"/>', f'<link name="stand">{INERTIAL}</link>')
    system = urdf.loads(heavy, floating_base=True)
    assert system.link_names == ("stand", "upper", "fore")
    assert system.q_size() == 9


INERTIAL = """<inertial><mass value="3"/>
  <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>"""


def changed(old, new):
    assert old in ARM
    return ARM.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "robot.urdf: model is empty: expected a URDF <robot> document"),
        ("<mujoco/>", r"root is <mujoco>; supported: <robot>; an MJCF .* read by brax.io.mjcf"),
        ("<robot name='a'/>", "robot.urdf:1: the robot has no <link>"),
        (
            changed('<parent link="stand"/>', '<parent link="stnad"/>'),
            r"<joint name='shoulder'>: its parent 'stnad' is no link\. Did you mean 'stand'",
        ),
        (
            changed('<child link="tip"/>', ""),
            r"<joint name='wrist'>: its child '' is no link(.|\n)*got 'stand', 'tip'",
        ),
        (
            changed('"prismatic"', '"screw"'),
            r"robot\.urdf:19: <joint name='elbow'>: type 'screw' is not supported; allowed: contin",
        ),
        (
            changed('<child link="tip"/>', '<child link="upper"/>'),
            r"'wrist'>: link 'upper' hangs on <joint name='shoulder'> \(robot.urdf:14\) already",
        ),
        (changed('value="2"', 'value="-2"'), r"robot\.urdf:4: <mass> value must not be negative"),
        (changed('value="2"', 'value="1e39"'), "<mass> value: 1e39 is not finite"),
        (changed('xyz="0 0 1"', 'xyz="0 nan 1"'), "<origin> xyz: 0 nan 1 is not finite"),
        (changed('lower="-0.2"', 'lower="0.5"'), "lower 0.5 is above upper 0.3"),
        (changed("<dynamics", '<mimic joint="elbow"/><dynamics'), "<mimic> is not supported"),
        (changed("<robot", "<!DOCTYPE robot><robot"), "DOCTYPE is not allowed"),
        (changed('ixx="0.1"', 'ixx="9"'), "inertia must satisfy"),
        (
            changed('value="2"', 'value="heavy"'),
            r"robot\.urdf:4: .*bad format in attribute 'value'",
        ),
        (
            changed('name="stand"', 'name="upper"'),
            r"urdf:3: <link name='upper'>: the name is taken",
        ),
        (changed('name="elbow"', 'name="wrist"'), r"'wrist'>: the name is taken \(robot.urdf:19"),
    ],
)
def test_bad_input_is_named(text, said):
    with pytest.raises(ModelError, match=said):
        urdf.loads(text)


def test_all_problems_are_told_at_once():
    text = changed('"prismatic"', '"screw"').replace('value="2"', 'value="-2"')
    with pytest.raises(ModelError) as caught:
        urdf.loads(text)
    assert len(caught.value.problems) == 2


def test_too_many_links_are_refused():
    with pytest.raises(ModelError, match=r"robot has 4 links \(limit 3\)"):
        urdf.loads(ARM, max_elements=3)


def test_an_inferred_inertia_is_told():
    """A ball of 5 cm at 1000 kg/m^3."""
    start, end = ARM.index("<inertial>"), ARM.index("</inertial>") + len("</inertial>")
    with pytest.warns(UserWarning, match=r"robot\.urdf: no <inertial> for upper: taken from the"):
        system = urdf.loads(ARM[:start] + ARM[end:])
    np.testing.assert_allclose(
        system.link.inertia.mass[0], 4 / 3 * np.pi * 0.05**3 * 1000, rtol=1e-5
    )


MESH = ARM.replace('<sphere radius="0.05"/>', '<mesh filename="{}"/>', 1)


def loaded(name, folder, **options):
    """The system, or the problem, of a robot with a mesh of that name, in `folder`/robot/urdf."""
    path = folder / "robot" / "urdf" / "arm.urdf"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(MESH.format(name))
    try:
        return urdf.load(path, **options)
    except ModelError as error:
        return str(error)


TETRAHEDRON = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def test_packages_are_found_where_they_are_given_or_above_the_file(tmp_path):
    """The mesh of the upper arm can touch nothing; its file is read all the same."""
    meshes = tmp_path / "robot" / "meshes"
    meshes.mkdir(parents=True)
    (meshes / "a.obj").write_text(TETRAHEDRON)
    assert loaded("package://robot/meshes/a.obj", tmp_path).num_links() == 2
    given = {"package_paths": {"other": meshes}}
    assert loaded("package://other/a.obj", tmp_path, **given).num_links() == 2
    said = loaded("package://others/a.obj", tmp_path, **given)
    assert "package 'others' is unknown: pass package_paths={'others': ...}" in said
    assert "leaves the model directory" in loaded("package://robot/../../x.obj", tmp_path)
    assert "leaves the model directory" in loaded("../meshes/a.obj", tmp_path)
    trusted = loaded("../meshes/a.obj", tmp_path, allow_external_assets=True)
    assert trusted.num_links() == 2
    assert "no such file" in loaded("package://robot/meshes/b.obj", tmp_path)
    (meshes / "b.obj").write_text("v 0 0")
    assert "at least 4 vertices" in loaded("package://robot/meshes/b.obj", tmp_path)
    with pytest.raises(ModelError, match="package 'robot' is unknown"):
        urdf.loads(MESH.format("package://robot/meshes/a.obj"))
