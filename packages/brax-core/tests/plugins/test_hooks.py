"""Every hook is documented, has an example, and serves Brax's own objects and third-party ones."""

import importlib
import math
import pkgutil
import re
import sys
import types
from pathlib import Path

import jax.numpy as jnp
import pytest

import brax
from brax import plugins
from brax._shared_name import OURS
from brax.actuators import ActuatorParams
from brax.colliders import Shape
from brax.components import Quat, Vec3
from brax.joints import JointParams
from brax.plugins import KINDS, Registry, hookspecs
from brax.plugins.kinds import resolve

ROOT = Path(__file__).parents[4]
DOCUMENT = (ROOT / "docs" / "plugins.md").read_text()
EXAMPLE = ROOT / "integration_tests" / "plugins" / "brax-example-plugin" / "src"
HOOKS = sorted(name for name in vars(hookspecs) if name.startswith("brax_"))


@pytest.fixture(scope="module")
def example():
    """Yield a registry of the example plugin alone."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        module = importlib.import_module("brax_example_plugin.plugin")
        registry = Registry(lambda: [], {})
        registry.register(module, "brax-example-plugin")
        yield registry
    finally:
        sys.path.remove(str(EXAMPLE))


def test_hooks_and_kinds_are_the_same():
    assert sorted(kind.hook for kind in KINDS.values()) == HOOKS


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_documented(hook):
    assert getattr(hookspecs, hook).__doc__
    (kind,) = [k.name for k in KINDS.values() if k.hook == hook]
    assert re.search(rf"^\| `{hook}` \| `{kind}` \| \w.+ \|$", DOCUMENT, re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_working_example(example, kind):
    assert example.names(kind)
    for name in example.names(kind):
        assert example.get(kind, name) is not None
        assert example.specs(kind)[name].summary


def test_the_examples_keep_to_the_interfaces(example):
    """A screw of 0.5 m per radian, a ring of 0.3 m standing on the ground, thrust 2 * 3 * 3."""

    def column(*values):
        return [jnp.full((1, 1), float(v)) for v in values]

    (q,) = column(2)
    params = JointParams(Vec3(*column(0, 0, 1)), tuple(column(0.5)))
    pos, _ = example.get("joint_type", "screw").transform(params, (q,))
    assert float(pos.z[0, 0]) == 1
    half = math.sqrt(0.5)
    ground = Shape(Vec3(*column(0, 0, 0)), Quat(*column(1, 0, 0, 0)), Vec3(*column(0, 0, 0)))
    ring = Shape(
        Vec3(*column(0, 0, 0.3)), Quat(*column(half, half, 0, 0)), Vec3(*column(0.3, 0.1, 0))
    )
    touch, *_ = example.get("collider", "plane-torus").collide(ground, ring)
    assert float(touch.dist[0, 0]) == pytest.approx(-0.1, abs=1e-6)
    numbers = ActuatorParams(tuple(column(2)), ())
    thrust = example.get("actuator", "propeller").force(numbers, *column(3, 0, 0))
    assert float(thrust[0, 0]) == 18


def test_code_in_the_documentation_is_the_examples():
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", DOCUMENT, re.DOTALL)
    assert len(blocks) == DOCUMENT.count("```python") >= 6
    for file, code in blocks:
        source = (EXAMPLE / "brax_example_plugin" / file).read_text()
        for part in code.strip("\n").split("\n\n\n"):
            assert part in source, file


def test_switches_in_the_documentation_are_those_that_discovery_reads():
    documented = set(re.findall(r"^\| `(BRAX_PLUGINS\w*)=", DOCUMENT, re.MULTILINE))
    source = "".join(path.read_text() for path in Path(plugins.__file__).parent.glob("*.py"))
    read = set(re.findall(r"\"(BRAX_PLUGINS\w*)\"", source))
    assert documented == read


@pytest.mark.parametrize(
    "kind", [k.name for k in KINDS.values() if k.interface and k.name != "command"]
)
def test_every_built_in_object_arrives_through_its_hook(kind):
    """Whatever a package of core defines of a kind is registered, and nothing is left aside."""
    interface = resolve(KINDS[kind].interface)
    package = importlib.import_module(interface.__module__.rpartition(".")[0])
    modules = [
        importlib.import_module(info.name)
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    defined = {
        id(value): value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, interface)
    }
    registered = {id(plugins.get(kind, name)) for name in plugins.names(kind)}
    assert defined
    assert defined.keys() <= registered, [v for i, v in defined.items() if i not in registered]


def test_all_our_plugins_load():
    ours = [s for s in plugins.statuses() if s.origin.distribution in OURS]
    assert [s.reason for s in ours if s.state != "loaded"] == []


def test_the_package_path_reaches_all_distributions():
    assert isinstance(brax, types.ModuleType)
    present = {info.name for info in pkgutil.iter_modules(brax.__path__)}
    parts = {"brax-io": "io", "brax-envs": "envs", "brax-agents": "training"}
    installed = {s.origin.distribution for s in plugins.statuses()}
    assert {part for name, part in parts.items() if name in installed} <= present
