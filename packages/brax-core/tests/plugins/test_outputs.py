"""Everything wrong that a plugin's functions return is one sentence, when it is first looked up."""

import re
import types
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from brax import plugins
from brax.actuators import ActuatorType
from brax.builder import ModelBuilder
from brax.colliders import Collider, GeometryType, Touch
from brax.components import Vec3, exp_quat
from brax.env import Env, Randomization, Range, State
from brax.errors import BraxError, ConfigError, PluginError, TrainingError
from brax.integrators import Integrator
from brax.joints import JointType, Twist
from brax.plugins import Registry, Spec, hookimpl
from brax.plugins.outputs import environment, geometry, model_format, trainer
from brax.sensors import SensorType


class Turn(JointType):
    name, q_width, qd_width = "x", 1, 1

    def transform(self, params, q):
        return None, exp_quat(params.axis * q[0])

    def motion_subspace(self, params, q):
        return [Twist(params.axis, None)]

    def coordinates(self, params, pos, rot):
        return (2 * jnp.arctan2(rot.vec.dot(params.axis), rot.w),)


class Block(GeometryType):
    name, size_names, corners = "x", ("half",), 1

    def support(self, shape, direction):
        return direction * shape.size.x

    def signed_distance(self, shape, point):
        return point.x - shape.size.x


class Balls(Collider):
    types, n_contacts = ("sphere", "box"), 1

    def collide(self, a, b):
        return [Touch(a.pos.x - b.pos.x, a.pos, a.axis_z)]


class Motor(ActuatorType):
    name = "x"

    def force(self, params, signal, length, velocity):
        return params.gainprm[0] * signal


class Euler(Integrator[Any]):
    name, order = "x", 1

    def step(self, moves, state, dt):
        return moves.drift(moves.kick(state, dt), dt)


class Angle(SensorType):
    name, objects = "x", ("joint",)

    def read(self, here, asked):
        return jnp.stack([here.q[j][None] for _, j in asked.objects])


def fails(*args):
    raise ValueError("boom")


