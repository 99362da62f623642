"""Robots in URDF (T38): the same system as from MJCF, and every bad input by name."""

import warnings

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
from brax.math import rotate

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
    # T38
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
            r"<joint name='shoulder'>: its parent 'stnad' is not a link\. Did you mean 'stand'",
        ),
        (
            changed('<child link="tip"/>', ""),
            r"<joint name='wrist'>: its child '' is not a link(.|\n)*got 'stand', 'tip'",
        ),
        (
            changed('"prismatic"', '"screw"'),
            r"robot\.urdf:19: <joint name='elbow'>: type 'screw' is not supported; allowed: contin",
        ),
        (
            changed('<child link="tip"/>', '<child link="upper"/>'),
            r"link 'upper' is already the child of <joint name='shoulder'> \(robot.urdf:14\)",
        ),
        (changed('value="2"', 'value="-2"'), r"robot\.urdf:4: <mass> value must not be negative"),
        (changed('value="2"', 'value="1e39"'), "<mass> value: 1e39 is not finite"),
        (changed('xyz="0 0 1"', 'xyz="0 nan 1"'), "<origin> xyz: 0 nan 1 is not finite"),
        (changed('lower="-0.2"', 'lower="0.5"'), "lower 0.5 is above upper 0.3"),
        (changed('lower="-0.2"', 'lower="0x1"'), "lower 1 is above upper 0.3"),
        (
            changed("<dynamics", '<mimic joint="elbwo"/><dynamics'),
            r"urdf:17: <joint name='shoulder'>: <mimic>: there is no joint 'elbwo'\. Did you mean "
            "'elbow'",
        ),
        (
            changed("<dynamics", '<mimic joint="shoulder"/><dynamics'),
            "<mimic>: a joint cannot follow itself",
        ),
        (
            changed("<dynamics", '<mimic joint="elbow" offset="far"/><dynamics'),
            "<mimic> offset must be one number, got 'far'",
        ),
        (
            changed("<dynamics", '<mimic joint="elbow" multiplier="nan"/><dynamics'),
            "<mimic> multiplier: nan is not finite",
        ),
        (changed('radius="0.05"', 'radius="0"'), "<sphere> radius must be positive, got 0"),
        (
            changed('<axis xyz="0 1 0"/>', '<axis xyz="0 0 0"/>'),
            r"robot\.urdf:14: <joint name='shoulder'>: axis too small",
        ),
        (
            changed('<sphere radius="0.05"/>', ""),
            r"robot\.urdf:6: <geometry>: .*got nothing\. Allowed: box, sphere",
        ),
        (
            changed("<link", '<mujoco><option timestep="nan"/></mujoco><link'),
            "<option> timestep: nan is not finite",
        ),
        (
            changed("<link", '<mujoco><size memory="99G"/></mujoco><link'),
            "<size> memory is 99G",
        ),
        (
            ARM.replace('"tip"', '"world"'),
            r"urdf:23: <joint name='wrist'>: its child 'world' is the world itself, which is the "
            "child of no joint: rename that link",
        ),
        (changed("<robot", "<!DOCTYPE robot><robot"), "DOCTYPE is not allowed"),
        (
            changed('ixx="0.1"', 'ixx="9"'),
            r"robot\.urdf:3: <link name='upper'>: inertia must satisfy .*found value='2', ixx='9'",
        ),
        (
            changed('ixx="0.1"', 'ixx="0"'),
            r"<link name='upper'>: .*positive eigenvalues.*ixx='0'.*"
            '<compiler boundinertia="1e-4"/> in an element <mujoco> of the robot',
        ),
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


def test_settings_of_many_links_are_limited():
    """Each of 10000 keyframes has 13 numbers of each of the 301 links."""
    links = "".join(
        f'<link name="l{i}"/><joint name="j{i}" type="revolute"><parent link="stand"/>'
        f'<child link="l{i}"/></joint>'
        for i in range(297)
    )
    size = '<mujoco><size nkey="10000"/></mujoco>'
    said = r"robot has 39130000 numbers of keyframes and user data \(limit 33554432\)"
    with pytest.raises(ModelError, match=said):
        urdf.loads(ARM.replace("</robot>", f"{size}{links}</robot>"))


