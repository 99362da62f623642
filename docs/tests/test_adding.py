"""The pages about adding things: they show the example plugin's files, and their code works."""

import importlib
import math
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from brax import plugins
from brax.errors import PluginError
from brax.testing import check_joint
from brax.training.distributed import devices

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "integration_tests/plugins/brax-example-plugin/src"
FILES = {
    "joint": ["joint.py"],
    "collider": ["shape.py", "collider.py"],
    "integrator": ["integrator.py"],
    "actuator": ["actuator.py", "motor.py"],
    "trainer": ["td3.py"],
}


pytestmark = pytest.mark.usefixtures("example")


def page(subject):
    (path,) = (ROOT / "docs").glob(f"adding-a*-{subject}.md")
    return path.read_text()


def run(subject, text):
    """Run the page's only block that has this text."""
    (block,) = [b for b in re.findall(r"```python\n(.*?)```", page(subject), re.S) if text in b]
    names: dict[str, Any] = {}
    exec(compile(block, subject, "exec"), names)
    return names


def test_the_page_of_sensors_shows_the_example():
    shown = (SOURCE / "brax_example_plugin" / "sensor.py").read_text().strip()
    assert shown in (ROOT / "docs" / "sensors.md").read_text()


@pytest.mark.parametrize("subject", FILES)
def test_the_page_shows_the_files(subject):
    for file in FILES[subject]:
        assert (SOURCE / "brax_example_plugin" / file).read_text().strip() in page(subject)


@pytest.mark.parametrize("subject", FILES)
def test_the_page_registers_as_the_example_does(subject):
    (block,) = re.findall(r"```python\n# plugin.py\n(.*?)```", page(subject), re.S)
    assert block.strip() in (SOURCE / "brax_example_plugin/plugin.py").read_text()


def test_a_model_with_the_joint():
    system = run("joint", "add_joint")["system"]
    assert [t.name for t in system.joint_types] == ["screw"]
    np.testing.assert_allclose(system.joint.user, [[0.05]])


@pytest.mark.parametrize("checked", ["Cylindrical()", 'plugins.get("joint_type", "screw")'])
def test_the_page_s_checks_of_joints_pass(checked):
    run("joint", f"check_joint({checked}")


@pytest.mark.parametrize("wrong", ["transform", "motion_subspace", "coordinates"])
def test_the_check_finds_a_wrong_joint(wrong):
    screw = plugins.get("joint_type", "screw")
    method = getattr(type(screw), wrong)

    def mirrored(self, params, *q):
        return method(self, params._replace(axis=-params.axis), *q)

    with pytest.raises(PluginError):
        check_joint(type("Mutant", (type(screw),), {wrong: mirrored})(), user=(0.05,))


def test_a_model_with_the_shape():
    (group,) = run("collider", "add_geom")["system"].collisions
    assert group.collider.types == ("plane", "torus")
    assert (group.geom1, group.geom2) == ((0,), (1,))


def test_the_collider_at_a_known_place():
    names = run("collider", "def place")
    touch, *_ = plugins.get("collider", "plane-torus").collide(names["ground"], names["ring"])
    np.testing.assert_allclose(touch.dist, [[1 - 0.5 * math.sin(0.3) - 0.1]], atol=1e-6)


def test_the_page_s_check_of_the_collider_passes():
    run("collider", "check_collider")


def test_a_model_with_the_integrator():
    assert run("integrator", "set_option")["system"].integrator.name == "push_glide_push"


@pytest.mark.parametrize(("name", "order"), [("push_glide_push", 2), ("euler", 1)])
def test_the_order_of_the_integrator(name, order):
    error = run("integrator", "def error")["error"]
    integrator = plugins.get("integrator", name)
    assert integrator.order == order
    assert error(integrator, 100) / error(integrator, 200) == pytest.approx(2**order, rel=0.05)


@pytest.fixture(scope="module")
def td3():
    """Return a learner with linear networks, the state that a loss needs, and stored steps."""
    agent = plugins.get("trainer", "example_td3")
    linear = {"network_factory": {"hidden_layer_sizes": ()}}
    config, runtime = agent.check({"num_envs": 4, "target_noise_std": 0.0, **linear})
    environment = plugins.get("environment", "example_cart")()
    learner, *_ = agent.build(environment, config, runtime, devices.env_mesh(4, 1), None)
    draw = np.random.default_rng(0).normal
    state = jax.eval_shape(learner.init, jax.random.key(0))
    weights = {
        name: jax.tree.map(lambda x: draw(size=x.shape), getattr(state, name))
        for name in ("q", "target_q", "target_policy")
    }
    kept = importlib.import_module("brax_example_plugin.td3").Sample(
        draw(size=(5, 2)), draw(size=(5, 1)), draw(size=5), np.arange(5) % 2, draw(size=(5, 2))
    )
    return learner, state._replace(**weights), kept


def test_td3_s_target_is_the_lower_critic_at_the_target_policy(td3):
    learner, state, sample = td3

    def critics(params, obs, action):
        layers = [params["params"][f"critic_{i}"]["hidden_0"] for i in range(2)]
        inputs = np.concatenate([obs, action], axis=-1)
        return np.concatenate([inputs @ p["kernel"] + p["bias"] for p in layers], axis=-1)

    layer = state.target_policy["params"]["hidden_0"]
    action = np.tanh(sample.next_observation @ layer["kernel"] + layer["bias"])
    later = critics(state.target_q, sample.next_observation, action).min(axis=-1)
    target = sample.reward + 0.99 * np.where(sample.goes_on > 0, later, 0.0)
    error = critics(state.q, sample.observation, sample.action) - target[:, None]
    found = learner.critic_loss(state.q, state, sample, jax.random.key(0))
    np.testing.assert_allclose(found, np.mean(error**2), rtol=1e-5)


def test_a_model_with_the_actuator():
    system = run("actuator", "add_actuator")["system"]
    assert [t.name for t in system.actuator_types] == ["propeller"]


def test_the_forces_of_the_actuator():
    forces = run("actuator", "forces")["forces"]
    np.testing.assert_allclose(forces, np.array([0.75, -12.0]).reshape(2, 1, 1))
