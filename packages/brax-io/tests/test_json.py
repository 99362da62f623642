"""A system as JSON: what comes back is the same to the last bit, and what is wrong is named."""

import json as text
import subprocess
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import plugins
from brax.builder import ModelBuilder
from brax.errors import ModelError
from brax.io import json
from brax.plugins import Spec, hookimpl


def rich():
    """Every kind of element, numbers that have no short decimal, and infinite limits."""
    made = ModelBuilder()
    made.set_option(timestep=1 / 300, gravity=(0.1, 1e-7, -9.81), integrator="implicit")
    made.add_body("trunk", mass=1 / 3, inertia=(0.1, 0.2, 0.25))
    made.add_body("tip", "trunk", pos=(0.1, 0.2, 1 / 7))
    made.add_body("target", pos=(0.1, 0.2, 1 / 7), mocap=True)
    made.add_body("arm", "trunk", gravcomp=1 / 3, mass=2.0, inertia=(0.3, 0.3, 0.3))
    made.add_joint("trunk", "free")
    made.add_joint("arm", "ball", name="shoulder")
    made.add_joint("arm", "hinge", name="elbow", axis=(0, 1, 1), range=(-1.1, 0.3), damping=0.7)
    made.add_geom(type="plane", name="floor")
    made.add_geom("trunk", "sphere", name="head", size=(0.25,), condim=1)
    made.add_geom(
        "arm",
        "capsule",
        name="rod",
        size=(0.08, 0.2),
        rgba=(0.1, 0.2, 0.3, 0.4),
        fluidcoef=(1, 2, 3, 4, 1 / 3),
    )
    made.add_site("tip", "finger", pos=(0.1, 0, 1 / 9), type="box", size=(0.1, 0.2, 0.3))
    made.add_weld("target", "arm")
    made.add_tendon({"elbow": 1 / 3}, "sinew", stiffness=0.1)
    made.add_site("target", "grip")
    made.add_tendon({}, "rope", path=["finger", ("head", ""), "grip", 3.0, "grip", "finger"])
    made.add_actuator("elbow", gear=3.3, ctrl_range=(-1, 1))
    made.add_sensor("gyro", ("site", "finger"), cutoff=1 / 3)
    made.add_sensor("framepos", ("body", "tip"), reference=("geom", "head"))
    made.add_actuator(site="finger", wrench=(0, 1 / 3, 0, 0, 0, 1))
    made.add_actuator(
        type="muscle",
        tendon="sinew",
        gainprm=(0.75, 1.05, 200, 200, 0.5, 1.6, 1.5, 1.3, 1.2),
        dynprm=(1 / 70, 0.04),
        length_range=(-1 / 3, 0.1),
    )
    made.add_connect("arm", anchor=(0, 0, 1 / 3), name="loop")
    made.add_weld("trunk", "arm", name="glue")
    made.add_coupling("elbow", polycoef=(1 / 3, 0, 0, 0, 0), name="held")
    made.add_geom("arm", "mesh", name="wedge", points=np.eye(4, 3) / 3)
    made.add_keyframe("up", [0, 0, 1 / 3, 1, 0, 0, 0, 1, 0, 0, 0, -0.2], ctrl=[0.1, 1 / 7, 0.3])
    made.add_keyframe("fast", qd=np.arange(10) / 3, activation=[1 / 3])
    return made.build()


def same(a, b):
    """Return whether two systems are equal to the last bit."""
    chex.assert_trees_all_equal_structs(a, b)
    for (place, x), y in zip(
        jax.tree_util.tree_leaves_with_path(a), jax.tree.leaves(b), strict=True
    ):
        assert x.dtype == y.dtype, place
        assert np.asarray(x).tobytes() == np.asarray(y).tobytes(), place
    return True


@pytest.fixture(scope="module")
def system():
    return rich()


def test_a_system_comes_back_to_the_last_bit(system, tmp_path):
    json.save(tmp_path / "robot.json", system)
    assert same(json.load(tmp_path / "robot.json"), system)
    assert json.dumps(json.load(tmp_path / "robot.json")) == json.dumps(system)


def test_random_numbers_of_every_size_come_back(system):
    bits = np.random.default_rng(0).integers(0, 2**32, 3000, dtype=np.uint32).view(np.float32)
    system = system.replace(init_q=jnp.asarray(bits[np.isfinite(bits)]))
    told = text.loads(json.dumps(system))["system"]["init_q"]["values"]
    assert np.array(told, np.float32).tobytes() == np.asarray(system.init_q).tobytes()