def test_an_inferred_inertia_is_told():
    """A ball of 5 cm at 1000 kg/m^3."""
    start, end = ARM.index("<inertial>"), ARM.index("</inertial>") + len("</inertial>")
    with pytest.warns(
        UserWarning, match=r"robot\.urdf: no <inertial> for upper: computed from the"
    ):
        system = urdf.loads(ARM[:start] + ARM[end:])
    np.testing.assert_allclose(
        system.link.inertia.mass[0], 4 / 3 * np.pi * 0.05**3 * 1000, rtol=1e-5
    )


MESH = ARM.replace('<sphere radius="0.05"/>', '<mesh filename="{}"/>', 1)


def loaded(name, folder, compiler="", **options):
    """Return the system, or the problem, of a robot in `folder`/robot/urdf with that mesh."""
    path = folder / "robot" / "urdf" / "arm.urdf"
    path.parent.mkdir(parents=True, exist_ok=True)
    extension = f"<mujoco><compiler {compiler}/></mujoco><link"
    path.write_text(MESH.format(name).replace("<link", extension, 1))
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
    (tmp_path / "robot" / "package.xml").write_text("<package/>")
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


@pytest.mark.parametrize("levels", [[], ["ann"], ["ann", "got"]])
def test_a_directory_above_is_a_package_only_with_its_manifest(tmp_path, levels):
    """The robot is in home/robot/urdf, as if unpacked there, or farther below."""
    home = tmp_path / "home"
    near = home.joinpath(*levels)
    near.mkdir(parents=True)
    (home / "a.obj").write_text(TETRAHEDRON)
    name = "package://home/a.obj"
    said = loaded(name, near)
    assert f"package 'home' is unknown: {home} has no package.xml" in said
    assert f"package_paths={{'home': '{home}'}}, or allow_external_assets=True" in said
    assert loaded(name, near, package_paths={"home": home}).num_links() == 2
    assert loaded(name, near, allow_external_assets=True).num_links() == 2
    (home / "package.xml").write_text("<package/>")
    assert loaded(name, near).num_links() == 2


def test_the_directory_of_the_file_needs_no_manifest(tmp_path):
    own = tmp_path / "robot" / "urdf"
    own.mkdir(parents=True)
    (own / "a.obj").write_text(TETRAHEDRON)
    assert loaded("package://urdf/a.obj", tmp_path).num_links() == 2


def test_addresses_of_meshes(tmp_path):
    """Addresses of Gazebo's models and of files work; other schemes are rejected by name."""
    meshes = tmp_path / "robot" / "urdf" / "my meshes"
    meshes.mkdir(parents=True)
    (meshes / "a.obj").write_text(TETRAHEDRON)
    (tmp_path / "robot" / "model.config").write_text("<model/>")
    for name in (
        "model://robot/urdf/my%20meshes/a.obj",
        "package://robot\\urdf\\my meshes\\a.obj",
        f"file://{meshes}/a.obj",
        f"file://localhost{meshes}/a.obj".replace(" ", "%20"),
        f"file:{meshes}/a.obj",
        "my meshes\\a.obj",
        ".\\my meshes\\a.obj",
    ):
        assert loaded(name, tmp_path).num_links() == 2, name
    said = loaded("file:///opt/robot/a.obj", tmp_path)
    assert "'/opt/robot/a.obj' leaves the model directory" in said
    trusted = dict(allow_external_assets=True)
    assert loaded("file:///opt/robot/a.obj", tmp_path, **trusted).endswith(
        "no such file: /opt/robot/a.obj"
    )
    assert "on another computer, 'host'" in loaded("file://host/robot/a.obj", tmp_path)
    allowed = "allowed are package://NAME/..., model://NAME/..., file:///... and paths relative"
    for scheme in ("http", "https", "ftp", "filesystem"):
        said = loaded(f"{scheme}://host/a.obj", tmp_path)
        assert f"'{scheme}://host/a.obj' has the scheme '{scheme}'; {allowed}" in said
    for name in ("package://robot", "package:///a.obj", "package:/robot/a.obj"):
        assert f"'{name}' is not package://NAME/PATH" in loaded(name, tmp_path)
    assert "on its drive C:" in loaded("C:\\robot\\a.obj", tmp_path)
    assert "package 'other' is unknown" in loaded("model://other/a.obj", tmp_path)


