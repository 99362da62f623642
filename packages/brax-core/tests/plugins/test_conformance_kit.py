"""The checks of `brax.testing`, but for joints, colliders, integrators and environments."""

import types

import jax.numpy as jnp
import pytest

from brax import plugins
from brax.actuators import ActuatorType
from brax.builder import ModelBuilder
from brax.colliders import GeometryType
from brax.components import Vec3
from brax.env import Env, State
from brax.errors import ModelError, PluginError
from brax.sensors import SensorType
from brax.testing import (
    check_actuator,
    check_geometry_type,
    check_model_format,
    check_pipeline,
    check_sensor,
    check_trainer,
)


@pytest.mark.parametrize("name", plugins.names("geometry_type"))
def test_geometry_types(name):
    check_geometry_type(plugins.get("geometry_type", name))


@pytest.mark.parametrize("name", plugins.names("actuator"))
def test_actuators(name):
    check_actuator(plugins.get("actuator", name))


def pendulum():
    model = ModelBuilder()
    model.add_body("bob", mass=1.0, inertia=(0.1, 0.1, 0.1), ipos=(0, 0, -1))
    return model, model.add_joint("bob", axis=(0, 1, 0))


def test_a_sensor():
    model, joint = pendulum()
    model.add_sensor("jointpos", ("joint", joint))
    check_sensor(plugins.get("sensor", "jointpos"), model.build())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spring", "positional", "generalized"])
def test_pipelines(name):
    check_pipeline(plugins.get("pipeline", name))


class Ball(GeometryType):
    name, size_names, corners = "ball", ("radius",), 1

    def __init__(self, stretch=1.0, mesh=None):
        self.stretch, self._mesh = stretch, mesh

    def signed_distance(self, shape, point):
        return self.stretch * (jnp.sqrt(point.dot(point)) - shape.size.x)

    def support(self, shape, direction):
        return direction * shape.size.x * jnp.where(direction.x > 0, self.stretch, 1.0)

    def mesh(self, size, points=None):
        return self._mesh


class Pulled(Ball):
    """Gives the point on the ball above or below, or one that is not of the ball."""

    def nearest(self, shape, point):
        if self.stretch > 1:
            return point * 0.5
        end = jnp.where(point.z > 0, shape.size.x, -shape.size.x)
        return Vec3(0.0 * end, 0.0 * end, end)


class Root(ActuatorType):
    name = "root"

    def force(self, params, signal, length, velocity):
        return params.gainprm[0] * jnp.sqrt(jnp.abs(signal))


class Mixing(SensorType):
    name, objects = "mixing", ("joint",)

    def read(self, here, asked):
        return jnp.stack([(here.qd[j] + here.qd.sum())[None] for _, j in asked.objects])


FLAT = jnp.array([[0.4, 0, 0], [0, 0.4, 0], [0, 0, 0.0]]), jnp.array([[0, 1, 2]])


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Ball(), ""),
        (Ball(2.0), "its slope does not have length one"),
        (Ball(2.0), "support must be the farthest point"),
        (Ball(mesh=FLAT), "mesh has a vertex that is 0.4 m off the surface"),
        (Pulled(), "nearest must return the nearest points: the support towards a point is nearer"),
        (Pulled(2.0), "nearest must return points of the shape"),
        (Root(), "must be a brax.colliders.GeometryType, but is Root"),
    ],
)
def test_a_wrong_geometry_type(kind, told):
    if not told:
        check_geometry_type(kind)
        return
    with pytest.raises(PluginError, match=told):
        check_geometry_type(kind)


def test_a_wrong_actuator():
    with pytest.raises(PluginError, match="force or a derivative of it is not finite at"):
        check_actuator(Root())
    with pytest.raises(PluginError, match=r"must be a brax\.actuators\.ActuatorType, but is Ball"):
        check_actuator(Ball())  # type: ignore[arg-type]


def test_a_wrong_pipeline():
    spring = plugins.get("pipeline", "spring")
    with pytest.raises(PluginError, match="it must have a function init\n  it must have a f"):
        check_pipeline(object())
    wrong = types.SimpleNamespace(init=lambda sys, q, qd: q, step=spring.step)
    with pytest.raises(PluginError, match=r"init must return a brax.base.State, but returns float"):
        check_pipeline(wrong)
    wrong = types.SimpleNamespace(init=spring.init, step=lambda sys, state, act, n: None)
    with pytest.raises(PluginError, match=r"step must return a brax.base.State, but returns None"):
        check_pipeline(wrong)


class Point(Env):
    """Rests, and earns nothing."""

    action_size, backend = 1, ""

    def reset(self, rng):
        zero = jnp.zeros(())
        return State(None, jnp.ones(2), zero, zero)

    def step(self, state, action):
        return state


def constant(value):
    return lambda params=None, **_: lambda obs, key: (jnp.full(1, value), {})


@pytest.mark.parametrize(
    ("train", "load", "told"),
    [
        (lambda env: (constant(1.0), (), {}), lambda path, deterministic: constant(1.0)(), ""),
        (
            lambda env: None,
            print,
            "train must return .make_policy, params, metrics., but returns",
        ),
        (lambda env, x: None, print, "train raised TypeError: .* missing 1 required"),
        (
            lambda env: (constant(1.0), (), {}),
            lambda path, deterministic: constant(2.0)(),
            "load_policy must return the policy that train returned",
        ),
        (
            lambda env: (constant(1.0), (), {}),
            lambda path, deterministic: None,
            "load_policy must return a function, but returns None",
        ),
    ],
)
def test_trainers(train, load, told):
    made = types.SimpleNamespace(name="x", train=train, load_policy=load)
    if not told:
        check_trainer(made, Point(), path="runs")
        return
    with pytest.raises(PluginError, match=told):
        check_trainer(made, Point(), path="runs")


class Reader:
    """Reads the mass of a pendulum."""

    suffixes = (".mass",)

    def load(self, path):
        with open(path) as file:
            mass = file.read()
        if not mass:
            raise ModelError(f"{path} is empty")
        return pendulum()[0].build()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, ""),
        ({"suffixes": ".mass"}, "suffixes must be a tuple of suffixes"),
        ({"suffixes": (".x",)}, "suffixes has no '.mass'"),
        ({"load": lambda path: None}, "load must return a brax.System, but returns None"),
        ({"load": lambda path: path.stem}, "load.str. raised AttributeError: 'str' object has no"),
    ],
)
def test_model_formats(tmp_path, changes, told):
    file = tmp_path / "a.mass"
    file.write_text("1.0")
    reader = Reader()
    vars(reader).update(changes)
    if not told:
        check_model_format(reader, file)
        return
    with pytest.raises(PluginError, match=told):
        check_model_format(reader, file)


def test_a_sensor_that_mixes_environments(monkeypatch):
    model, joint = pendulum()
    model.add_sensor("jointpos", ("joint", joint))
    system = model.build()
    mixing = Mixing()
    system = system.replace(sensor_types=(mixing,))
    with pytest.raises(PluginError, match="read returns other numbers in a batch"):
        check_sensor(mixing, system)
    with pytest.raises(PluginError, match="the model has no sensor of this type"):
        check_sensor(plugins.get("sensor", "jointvel"), system)
