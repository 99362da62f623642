"""Brax's own text form: what it says is what the model has, and what it cannot say is refused."""

import math
import re
import sys
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import kinematics, plugins
from brax.dynamics import mass_matrix
from brax.errors import BraxError, ConfigError, ModelError
from brax.io import mjcf, text
from brax.io.text import schema

WALKER = """# A ball on one leg.
dt: 0.05 substeps: 10
gravity { z: -9.8 }
friction: 0.8
velocity_damping: -0.1
bodies { name: "ground" frozen { all: true } colliders { plane {} } }
bodies {
  name: "torso" mass: 10 inertia { x: 1 y: 2 z: 2.5 }
  colliders { sphere { radius: 0.25 } material { elasticity: 0.5 friction: 0.3 } }
}
bodies {
  name: "leg" mass: 1 inertia { x: 0.1 y: 0.1 z: 0.1 }
  colliders { position { z: -0.3 } capsule { radius: 0.08 length: 0.6 } color: "#ff8000" }
}
joints {
  name: "hip" parent: "torso" child: "leg" stiffness: 5000 angular_damping: 0.5
  parent_offset { z: -0.25 } child_offset { z: 0.05 }
  angle_limit { min: -90 max: 90 } angle_limit { min: -10 max: 20 }
}
actuators { name: "motor" joint: "hip" strength: 30 torque {} }
defaults { angles { name: "hip" angle { x: 90 } } }
defaults { qps { name: "torso" pos { x: 1 z: 0.1 } rot { z: 90 } } }
defaults {}
"""

ARM = """dt: 0.01 gravity { z: -9.81 }
bodies { name: "base" frozen { all: true } }
bodies { name: "upper" mass: 2 inertia { x: 0.02 y: 0.03 z: 0.04 } }
bodies { name: "lower" mass: 1 inertia { x: 0.01 y: 0.02 z: 0.025 } }
joints { name: "shoulder" parent: "base" child: "upper" child_offset { x: -0.3 }
         parent_offset { z: 1 } rotation { z: 90 } angle_limit { min: -180 max: 180 } }
joints { name: "elbow" parent: "upper" child: "lower" child_offset { x: -0.2 }
         parent_offset { x: 0.3 } reference_rotation { y: 30 } angular_damping: 0.2
         angle_limit { min: -45 max: 45 } angle_limit { max: 90 } }
"""

FAR, NEAR = math.cos(math.pi / 6), math.sin(math.pi / 6)
SAME_ARM = f"""<mujoco><compiler angle="degree"/><option timestep=".01"/><worldbody>
<body name="upper" pos=".3 0 1"><inertial pos="0 0 0" mass="2" diaginertia=".02 .03 .04"/>
  <joint name="shoulder" pos="-.3 0 0" axis="0 1 0" range="-180 180"/>
  <body name="lower" pos="{0.3 + 0.2 * FAR} 0 {-0.2 * NEAR}" euler="0 30 0">
    <inertial pos="0 0 0" mass="1" diaginertia=".01 .02 .025"/>
    <joint name="elbow_x" pos="-.2 0 0" axis="{FAR} 0 {NEAR}" range="-45 45" damping=".2"/>
    <joint name="elbow_y" pos="-.2 0 0" axis="0 1 0" range="0 90" damping=".2"/>
  </body></body></worldbody></mujoco>"""


@pytest.fixture(scope="module")
def walker():
    return text.loads(WALKER)


def test_a_model_has_what_its_text_says(walker):
    assert walker.link_names == ("torso", "leg")
    assert walker.joint_names == ("torso_root", "hip_x", "hip_y")
    assert float(walker.opt.timestep) == pytest.approx(0.005)
    np.testing.assert_allclose(walker.opt.gravity, [0, 0, -9.8], rtol=1e-6)
    assert float(walker.vel_damping) == pytest.approx(-0.1)
    np.testing.assert_allclose(walker.geom.friction[:, 0], [0.8, 0.3, 0.8], rtol=1e-6)
    np.testing.assert_allclose(walker.geom.elasticity, [0, 0.5, 0])
    np.testing.assert_allclose(walker.geom.size[2, :2], [0.08, 0.22], rtol=1e-6)
    np.testing.assert_allclose(walker.geom.rgba[2], [1, 128 / 255, 0, 1], rtol=1e-6)
    np.testing.assert_allclose(walker.dof.limit[1][6:], np.radians([90, 20]), rtol=1e-6)
    np.testing.assert_allclose(walker.dof.damping[6:], 0.5)
    assert walker.actuator_names == ("motor_x", "motor_y")
    np.testing.assert_allclose(walker.actuator.gainprm[:, 0], 30)
    np.testing.assert_allclose(walker.actuator.ctrl_range, [[-1, 1]] * 2)
    assert [len(g.geom1) for g in walker.collisions] == [1, 1]  # the joint keeps its bodies apart