def test_mujocos_settings_of_a_robot(tmp_path):
    """`strippath`, `meshdir` and `assetdir` say where meshes are, as in MuJoCo."""
    folder = tmp_path / "robot" / "urdf"
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "a.obj").write_text(TETRAHEDRON)
    (tmp_path / "robot" / "package.xml").write_text("<package/>")
    for name, compiler in (
        ("package://elsewhere/a.obj", 'strippath="true" meshdir="parts"'),
        ("C:\\elsewhere\\a.obj", 'strippath="true" meshdir="parts"'),
        ("a.obj", 'meshdir="parts"'),
        ("a.obj", 'assetdir=".\\parts\\"'),
        ("parts/a.obj", 'strippath="false"'),
        ("package://robot/urdf/parts/a.obj", 'meshdir="parts"'),
    ):
        assert loaded(name, tmp_path, compiler).num_links() == 2, (name, compiler)
    assert "no such file" in loaded(
        "package://robot/urdf/parts/a.obj", tmp_path, 'strippath="true"'
    )
    assert "leaves the model directory" in loaded("a.obj", tmp_path, 'meshdir="../.."')
    text = MESH.format("parts/a.obj")
    assert urdf.loads(text, asset_path=folder).num_links() == 2


@pytest.mark.parametrize(
    "compiler",
    [
        'balanceinertia="true"',
        'boundmass="5" boundinertia="2"',
        'inertiafromgeom="true"',
        'inertiafromgeom="true" inertiagrouprange="3 4"',
        'discardvisual="false" inertiafromgeom="true"',
        'fusestatic="true"',
        'fusestatic="false"',
        'angle="degree" eulerseq="zyx" autolimits="true" usethread="false" alignfree="true"',
        'settotalmass="7"',
        'settotalmass="7" fusestatic="false"',
    ],
)
def test_the_other_settings_have_mujocos_effect(compiler):
    visual = '<visual><geometry><box size="1 1 1"/></geometry></visual></link>'
    text = ARM.replace('<link name="stand"/>', f'<link name="stand">{INERTIAL}</link>')
    text = text.replace("</link>", visual, 2).replace('ixx="0.1"', 'ixx="0.3"')
    text = text.replace("<link", f"<mujoco><compiler {compiler}/></mujoco><link", 1)
    system, model = urdf.loads(text), mujoco.MjModel.from_xml_string(text)
    mass = [model.body(name).mass[0] for name in ("upper", "fore")]
    moments = [np.sort(model.body(name).inertia) for name in ("upper", "fore")]
    np.testing.assert_allclose(system.link.inertia.mass, mass, rtol=1e-5)
    np.testing.assert_allclose(np.sort(system.link.inertia.moments, axis=1), moments, rtol=1e-5)


def test_what_is_unknown_is_told(tmp_path):
    """In one warning, each with its line; what is made for other programs is only listed."""
    text = changed("<dynamics", '<dinamics damping="1"/><dynamics').replace(
        '<limit lower="-0.2"', '<gazebo/><limit lowr="-0.2"'
    )
    text = text.replace('<link name="tip"/>', '<link name="tip"/><transmission><x/></transmission>')
    text = text.replace(
        "<link", '<mujoco><compiler balanceinertia="true" fusestat="1"/></mujoco><link', 1
    )
    with pytest.warns(UserWarning) as caught:
        urdf.loads(text)
    assert str(caught[0].message).splitlines() == [
        "robot.urdf:2: <compiler> attribute 'fusestat' is unknown and has no effect. Did you "
        "mean 'fusestatic'?",
        "robot.urdf:17: <dinamics> is unknown and has no effect. Did you mean 'dynamics'?",
        "robot.urdf:21: <limit> attribute 'lowr' is unknown and has no effect. Did you mean "
        "'lower'?",
    ]
    with pytest.warns(UserWarning) as caught:
        urdf.loads(ARM.replace("</link>", "<contact/></link>"))
    (line,) = str(caught[0].message).splitlines()
    assert line == "robot.urdf:7 (and 1 more): <contact> is unknown and has no effect."
    (tmp_path / "arm.urdf").write_text(text)
    found = urdf.report(tmp_path / "arm.urdf", "spring")
    assert ("link", "fore", "supported", "") in found
    ignored = {(element, reason) for element, _, status, reason in found if status == "ignored"}
    assert ("transmission", "only urdf.load(..., motors=True) reads it (arm.urdf:13)") in ignored
    assert ("gazebo", "for another simulator (arm.urdf:21)") in ignored
    assert ("limit", "effort: only urdf.load(..., motors=True) reads it (arm.urdf:16)") in ignored
    assert any(element == "dinamics" for element, _ in ignored)