short = jnp.zeros((5,))
CASES = [
    (Turn, "q_width", 0.5, "q_width must be a number from 0 to 99, got 0.5"),
    (Turn, "transform", fails, "transform of float32[3, 2] raised ValueError: boom ("),
    (
        Turn,
        "transform",
        lambda p, q: p.axis,
        "transform must return a list or tuple of a translation",
    ),
    (Turn, "transform", lambda p, q: (p.axis,), "transform must return 2, but returns 1"),
    (
        Turn,
        "transform",
        lambda p, q: (q[0], None),
        "transform must return a Vec3, but returns float32[",
    ),
    (Turn, "transform", lambda p, q: (p.axis * short, None), "shapes=[(3, 2), (5,)] ("),
    (
        Turn,
        "transform",
        lambda p, q: (Vec3(*[short] * 3), None),
        "returns float32[5]; it must keep",
    ),
    (
        Turn,
        "motion_subspace",
        lambda p, q: [],
        "motion_subspace must return 1, but returns 0: a twist",
    ),
    (
        Turn,
        "motion_subspace",
        lambda p, q: [p.axis],
        "must return a brax.joints.Twist, but returns a V",
    ),
    (
        Turn,
        "motion_subspace",
        lambda p, q: None,
        "a twist for each degree of freedom, but returns No",
    ),
    (
        Turn,
        "coordinates",
        lambda p, pos, rot: rot.w,
        "list or tuple of arrays, but returns float32[3",
    ),
    (Turn, "integrate", lambda q, qd, dt: (*q, *q), "integrate must return 1, but returns 2"),
    (
        Turn,
        "bounds",
        lambda q: [q[0]],
        "bounds must return a list of brax.joints.Bound, but returns a",
    ),
    (
        Turn,
        "drift",
        lambda p, q, qd: None,
        "drift must return a brax.joints.Twist, but returns None",
    ),
    (Block, "size_names", "half", "size_names must be a tuple of at most 3 texts, got 'half'"),
    (Block, "corners", 3, "corners must be one of 0, 1, 2, 4, got 3"),
    (
        Block,
        "support",
        lambda s, d: d.x,
        "support must return a Vec3, but returns float32[5, 3, 2]",
    ),
    (Block, "face", lambda s, d: [d, d], "face must return 1, but returns 2: corners"),
    (
        Block,
        "nearest",
        lambda s, p: p.x,
        "nearest must return a Vec3, but returns float32[5, 3, 2]",
    ),
    (
        Block,
        "signed_distance",
        lambda s, p: None,
        "signed_distance must return an array float32[5, ",
    ),
    (
        Block,
        "signed_distance",
        lambda s, p: p.x[:2],
        "signed_distance of float32[5, 3, 2] returns flo",
    ),
    (Block, "stops_rays", True, "ray of float32[3, 2] raised NotImplementedError: x stops no rays"),
    (Balls, "n_contacts", 2, "n_contacts is 2, but collide returns 1 points"),
    (Balls, "collide", lambda a, b: None, "a list of brax.colliders.Touch, but returns None"),
    (Balls, "collide", lambda a, b: [(a.pos.x, a.pos, a.pos)], "but returns a list of 1"),
    (
        Balls,
        "collide",
        lambda a, b: [Touch(short, a.pos, a.pos)],
        "dist of float32[3, 2] returns flo",
    ),
    (
        Balls,
        "collide",
        lambda a, b: [Touch(a.pos.x, a.pos.x, a.pos)],
        "pos must return a Vec3, but ",
    ),
    (
        Motor,
        "force",
        lambda p, s, x, v: None,
        "force must return an array float32[3, 2], but returns No",
    ),
    (
        Motor,
        "force",
        lambda p, s, x, v: s * jnp.sum(v),
        "force mixes environments by the operation 'reduce_sum' (",
    ),
    (Motor, "force", lambda p, s, x, v: s + v[:, :1], "force mixes environments by the operation"),
    (
        Motor,
        "force",
        lambda p, s, x, v: short,
        "force of float32[3, 2] returns float32[5]; it must",
    ),
    (Motor, "stateful", True, "stateful is True, but it has no rate: its activation would stay"),
    (Motor, "rate", lambda p, c, a, x, v: c, "it has a rate, but stateful is False"),
    (Euler, "order", "2", "order must be a number of at least 1, got '2'"),
    (
        Euler,
        "step",
        lambda m, s, dt: None,
        "step must return the state that its last stage returned",
    ),
    (Euler, "step", lambda m, s, dt: m.rates(s, s), "only Flow has 'rates': set needs_flow = True"),
    (Euler, "step", lambda m, s, dt: m.psuh(s, dt), "no stage 'psuh'. Did you mean 'push'?"),
    (Angle, "width", 0, "width must be a number of at least 1, got 0"),
    (Angle, "objects", ("joints",), "objects must be a tuple of some of joint, tendon, actuator"),
]
KINDS = {
    Turn: "joint_type",
    Block: "geometry_type",
    Balls: "collider",
    Motor: "actuator",
    Euler: "integrator",
    Angle: "sensor",
}


def changed(cls, **changes):
    """Return an object of a class with some attributes replaced."""
    plain = {n: staticmethod(v) if callable(v) else v for n, v in changes.items()}
    return type("Changed", (cls,), plain)()


def module(kind, value, name="x"):
    made: Any = types.ModuleType("acme_plugin")
    made.BRAX_PLUGIN_API = 1
    setattr(made, f"brax_{kind}s", hookimpl(lambda: [Spec(name, value)]))
    return made


def looked_up(kind, value):
    registry = Registry(lambda: [], {})
    registry.register(module(kind, value), "acme")
    return registry.get(kind, "x")


@pytest.mark.parametrize("cls", KINDS)
def test_what_the_wrong_ones_are_made_of_is_right(cls):
    value = changed(cls)
    assert looked_up(KINDS[cls], value) is value


def test_the_condition_of_a_loop_may_look_at_all_environments():
    def halved(params, signal, length, velocity):
        return jax.lax.while_loop(lambda x: jnp.any(x > 1), lambda x: 0.5 * x, signal)

    value = changed(Motor, force=halved)
    assert looked_up("actuator", value) is value


@pytest.mark.parametrize(("cls", "name", "value", "told"), CASES)
def test_a_wrong_output_is_one_sentence(cls, name, value, told):
    kind = KINDS[cls]
    with pytest.raises(PluginError) as caught:
        looked_up(kind, changed(cls, **{name: value}))
    message = str(caught.value)
    assert message.startswith(f"{kind} 'x' of acme (<")
    assert told in message
    assert "\n" not in message