def test_the_arm_is_that_of_mjcf():
    """Axes in the parent, offsets in both bodies, and a rotation at rest, by MuJoCo's compiler."""
    ours, theirs = text.loads(ARM), mjcf.loads(SAME_ARM)
    for name in ("link", "joint", "dof"):
        mine, other = (dict(leaves(getattr(s, name))) for s in (ours, theirs))
        for path, leaf in mine.items():
            if "inertia.transform.rot" not in path:  # its axes may be named in another order
                np.testing.assert_allclose(leaf, other[path], atol=2e-6, err_msg=f"{name}{path}")
    q = jnp.array([0.3, -0.4, 0.5])
    np.testing.assert_allclose(mass_matrix(ours, q), mass_matrix(theirs, q), atol=2e-6)


def leaves(tree):
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree.leaves_with_path(tree)]


def test_it_stands_on_the_ground(walker):
    """The model starts on the ground.

    With the leg level, the hip is 0.25 below the torso and the leg 0.08 thick. Straight, the leg
    reaches 0.9 from the torso: 0.25 + 0.05 to its origin, 0.3 to its centre, 0.3 on to its end.
    """
    q = walker.init_q
    np.testing.assert_allclose(q, [0, 0, 0.33, 1, 0, 0, 0, math.pi / 2, 0], atol=1e-6)
    straight = text.loads(WALKER, default_index=2)
    np.testing.assert_allclose(straight.init_q[:3], [0, 0, 0.9], atol=1e-6)
    raised = text.default_q(straight, {"hip_x": -math.pi / 2})
    np.testing.assert_allclose(raised[2], 0.9, atol=1e-6)  # it is never lowered
    with pytest.raises(ConfigError, match=r"no joint 'hip_z'\. Did you mean 'hip_[xy]'"):
        text.default_q(walker, {"hip_z": 0.0})


def test_a_body_that_is_placed_stays_there():
    placed = text.loads(WALKER, default_index=1)
    half = math.sqrt(0.5)
    np.testing.assert_allclose(placed.init_q[:7], [1, 0, 0.1, half, 0, 0, half], atol=1e-6)


def test_rotations_turn_about_x_then_the_new_y_then_the_new_z():
    """By 90 degrees about x and the new y, the z axis comes to lie along x."""
    told = WALKER.replace("rot { z: 90 }", "rot { x: 90 y: 90 z: 90 }")
    system = text.loads(told, default_index=1)
    x, _ = kinematics.forward(system, system.init_q, jnp.zeros(8))
    w, a, b, c = np.asarray(x.rot[0], float)
    z = [2 * (a * c + w * b), 2 * (b * c - w * a), 1 - 2 * (a * a + b * b)]
    np.testing.assert_allclose(z, [1, 0, 0], atol=1e-6)
    y = [2 * (a * b - w * c), 1 - 2 * (a * a + c * c), 2 * (b * c + w * a)]
    np.testing.assert_allclose(y, [0, -1, 0], atol=1e-6)


def test_a_servo_pulls_to_its_target_in_degrees():
    system = text.loads(WALKER.replace("torque {}", "angle {}"))
    np.testing.assert_allclose(system.actuator.ctrl_range, [[-90, 90], [-10, 20]])
    gain, bias = system.actuator.gainprm[0, 0], system.actuator.biasprm[0, 1]
    np.testing.assert_allclose(gain * 90 + bias * math.pi / 2, 0, atol=1e-5)
    np.testing.assert_allclose(bias, -30)


def test_frozen_axes_leave_a_plane():
    told = WALKER.replace("angle_limit { min: -10 max: 20 }", "")
    plane = "frozen { position { x: 1 } rotation { y: 1 z: 1 } }\n"
    system = text.loads(plane + told)
    assert [t.name for t in system.joint_types] == ["slide", "slide", "hinge", "hinge"]
    np.testing.assert_allclose(system.joint.axis, [[0, 1, 0], [0, 0, 1], [1, 0, 0], [1, 0, 0]])
    np.testing.assert_allclose(system.init_q, [0, 0.33, 0, math.pi / 2], atol=1e-6)
    with pytest.raises(ModelError, match=r"'leg' \(m:12\).*the plane in which that rotates"):
        text.loads(plane.replace("x", "y", 1).replace("y: 1 z", "x: 1 z") + told, name="m")