@pytest.mark.parametrize(
    ("limit", "bounds"),
    [('upper="1"', (0, 1)), ('lower="-1"', (-1, 0)), ('lower="" upper="1"', (0, 1))],
)
@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_a_bound_that_a_limit_leaves_out_is_zero(kind, limit, bounds):
    """As URDF's specification says."""
    text = hand(("", ""), kind).replace('lower="-3" upper="3"', limit, 1)
    low, high = urdf.loads(text).dof.limit
    assert (low.tolist(), high.tolist()) == ([bounds[0], -3, -3], [bounds[1], 3, 3])


@pytest.mark.parametrize("limit", ['lower="0.5" upper="0.5"', 'effort="1" velocity="1"'])
def test_a_limit_of_equal_bounds_is_ignored_and_listed(limit, tmp_path):
    (tmp_path / "hand.urdf").write_text(
        hand(("", "")).replace('lower="-3" upper="3"', limit, 1), "utf-8"
    )
    assert urdf.load(tmp_path / "hand.urdf").joint_limited == (False, True, True)
    found = {f.reason for f in urdf.report(tmp_path / "hand.urdf") if f.status == "ignored"}
    said = "lower and upper are equal: the joint has no limit, as in MuJoCo (hand.urdf:6)"
    assert said in found


def hand(mimics, kind="revolute"):
    """Return a robot with joints j, k and l about the same axis, without gravity."""
    links = "".join(f'<link name="{n}">{INERTIAL}</link>' for n in ("base", "a", "b", "c"))
    joints = "".join(
        f"""<joint name="{name}" type="{kind}"><parent link="base"/><child link="{child}"/>
<axis xyz="0 0 1"/><limit lower="-3" upper="3"/>{mimic}</joint>"""
        for name, child, mimic in zip("jkl", "abc", ("", *mimics), strict=True)
    )
    option = '<mujoco><option gravity="0 0 0"/></mujoco>'
    return f'<robot name="hand">{option}{links}{joints}</robot>'


def test_a_mimic_is_an_equality_as_in_mujoco():
    """With and without the numbers that may be left out; in the order of the file."""
    system = urdf.loads(
        hand(('<mimic joint="j" multiplier="2" offset="0.1"/>', '<mimic joint="k"/>'))
    )
    assert system.equality_types == ("joint", "joint")
    assert system.equality_pair == ((1, 0), (2, 1))
    want = np.array([[0.1, 2, 0, 0, 0], [0, 1, 0, 0, 0]])
    np.testing.assert_allclose(system.equality.data[:, :5], want)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spring", "positional", "generalized"])
@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_every_pipeline_keeps_mimics(name, kind):
    """A chain: k = 0.1 + 2 j and l = -k, for 0.1 s."""
    text = hand(
        ('<mimic joint="j" multiplier="2" offset="0.1"/>', '<mimic joint="k" multiplier="-1"/>'),
        kind,
    )
    system, pipeline = urdf.loads(text), plugins.get("pipeline", name)
    start = jnp.array([0.0, 0.1, -0.1]), jnp.array([1.0, 2.0, -2.0])
    state = pipeline.init(system, *start)
    steps = round(0.1 / float(system.opt.timestep))
    j, k, last = jax.jit(lambda s: pipeline.step(system, s, jnp.zeros(0), steps))(state).q
    assert abs(float(k - 0.1 - 2 * j)) < 1e-3  # 2e-7
    assert abs(float(last + k)) < 1e-3
    assert float(j) == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize(
    "text",
    [
        ARM.replace('<link name="stand"/>', '<xacro:property name="x" value="1"/>'),
        ARM.replace('radius="0.05"', 'radius="${size / 2}"', 1),
        ARM.replace('<link name="tip"', '<link name="$(arg name)"'),
    ],
)
def test_xacro_is_refused_with_the_command_that_expands_it(tmp_path, text):
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(text.replace("<robot ", '<robot xmlns:xacro="http://ros.org/wiki/xacro" ', 1))
    with pytest.raises(ModelError, match=r"is not expanded: .* `xacro arm\.urdf\.xacro > arm_ex"):
        urdf.load(path)