def test_the_text_is_json_that_other_programs_read(system):
    told = text.loads(json.dumps(system), parse_constant=pytest.fail)
    assert told["system"]["joint_types"] == [
        {"joint_type": "free"},
        {"joint_type": "ball"},
        {"joint_type": "hinge"},
    ]
    limits = told["system"]["dof"]["limit"]
    assert limits[0] == {"dtype": "float32", "shape": [10], "values": [*["-inf"] * 9, -1.1]}


def test_the_registry_reads_it(system, tmp_path):
    json.save(tmp_path / "robot.json", system)
    reader = plugins.get("model_format", "json")
    assert reader.suffixes == (".json",)
    assert same(reader.load(tmp_path / "robot.json"), system)


@pytest.mark.slow
def test_models_of_the_environments_come_back():
    envs = pytest.importorskip("brax.envs")
    for name in ("ant", "humanoid", "pusher"):
        system = envs.get_environment(name).sys
        assert same(json.loads(json.dumps(system)), system.replace(file_model=None))


@pytest.mark.slow
def test_it_needs_no_mujoco(system, tmp_path):
    json.save(tmp_path / "robot.json", system)
    program = """
import sys
sys.modules["mujoco"] = None
from brax import plugins
sys_ = plugins.get("model_format", "json").load(sys.argv[1])
print(*sys_.link_names)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "robot.json"], capture_output=True, text=True
    )
    assert done.stdout.split() == ["trunk", "arm"], done.stderr


class Own:
    """A plugin with a joint type of its own: a hinge under another name."""

    BRAX_PLUGIN_API = 1

    def __init__(self):
        hinge = type(plugins.get("joint_type", "hinge"))
        self.joint = type("Own", (hinge,), {"name": "own"})()

    @hookimpl
    def brax_joint_types(self):
        return [Spec("own", self.joint)]


def test_types_of_a_plugin_come_back_where_it_is_installed(system):
    plugin = Own()
    plugins.register(plugin, "own")
    try:
        mixed = system.replace(joint_types=(*system.joint_types[:2], plugin.joint))
        told = json.dumps(mixed)
        assert same(json.loads(told), mixed)
    finally:
        plugins.unregister("own")
    with pytest.raises(ModelError, match=r"joint_types\[2\]: unknown joint type 'own'"):
        json.loads(told)
    with pytest.raises(ModelError, match=r"joint_types\[2\]: .*of no registered type"):
        json.dumps(mixed)


def test_what_is_not_a_number_is_not_written(system):
    with pytest.raises(ModelError, match=r"system\.opt\.timestep: contains NaN"):
        json.dumps(system.tree_replace({"opt.timestep": jnp.asarray(jnp.nan)}))


def changed(system, path, value):
    """Return the text with one entry replaced, or taken out by `...`."""
    told = text.loads(json.dumps(system))
    *outer, last = path.split(".")
    part = told["system"]
    for key in outer:
        part = part[int(key)] if key.isdigit() else part[key]
    if value is ...:
        del part[last]
    else:
        part[int(last) if last.isdigit() else last] = value
    return text.dumps(told)


FAR = {"dtype": "float64", "shape": [3], "values": [0, 0, 1e39]}


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("opt.timestep.values", ["quick"], r"system\.opt\.timestep: not an array of numbers"),
        ("opt.timestep.values", [float("nan")], r"system\.opt\.timestep: "),
        ("opt.timestep.values", ["0.1"], r"system\.opt\.timestep: .*'0\.1' is no float32"),
        ("opt.timestep.values", [True], r"system\.opt\.timestep: .*True is no float32"),
        ("opt.timestep.values", [[0.1]], r"system\.opt\.timestep: .*\[0\.1\] is no float32"),
        ("opt.timestep.values", "1", r"timestep: values must be a list of numbers, got '1'"),
        ("opt.timestep.values", [1e39], r"contains numbers that are too large for float32"),
        ("opt.wind", FAR, r"opt\.wind: contains numbers that are too large for float32"),
        ("opt.timestep.dtype", "int32", r"opt\.timestep: .*0\.\d+ is no int32"),
        ("opt.timestep.dtype", "object", r"opt\.timestep: contains something else than numbers"),
        ("opt.timestep", 0.1, r"opt\.timestep: expected an array with dtype"),
        ("opt.timestep.shape", [3], r"opt\.timestep: not an array of numbers"),
        ("opt.cone", 3, r"system\.opt\.cone: expected str, got 3"),
        ("opt.iterations", True, r"system\.opt\.iterations: expected int, got True"),
        ("opt.iterations", ..., r"system\.opt: field 'iterations' is missing"),
        ("opt.itterations", 1, r"has no field 'itterations'\. Did you mean 'iterations'"),
        ("joint_types.1.joint_type", "bll", r"joint_types\[1\]: unknown joint type 'bll'"),
        ("integrator", {"command": "train"}, r"integrator: expected one of .*sensor with a name"),
        ("integrator", {"joint_type": "ball"}, r"system\.integrator: expected integrator, got"),
        ("joint_types.0", {"integrator": "rk4"}, r"system\.joint_types: expected joint_type"),
        ("integrator", "euler", r"system\.integrator: expected one of"),
        ("joint_link", [0, 1], r"system\.joint_link: expected 3 entries, got 2"),
        ("joint_link", [0, 1, 2], r"joint_link: 2 is not among 0 to 1"),
        ("joint_link", [1, 0, 1], "joints must be in the order of their links"),
        ("link_parents.1", 1, r"link_parents\[1\]: 1 is not a link before it"),
        ("collisions.0.geom1.0", 9, "collisions: 9 is not among 0 to 3"),
        ("geom.size.shape", [12], r"system\.geom\.size: expected shape \(4, 3\), got \(12,\)"),
        ("equality_pair.0", [1, 2], r"system\.equality_pair\[0\]: there is no link 2"),
        ("equality_pair.3", [3, -1], r"system\.equality_pair\[3\]: there is no joint 3"),
        ("sensor_object.0", ["site", 2], r"system\.sensor_object\[0\]: there is no site 2"),
        ("sensor_object.0", ["wheel", 0], r"sensor_object\[0\]: there is no wheel 0"),
        ("sensor_reference.1", ["geom", 4], r"sensor_reference\[0\]: there is no geom 4"),
        ("keyframe_names", ["up"], r"keyframes\.q: expected shape \(1, 12\), got \(2, 12\)"),
        ("keyframes.ctrl.shape", [3, 2], r"keyframes\.ctrl: expected shape \(2, 3\), got"),
        ("link", [], r"system\.link: expected an object"),
        ("equality_pair", [], r"system\.equality_pair: expected \d+ entries, got 0"),
        ("geom_grid", [], r"system\.geom_grid: expected \d+ entries, got 0"),
        ("geom_types.0", {"actuator": "affine"}, r"system\.geom_types: expected geometry_type"),
        ("collisions.0", {"actuator": "affine"}, r"collisions\[0\]: expected geoms and their"),
        ("collisions.0.collider", {"actuator": "affine"}, r"collisions\[0\]: expected geoms and"),
        ("opt.timestep.dtype", "U2000000000", r"opt\.timestep: contains something else than"),
        ("opt.timestep.dtype", "float128", r"opt\.timestep: contains something else than"),
        ("opt.timestep.dtype", ">f4", r"opt\.timestep: contains something else than numbers"),
    ],
)
def test_what_is_wrong_is_named(system, path, value, said):
    with pytest.raises(ModelError, match=said):
        json.loads(changed(system, path, value))


def test_all_problems_are_told_at_once(system):
    told = text.loads(changed(system, "opt.cone", 3))
    told["system"]["integrator"] = 5
    with pytest.raises(ModelError) as caught:
        json.loads(text.dumps(told), "arm.json")
    assert len(caught.value.problems) == 2
    assert all(problem.startswith("arm.json: system.") for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1, 2]", "not a system"),
        ('{"system": {}}', "not a system"),
        ('{"brax": 99, "system": {}}', "has format 99, this version reads up to 1"),
        ('{"brax": 1, "system": 3}', "system: expected an object"),
    ],
)
def test_other_texts_are_refused(content, said):
    with pytest.raises(ModelError, match=said):
        json.loads(content)


def test_files_that_cannot_be_read_or_written(system, tmp_path):
    with pytest.raises(ModelError, match=r"cannot read .*no\.json': No such file"):
        json.load(tmp_path / "no.json")
    with pytest.raises(ModelError, match="cannot write"):
        json.save(tmp_path / "no" / "robot.json", system)