def test_a_limit_without_room_locks_its_axis():
    told = WALKER.replace("angle_limit { min: -10 max: 20 }", "angle_limit {}")
    assert text.loads(told).joint_names == ("torso_root", "hip_x")
    fixed = told.replace("angle_limit { min: -90 max: 90 }", "angle_limit {}")
    fixed = fixed.replace("angle { x: 90 }", "").replace("actuators", "# actuators")
    system = text.loads(fixed)
    assert system.fixed_names == ("ground", "leg")
    np.testing.assert_allclose(system.link.inertia.mass, [11])


def test_pairs_that_are_not_included_are_taken_out():
    ball = (
        'bodies { name: "ball" mass: 1 inertia { x: 1 y: 1 z: 1 }'
        " colliders { sphere { radius: 1 } } }"
    )
    include = '{} collide_include {{ first: "ground" second: "{}" }}'
    every = text.loads(WALKER + ball)
    assert sum(len(g.geom1) for g in every.collisions) == 3 + 2
    one = text.loads(include.format(WALKER + ball, "leg"))
    assert [(g.geom1, g.geom2) for g in one.collisions] == [((0,), (2,))]
    with pytest.raises(ModelError, match=r"collide_include \(m:\d+\): .* 'log'.*mean 'leg'"):
        text.loads(include.format(WALKER, "log"), name="m")


def test_a_config_made_in_python_is_the_same(walker):
    config = text.Config(dt=0.05, substeps=10, friction=0.8, velocity_damping=-0.1)
    config.gravity.z = -9.8
    ground = config.bodies.add(name="ground")
    ground.frozen.all = True
    ground.colliders.add().plane.SetInParent()
    torso = config.bodies.add(name="torso", mass=10, inertia=dict(x=1, y=2, z=2.5))
    ball = torso.colliders.add(material=dict(elasticity=0.5, friction=0.3))
    ball.sphere.radius = 0.25
    leg = config.bodies.add(name="leg", mass=1, inertia=dict(x=0.1, y=0.1, z=0.1))
    capsule = dict(radius=0.08, length=0.6)
    leg.colliders.add(position=dict(z=-0.3), capsule=capsule, color="#ff8000")
    hip = config.joints.add(name="hip", parent="torso", child="leg", angular_damping=0.5)
    hip.parent_offset.z, hip.child_offset.z = -0.25, 0.05
    hip.angle_limit.add(min=-90, max=90)
    hip.angle_limit.add(min=-10, max=20)
    config.actuators.add(name="motor", joint="hip", strength=30).torque.SetInParent()
    config.defaults.add().angles.add(name="hip").angle.x = 90
    made = text.build(config)
    chex.assert_trees_all_equal_structs(made, walker)
    for (path, a), b in zip(leaves(made), jax.tree.leaves(walker), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=path)


@pytest.mark.parametrize(
    "old, new, complaint",
    [
        ("gravity {", "gravitas {", r"m:3: Config has no field 'gravitas'.*mean 'gravity'"),
        ("mass: 10", 'mass: "10"', r"m:8: .*parse float"),
        ("dt: 0.05", "dt: -1", "timestep must be > 0"),
        ("dt: 0.05", "dt: nan", "timestep must be > 0"),
        ("substeps: 10", "substeps: -10", "substeps: must be at least 1"),
        ('name: "leg" mass', "mass", r"body \(m:11\): it needs a name"),
        ("mass: 1 ", "", r"body 'leg' \(m:11\): mass must be > 0"),
        ('"torso" child', '"trunk" child', r"'leg' \(m:11\): its parent 'trunk' does not exist"),
        ('child: "leg"', 'child: "log"', r"joint 'hip' \(m:15\): there is no body 'log'.*'leg'"),
        ('child: "leg"', 'child: "torso"', r"body 'torso' \(m:7\): it carries itself"),
        ("angle_limit { min: -10 max: 20 }", "angle_limit { min: 5 max: 5 }", r"'hip_y' \(m:15\)"),
        ("angle { x: 90 }", "angle { x: 91 }", r"about x is 91.0, its limits are -90.0 and 90.0"),
        ('angles { name: "hip"', 'angles { name: "hop"', "no joint 'hop'. Did you mean 'hip'"),
        ("torque {}", "", r"actuator 'motor' \(m:20\): it has no type; allowed: torque, angle"),
        ('joint: "hip" s', 'joint: "hips" s', r"no joint 'hips'. Did you mean 'hip'"),
        ("sphere { radius: 0.25 }", "mesh {}", r"'torso': collider 0 \(m:9\): 'mesh' is not supp"),
        ("sphere { radius: 0.25 }", "heightMap {}", r"'heightMap' is not supported; allowed: box"),
        ("sphere { radius: 0.25 }", "clipped_plane {}", "'clipped_plane' is not supported"),
        ("sphere { radius: 0.25 }", "", "it has no shape; allowed: box, plane, sphere, capsule"),
        ("sphere { radius: 0.25 }", "plane {}", r"\(m:9\): a plane is only allowed on the world"),
        ("length: 0.6", "length: 0.6 end: 1", r"\(m:13\): a capsule with one end is not supported"),
        ("length: 0.6", "length: 0.1", r"\(m:13\): .* must be > 0"),
        ("#ff8000", "orange", r"color must be #rrggbb, got 'orange'"),
        (
            "defaults {}",
            'forces { name: "jet" thruster {} }',
            r"force 'jet' \(m:23\): .*`external`",
        ),
        ("defaults {}", 'mesh_geometries { name: "m" }', r"mesh 'm' \(m:23\): meshes are not"),
        ("pos { x: 1 z: 0.1 }", "vel { x: 1 }", None),
        ("substeps: 10", "substeps: 10 frozen { rotation { x: 1 } }", "frozen about one axis"),
    ],
)
def test_what_is_wrong_is_named(old, new, complaint):
    assert WALKER.count(old) == 1
    told = WALKER.replace(old, new)
    if complaint is None:  # of a default that is not taken
        text.loads(told, 0, "m")
        complaint = "qps 'torso': a model starts at rest"
    index = 1 if "vel {" in new else 0
    with pytest.raises(ModelError, match=complaint):
        text.loads(told, index, "m")