def rigid(first, second):
    """Return a robot whose arm is two links on a fixed joint, with these inertias (7,)."""

    def link(name, mass, xx, yy, zz, xy, xz, yz):
        return f'''<link name="{name}"><inertial><mass value="{mass}"/><inertia ixx="{xx}"
iyy="{yy}" izz="{zz}" ixy="{xy}" ixz="{xz}" iyz="{yz}"/></inertial></link>'''

    return f"""<robot name="r"><link name="base"/>{link("arm", *first)}{link("tip", *second)}
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint><joint name="f" type="fixed">
<parent link="arm"/><child link="tip"/><origin xyz="0 0 3" rpy="0 0 1.5707963267948966"/></joint>
</robot>"""


def test_only_the_sum_of_rigidly_connected_inertias_must_be_possible(f64):
    """1 kg at the joint and 2 kg at 3 m: a centre at 2 m, and 6 kg m^2 about it; and their own."""
    system = urdf.loads(rigid((1, 1, 2, 5, 0, 0, 0), (2, 4, -2, 3, 0, 0, 0)))
    inertia = system.link.inertia
    np.testing.assert_allclose(inertia.transform.pos, [[0, 0, 2]], atol=1e-9)
    np.testing.assert_allclose(inertia.mass, [3])
    # The tip's axes x and y are the arm's y and -x.
    np.testing.assert_allclose(mass_matrix(system, jnp.zeros(1)), [[2 + 4 + 6 + 3 * 4]])
    np.testing.assert_allclose(sorted(inertia.moments[0]), [1 - 2 + 6, 5 + 3, 2 + 4 + 6])
    with pytest.raises(ModelError, match="positive eigenvalues"):
        urdf.loads(rigid((1, 1, 2, 5, 0, 0, 0), (2, -8, -4, 3, 0, 0, 0)))


def test_text_stl_files(tmp_path):
    """The convex hull of a tetrahedron that leans on the axes."""
    folder = tmp_path / "robot" / "urdf"
    folder.mkdir(parents=True)
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    facets = "".join(
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x} {y:e} {z}\n" for x, y, z in corners[list(face)])
        + "endloop\nendfacet\n"
        for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    )
    (folder / "a.STL").write_text(f"solid part\n{facets}endsolid part\n")
    system = loaded("a.STL", tmp_path)
    (mesh,) = (g for g, kind in enumerate(system.geom_types) if kind.name == "mesh")
    assert system.geom_points[mesh] == 4
    place = jax.tree.map(lambda x: x[mesh], system.geom.transform)
    found = np.array([place.pos + np.asarray(rotate(p, place.rot)) for p in system.points])
    right = corners + np.array([0, 0, 0.2])  # the shape's origin
    np.testing.assert_allclose(sorted(np.round(found, 6).tolist()), sorted(right.tolist()))
    (folder / "a.STL").write_text(f"solid part\n{facets}vertex 1 2 3\nendsolid part\n")
    assert "its facets need three vertices each, got 13" in loaded("a.STL", tmp_path)


def test_an_open_mesh_needs_no_volume_where_the_inertia_is_given(tmp_path):
    folder = tmp_path / "robot" / "urdf"
    folder.mkdir(parents=True)
    (folder / "a.obj").write_text(TETRAHEDRON.rsplit("f", 3)[0])
    assert loaded("a.obj", tmp_path).num_links() == 2


def test_a_robot_that_only_flies_needs_a_floating_base():
    text = f'<robot name="drone"><link name="body">{INERTIAL}</link></robot>'
    with pytest.raises(ModelError, match="no joint of the robot moves; pass floating_base=True"):
        urdf.loads(text)
    assert urdf.loads(text, floating_base=True).q_size() == 7