@pytest.fixture
def installed():
    """Register an object for this test, in the registry that all use."""
    names = []

    def install(kind, value, name="x"):
        plugins.register(module(kind, value, name), f"acme-{kind}")
        names.append(f"acme-{kind}")

    yield install
    for name in names:
        plugins.unregister(name)


def test_a_model_with_a_wrong_joint_is_refused(installed):
    installed("joint_type", changed(Turn, motion_subspace=lambda p, q: []))
    model = ModelBuilder()
    model.add_body("a", mass=1.0, inertia=(1, 1, 1))
    model.add_joint("a", "x", "j")
    model.add_sensor("jointpos", ("joint", "j"))  # the joint is the only problem
    with pytest.raises(
        BraxError, match=r"^joint 'j': joint_type 'x' of acme-joint_type .* returns 0"
    ):
        model.build()


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (Angle.read, ""),
        (
            lambda self, here, asked: here.q,
            "width, batch), here [1, 1, batch], but returns float32[1, batch]",
        ),
        (lambda self, here, asked: None, "here [1, 1, batch], but returns None"),
        (fails, "read raised ValueError: boom ("),
    ],
)
def test_a_sensor_is_read_once_when_its_model_is_built(installed, read, told):
    installed("sensor", type("Sensor", (Angle,), {"read": read})())
    model = ModelBuilder()
    model.add_body("a", mass=1.0, inertia=(1, 1, 1))
    model.add_sensor("x", ("joint", model.add_joint("a")))
    if not told:
        model.build()
        return
    with pytest.raises(PluginError, match=rf"^sensor 'x' of acme-sensor .*{re.escape(told)}"):
        model.build()


class Point(Env):
    """Rests, and earns nothing."""

    action_size, backend, reward = 1, "", 0.0

    def reset(self, rng):
        zero = jnp.zeros(())
        return State(None, jnp.zeros(2), zero, zero)

    def step(self, state, action):
        return state.replace(reward=jnp.asarray(self.reward))


class Slider(Point):
    """Has a system whose numbers are randomized as told."""

    def __init__(self, ranges):
        model = ModelBuilder()
        model.add_body("a", mass=1.0, inertia=(1, 1, 1))
        model.add_joint("a", "slide")
        self.sys = model.build()
        self.randomization_fn = Randomization(ranges)


ENVIRONMENTS = [
    (lambda: None, "must return a brax.env.Env, but returns None"),
    (lambda: changed(Point, reward=(0.0,)), "reward is float32[] after reset and float32[1] after"),
    (lambda: changed(Point, reward=0), "reward is float32[] after reset and int32[] after step"),
    (lambda: changed(Point, step=lambda s, a: s.obs), "step must return a brax.env.State, but ret"),
    (lambda: changed(Point, step=fails), "step raised ValueError: boom ("),
    (lambda: changed(Point, reset=lambda rng: None), "reset must return a brax.env.State, but ret"),
    (lambda: Point(), ""),
    (lambda: [][0], "cannot be made: IndexError: list index out of range ("),
    (lambda: Slider({"geom_frictionn": Range(0, 1)}), "Did you mean 'geom_friction'?"),
    (lambda: Slider({"body_mass": Range(0.5, 2)}), ""),
    (
        lambda: changed(Point, sys=None, randomization_fn=lambda sys, rng: sys),
        "randomization_fn: randomization_fn returned one NoneType; it must return two",
    ),
    (
        type("Bound", (Point,), {"randomization_fn": lambda self, sys, rng: sys}),
        "randomization_fn must be a function of (sys, rng), but is a method: write",
    ),
    (lambda: changed(Point, action_size=None), "action_size must be a number of entries, got None"),
]


@pytest.mark.parametrize(("factory", "told"), ENVIRONMENTS)
def test_a_wrong_environment_is_told(installed, factory, told):
    installed("environment", factory)
    if not told:
        environment.checked("x", environment.make("x"))
        return
    with pytest.raises(PluginError, match=rf"^environment 'x' of acme-env.*{re.escape(told)}"):
        environment.checked("x", environment.make("x"))


def test_a_setting_that_an_environment_does_not_take(installed):
    installed("environment", lambda reach=1.0, *, speed=2.0: Point())
    told = (
        r"^environment 'x' takes no setting 'raech'. Did you mean 'reach'\? Settings: reach, speed"
    )
    with pytest.raises(ConfigError, match=told):
        environment.make("x", speed=1.0, raech=3.0, spede=2.0)  # the first one is named