def test_a_loop_is_refused():
    loop = re.findall(r"joints \{.*?\n\}", WALKER, re.S)[0].replace('"hip"', '"knee"')
    with pytest.raises(ModelError, match=r"joint 'knee' \(m:\d+\): .*closed loops are not supp"):
        text.loads(WALKER + loop, name="m")


def test_lists_and_strings_do_not_move_the_lines():
    """In a list of messages, after a comment with a brace, and a string with one over two lines."""
    bodies = '[{name: "a{\\"" mass: 1},\n<name: "b" mass: 1\ninertia {x: 1 y: 1 z: 1}>]'
    told = f"dt: 1  # {{\nbodies: {bodies}"
    with pytest.raises(ModelError, match=r"body 'a\{\"' \(m:2\): principal moments must be > 0"):
        text.loads(told, name="m")
    with pytest.raises(ModelError, match=r"body 'b' \(m:3\): principal moments must be > 0"):
        text.loads(
            told.replace("x: 1", "").replace("1}", "1 inertia {x: 1 y: 1 z: 1}}", 1), name="m"
        )


def test_a_file_is_read_by_its_suffix_and_reported(tmp_path, walker):
    reader = plugins.get("model_format", "text")
    path = tmp_path / "walker.textproto"
    path.write_text(WALKER)
    assert reader.suffixes == (".textproto",)
    assert reader.load(path).link_names == walker.link_names
    rows = reader.report(path, "generalized")
    assert ("joint", "hip stiffness", "ignored", text.IGNORED_FIELDS["stiffness"]) in rows
    assert ("joint", "hip", "supported", "") in rows
    assert ("model", "damping of velocities (vel_damping, ang_damping)") in [r[:2] for r in rows]
    with pytest.raises(ModelError, match="cannot read"):
        reader.load(tmp_path / "no.textproto")


def test_a_missing_protobuf_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    schema.messages.cache_clear()
    try:
        with pytest.raises(BraxError, match=r"pip install 'brax-io\[text\]'"):
            text.Config()
    finally:
        monkeypatch.undo()
        schema.messages.cache_clear()


@pytest.mark.slow
def test_the_schema_is_what_protoc_reads(tmp_path):
    """By the compiler of the schema's own language, where it is installed (grpcio-tools)."""
    protoc = pytest.importorskip("grpc_tools.protoc")
    descriptors = pytest.importorskip("google.protobuf.descriptor_pb2")
    source = schema.__file__.replace("schema.py", "config.proto")
    out = tmp_path / "config.binpb"
    folder = source.removesuffix("/config.proto")
    assert protoc.main(["", f"-I{folder}", f"--descriptor_set_out={out}", source]) == 0
    (theirs,) = descriptors.FileDescriptorSet.FromString(out.read_bytes()).file
    ours = descriptors.FileDescriptorProto()
    text.Config().DESCRIPTOR.file.CopyToProto(ours)
    for file in (theirs, ours):
        for message in file.message_type:
            for field in message.field:
                field.ClearField("json_name")
    assert list(ours.message_type) == list(theirs.message_type)


def test_the_documented_model_and_its_code_run():
    page = (Path(__file__).parents[3] / "docs" / "models.md").read_text("utf-8")
    section = page[page.index("## Brax's own text form") :]
    told = section.split("```text\n")[1].split("```")[0]
    system = text.loads(told)
    assert system.joint_names == ("torso_root", "hip_x", "hip_y")
    np.testing.assert_allclose(system.init_q[7], math.radians(30), rtol=1e-6)