def test_mimics_of_fixed_joints():
    """A fixed joint stays where it is, and what follows one is held at the offset."""
    text = hand(('<mimic joint="j" multiplier="2" offset="0.1"/>', ""))
    system = urdf.loads(text.replace('name="j" type="revolute"', 'name="j" type="fixed"'))
    assert (system.joint_names, system.equality_pair) == (("k", "l"), ((0, -1),))
    np.testing.assert_allclose(system.equality.data[0, :2], [0.1, 2])
    system = urdf.loads(text.replace('name="k" type="revolute"', 'name="k" type="fixed"'))
    assert (system.joint_names, system.equality_pair) == (("j", "l"), ())


DRIVEN = """<transmission name="t"><type>transmission_interface/SimpleTransmission</type>
<joint name="elbow"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
<actuator name="m"><mechanicalReduction>50</mechanicalReduction></actuator></transmission>"""
CONTROLLED = """<ros2_control name="c" type="system"><joint name="shoulder">
<command_interface name="effort"/></joint><joint name="elbow"><state_interface name="position"/>
</joint></ros2_control>"""


@pytest.mark.parametrize(
    ("text", "joints"),
    [
        (ARM, ["shoulder", "elbow"]),
        (ARM.replace(' effort="5"', "", 1), ["elbow"]),
        (ARM.replace("</robot>", f"{DRIVEN}</robot>"), ["elbow"]),
        (ARM.replace("</robot>", f"{CONTROLLED}</robot>"), ["shoulder"]),
    ],
    ids=["efforts", "one effort", "transmission", "ros2_control"],
)
def test_motors_of_joints(text, joints):
    system = urdf.loads(text, motors=True)
    assert [system.joint_names[j] for j in system.actuator_joint] == joints
    assert list(system.actuator_names) == joints
    np.testing.assert_array_equal(system.actuator.ctrl_range, [[-5, 5]] * len(joints))
    np.testing.assert_array_equal(system.actuator.gear, [1] * len(joints))
    assert urdf.loads(text).act_size() == 0


@pytest.mark.parametrize(("effort", "bounds"), [("0xA", [[-10, 10]] * 3), ("", [])])
def test_numbers_of_efforts_are_those_that_mujoco_reads(effort, bounds):
    """It reads hexadecimal numbers, and an empty one as if it was not given."""
    text = hand(("", "")).replace('upper="3"', f'upper="3" effort="{effort}"')
    assert urdf.loads(text, motors=True).actuator.ctrl_range.tolist() == bounds


def test_a_joint_that_follows_another_has_no_motor():
    text = hand(('<mimic joint="j"/>', ""))
    text = text.replace('upper="3"', 'upper="3" effort="2"')
    assert urdf.loads(text, motors=True).actuator_names == ("j", "l")


ON_A_FLOOR = f"""<robot name="ball">
  <link name="ball">{INERTIAL}
    <collision><geometry><sphere radius="0.25"/></geometry></collision>
  </link>
  <link name="world">
    <collision><origin xyz="0 0 -0.5"/><geometry><box size="20 20 1"/></geometry></collision>
  </link>
  <joint name="base" type="floating">
    <origin xyz="0 0 0.3"/><parent link="world"/><child link="ball"/>
  </joint>
</robot>"""


def test_a_floating_joint_puts_a_robot_above_a_floor():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an inertia of the world has no effect, and may be missing
        system = urdf.loads(ON_A_FLOOR)
    assert system.link_names == ("ball",)
    np.testing.assert_allclose(system.init_q, [0, 0, 0.3, 1, 0, 0, 0], rtol=1e-6)
    pipeline = plugins.get("pipeline", "spring")
    state = pipeline.init(system, system.init_q, jnp.zeros(6))
    state = pipeline.step(system, state, jnp.zeros(0), 500)
    # A ball at rest touches the floor, the top of the box, which is at z = 0.
    np.testing.assert_allclose(state.x.pos[0], [0, 0, 0.25], atol=1e-3)


def test_a_floating_joint_has_the_world_as_its_parent():
    with pytest.raises(
        ModelError,
        match=r"robot\.urdf:9: <joint name='base'>: a floating joint can only join a link to the "
        r"world: its parent must be the root link and be named 'world', got 'ground'",
    ):
        urdf.loads(ON_A_FLOOR.replace('"world"', '"ground"'))