def test_an_environment_may_take_any_setting(installed):
    installed("environment", lambda **settings: Point())
    environment.make("x", raech=3.0)


def still(obs, key):
    return jnp.zeros(1), {}


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ((lambda params: still, (), {}), ""),
        (None, "train must return (make_policy, params, metrics), but returns None"),
        ((still, {}), "train must return (make_policy, params, metrics), but returns a tuple of 2"),
        (((), still, {}), "train: make_policy must be a function of params, but is a tuple of 0"),
        ((lambda params: still, (), None), "train: metrics must be a dictionary, but is None"),
        ((lambda params: None, (), {}), "make_policy must return a function of an observation"),
        ((fails, (), {}), "make_policy(params) raised ValueError: boom ("),
        ((lambda params: lambda o, k: o, (), {}), "the policy must return (action, extras), but "),
        (
            (lambda params: lambda o, k: (o, {}), (), {}),
            "action of shape (1,), but returns float32[2]",
        ),
    ],
)
def test_what_a_trainer_returns_is_checked(installed, returned, told):
    made = types.SimpleNamespace(name="x", train=lambda env: returned, load_policy=fails)
    installed("trainer", made)
    if not told:
        assert trainer.train("x", Point()) is returned
        return
    with pytest.raises(PluginError, match=rf"^trainer 'x' of acme-trainer.*{re.escape(told)}"):
        trainer.train("x", Point())


def test_a_trainer_that_fails_is_named(installed):
    installed("trainer", types.SimpleNamespace(name="x", train=fails, load_policy=fails))
    with pytest.raises(TrainingError, match=r"^trainer 'x' of acme.*: train raised ValueError: bo"):
        trainer.train("x", Point())


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        ({"a": 1, "b": jnp.float32(2.0)}, ""),
        (7, "with a dictionary of scalars, but the metrics are a int"),
        ({"a": 1.0, "b": jnp.zeros(3)}, "a dictionary of scalars, but 'b' is float32[3]"),
    ],
)
def test_what_a_trainer_reports_is_checked(metrics, told):
    assert told in trainer.report_problem(metrics)
    assert bool(told) == bool(trainer.report_problem(metrics))


def test_a_policy_that_is_none_is_told(installed):
    load = lambda path, deterministic: None  # noqa: E731
    installed("trainer", types.SimpleNamespace(name="x", train=fails, load_policy=load))
    with pytest.raises(PluginError, match=r"load_policy must return a function of an observation"):
        trainer.load_policy("x", "runs/a")


def test_a_format_that_returns_no_system_is_told(installed, tmp_path):
    reader = types.SimpleNamespace(suffixes=(".acme",), load=lambda path: None)
    installed("model_format", reader)
    with pytest.raises(PluginError, match=r"^model_format 'x' .*load must return a brax.System, b"):
        model_format.load(plugins.find("model_format", ".acme"), tmp_path)


def test_a_format_that_fails_is_named(installed, tmp_path):
    reader = types.SimpleNamespace(suffixes=(".acme", ".acm"), load=fails)
    installed("model_format", reader)
    told = r"^model_format 'x' of acme.*: load of '.*a.acme' raised ValueError: boom \("
    with pytest.raises(PluginError, match=told):
        model_format.load(plugins.find("model_format", ".acme"), tmp_path / "a.acme")


@pytest.mark.parametrize(
    ("out", "told"),
    [
        (None, ""),
        ((jnp.zeros((3, 3)), jnp.array([[0, 1, 2]])), ""),
        (jnp.zeros((3, 3)), "mesh must return vertices (n, 3) and triangles (m, 3)"),
        ((jnp.zeros((3, 2)), jnp.array([[0, 1, 2]])), "but returns vertices float32[3, 2]"),
        ((jnp.zeros((3, 3)), jnp.zeros((1, 3))), "but returns triangles float32[1, 3]"),
        (
            (jnp.zeros((3, 3)), jnp.array([[0, 1, 3]])),
            "mesh returns 3 vertices, but a triangle of 3",
        ),
    ],
)
def test_a_mesh_is_checked(out, told):
    assert told in geometry.mesh_problem(out)
    assert bool(told) == bool(geometry.mesh_problem(out))
