"""Real third-party distributions: one with a plugin of every kind, and three that are broken.

How discovery handles each is tested in brax-core with entry points made up for it; here it is
installed packages, found by the interpreter, and what they bring is used.
"""

import json
import math
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import plugins, sensors
from brax.builder import ModelBuilder
from brax.colliders.dispatch import collider_of_types
from brax.components import Quat, Vec3, exp_quat
from brax.errors import UnknownNameError
from brax.integrators import Moves
from brax.io import mjcf
from brax.io.viewer.scene import describe
from brax.testing import check_collider, check_integrator, check_joint

pytestmark = pytest.mark.usefixtures("third_party")


def example(kind, name):
    assert plugins.specs(kind)[name].distribution == "brax-example-plugin"
    return plugins.get(kind, name)


def test_every_kind_comes_from_the_example_plugin():
    from_example = {
        kind
        for kind in plugins.KINDS
        for registered in plugins.specs(kind).values()
        if registered.distribution == "brax-example-plugin"
    }
    assert from_example == set(plugins.KINDS)


def test_broken_plugins_are_reported_once_each_with_a_remedy(brax):
    done = brax("plugins", "list")
    assert done.returncode == 0
    lines = [line for line in done.stderr.splitlines() if "was left out" in line]
    assert len(lines) == 3
    told = dict(
        line.removeprefix("brax: warning: plugin ").split(" 0.1.0 was left out: ") for line in lines
    )
    assert "No module named 'a_module_that_nobody_has'" in told["brax-broken-import"]
    assert "needs plugin API 2, this is plugin API 1. Update brax-core" in told["brax-future-api"]
    assert (
        "'hinge' of brax-taken-name 0.1.0 is already registered by brax-core"
        in (told["brax-taken-name"])
    )
    for name, line in told.items():
        assert f"set BRAX_PLUGINS_DISABLE={name}." in line


def test_a_taken_name_stays_with_its_owner_and_nothing_else_is_left_behind():
    assert plugins.specs("joint_type")["hinge"].distribution == "brax-core"
    with pytest.raises(UnknownNameError, match=r"'rusty' belongs to brax-taken-name 0.1.0, which"):
        plugins.get("joint_type", "rusty")


def test_doctor_finds_the_three_and_no_fourth(brax):
    done = brax("plugins", "doctor", "--json")
    assert done.returncode == 1
    broken = {entry["distribution"] for entry in json.loads(done.stdout)["broken"]}
    assert broken == {"brax-broken-import", "brax-future-api", "brax-taken-name"}


def test_switches_silence_the_broken_ones(brax):
    done = brax("plugins", "doctor", BRAX_PLUGINS="brax-example-plugin")
    assert (done.returncode, done.stderr) == (0, "")
    done = brax("plugins", "list", "--json", BRAX_PLUGINS_AUTOLOAD="0")
    report = json.loads(done.stdout)
    assert {r["distribution"].split("-")[1] for r in report["registered"]} <= {
        "core",
        "io",
        "envs",
        "agents",
    }


PIPELINES = [
    name for name, spec in plugins.specs("pipeline").items() if spec.distribution == "brax-core"
]

NUT = (
    '<mujoco><option timestep="0.001" gravity="0 0 -9.81"/><worldbody><body name="nut">'
    '<joint name="thread" type="slide" user="0.05"/><inertial pos="0 0 0" mass="2" '
    'diaginertia="0.1 0.1 0.1"/></body></worldbody><custom><tuple name="joint_type:screw">'
    '<element objtype="joint" objname="thread"/></tuple></custom></mujoco>'
)


def nut():
    builder = ModelBuilder()
    builder.set_option(timestep=0.001)
    builder.add_body("nut", mass=2.0, inertia=(0.1, 0.1, 0.1))
    builder.add_joint("nut", "screw", "thread", user=(0.05,))
    return builder.build()


def moved(pipeline, system, qd, steps=100):
    engine = plugins.get("pipeline", pipeline)
    state = engine.init(system, system.init_q, jnp.array(qd))
    return jax.jit(engine.step, static_argnums=3)(system, state, jnp.zeros(0), steps)


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("source", ["Python", "file"])
def test_the_screw_falls_as_it_turns(pipeline, source):
    """From rest, 0.1 s: angular acceleration -m g p / (I + m p^2), travel p per radian."""
    system = nut() if source == "Python" else mjcf.loads(NUT)
    state = moved(pipeline, system, [0.0])
    rate = -2 * 9.81 * 0.05 / (0.1 + 2 * 0.05**2)
    np.testing.assert_allclose(state.qd, [rate * 0.1], rtol=0.01)
    np.testing.assert_allclose(state.q, [rate * 0.1**2 / 2], rtol=0.02)
    np.testing.assert_allclose(state.x.pos[0], [0, 0, 0.05 * state.q[0]], atol=2e-4)


SLED = (
    '<mujoco><option timestep="0.001" gravity="0.5 -1 -9.81"/><worldbody><body name="sled">'
    '<joint name="ice" type="slide" axis="0 0 1"/><inertial pos="0 0 0" mass="2" '
    'diaginertia="0.1 0.1 0.1"/></body></worldbody><custom><tuple name="joint_type:planar">'
    '<element objtype="joint" objname="ice"/></tuple></custom></mujoco>'
)


def sled():
    builder = ModelBuilder()
    builder.set_option(timestep=0.001, gravity=(0.5, -1, -9.81))
    builder.add_body("sled", mass=2.0, inertia=(0.1, 0.1, 0.1))
    builder.add_joint("sled", "planar", "ice", axis=(0, 0, 1))
    return builder.build()


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("source", ["Python", "file"])
def test_the_planar_joint_holds_its_plane(pipeline, source):
    """For 0.1 s: a parabola on the plane, a constant spin, no way out of the plane."""
    system = sled() if source == "Python" else mjcf.loads(SLED)
    state = moved(pipeline, system, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(state.q, [0.1 + 0.0025, 0.2 - 0.005, 0.3], rtol=0.002)
    np.testing.assert_allclose(state.qd, [1.05, 1.9, 3.0], rtol=0.002)
    np.testing.assert_allclose(state.x.pos[0], [*state.q[:2], 0], atol=1e-4)


@pytest.mark.parametrize("name", ["screw", "planar"])
def test_the_joints_keep_the_contract(name):
    check_joint(example("joint_type", name))


def test_the_collider_and_the_integrator_keep_the_contract():
    check_collider(example("collider", "plane-torus"))
    check_integrator(example("integrator", "push_glide_push"))


def test_the_torus_on_the_plane():
    """A ring of 0.5 m, tube 0.1 m, axis tilted by `angle` from the plane's normal."""
    collider = example("collider", "plane-torus")
    from brax.colliders import Shape

    def column(*values):
        return [jnp.full((1, 1), v) for v in values]

    ground = Shape(Vec3(*column(0, 0, 0)), Quat(*column(1, 0, 0, 0)), Vec3(*column(0, 0, 0)))
    for angle in (0.3, 1.0, math.pi / 2):
        rot = exp_quat(Vec3(*column(angle, 0, 0)))
        ring = Shape(Vec3(*column(0, 0, 1)), rot, Vec3(*column(0.5, 0.1, 0)))
        touch, *others = collider.collide(ground, ring)
        assert len(others) == 3
        assert all((other.dist >= touch.dist - 1e-6).all() for other in others)
        np.testing.assert_allclose(touch.dist, 1 - 0.5 * math.sin(angle) - 0.1, atol=1e-6)
        np.testing.assert_allclose(touch.normal, np.array([0, 0, 1.0]).reshape(3, 1, 1), atol=1e-6)
        np.testing.assert_allclose(touch.pos.z, (1 - 0.5 * math.sin(angle) - 0.1) / 2, atol=1e-6)


def test_a_torus_lands_on_the_plane():
    builder = ModelBuilder()
    builder.set_option(timestep=0.002)
    builder.add_body("ring", pos=(0, 0, 0.7), mass=1.0, inertia=(0.1, 0.1, 0.2))
    builder.add_joint("ring", "free")
    builder.add_geom("ring", "torus", size=(0.3, 0.05), quat=(math.sqrt(0.5), math.sqrt(0.5), 0, 0))
    builder.add_geom("world", "plane", size=(1, 1, 1))
    system = builder.build()
    pipeline = plugins.get("pipeline", "spring")
    q = jnp.array([0.0, 0, 0.4, 1, 0, 0, 0])
    state = pipeline.init(system, q, jnp.zeros(6))
    state = jax.jit(pipeline.step, static_argnums=3)(system, state, jnp.zeros(0), 500)
    np.testing.assert_allclose(state.x.pos[0, 2], 0.35, atol=0.01)


SMALL = (0.1, 0.1, 0.1)
"""Sizes of what is nowhere deeper in a thick ring than its middle line, where the slope ends."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("plane", ((0.1, 0.08), ())),
        *((n, ((0.8, 0.4), SMALL)) for n in ("sphere", "capsule", "box", "cylinder", "ellipsoid")),
        ("torus", ((0.8, 0.4), (0.1, 0.05))),
    ],
)
def test_what_follows_from_the_torus_s_distance_keeps_the_contract(name, sizes):
    kinds = example("geometry_type", "torus"), plugins.get("geometry_type", name)
    collider = collider_of_types(*kinds)
    assert collider is not None
    check_collider(collider, sizes=sizes)


def ring(height, quat, *others):
    """Return a free ring of 0.3 m, tube 0.05 m, after 1.5 s among other geoms."""
    builder = ModelBuilder()
    builder.set_option(timestep=0.005, viscosity=0.02)
    builder.add_body("ring", pos=(0, 0, height), quat=quat, mass=1.0, inertia=(0.05, 0.05, 0.09))
    builder.add_joint("ring", "free")
    builder.add_geom("ring", "torus", size=(0.3, 0.05))
    for geom in others:
        builder.add_geom("world", **geom)
    system, pipeline = builder.build(), plugins.get("pipeline", "generalized")
    state = pipeline.init(system, system.init_q, jnp.zeros(6))
    return system, jax.jit(pipeline.step, static_argnums=3)(system, state, jnp.zeros(0), 300)


@pytest.mark.slow
def test_a_torus_rests_flat_on_a_box_at_its_minor_radius():
    """By its distance alone: nothing is registered for a torus and a box."""
    system, state = ring(
        0.1, (1, 0, 0, 0), {"type": "box", "size": (1, 1, 0.02), "pos": (0, 0, -0.02)}
    )
    assert system.collisions[0].collider.types == ("torus", "box")
    np.testing.assert_allclose(state.x.pos[0, 2], 0.05, atol=1e-3)
    np.testing.assert_allclose(state.qd, 0, atol=1e-2)
    assert abs(state.x.rot[0, 1]) + abs(state.x.rot[0, 2]) < 1e-2


@pytest.mark.slow
def test_a_ring_hangs_on_a_peg():
    """A ring hangs upright on a peg through its hole.

    Its centre is as far below the peg's axis as the hole's radius exceeds the peg's.
    """
    upright = (math.sqrt(0.5), math.sqrt(0.5), 0, 0)
    peg = {"type": "capsule", "size": (0.08, 0.5), "quat": upright, "pos": (0, 0, 1)}
    _, state = ring(0.84, upright, peg)
    np.testing.assert_allclose(state.x.pos[0, 2], 1 + 0.08 - (0.3 - 0.05), atol=2e-3)
    np.testing.assert_allclose(state.x.pos[0, 0], 0, atol=1e-2)
    np.testing.assert_allclose(state.qd, 0, atol=2e-2)


def test_the_viewer_draws_a_torus_by_its_mesh():
    builder = ModelBuilder()
    builder.add_body("ring", mass=1.0, inertia=(0.05, 0.05, 0.09))
    builder.add_joint("ring", "free")
    builder.add_geom("ring", "torus", size=(0.3, 0.05))
    (geom,) = describe(builder.build())["geoms"]
    reach = np.hypot(*np.array(geom["mesh"]["vertices"])[:, :2].T)
    np.testing.assert_allclose((reach.min(), reach.max()), (0.25, 0.35), atol=1e-6)


class Oscillator(Moves[Any]):
    """An oscillator of unit mass and stiffness."""

    def kick(self, state, dt):
        return state[0], state[1] - dt * state[0]

    def drift(self, state, dt):
        return state[0] + dt * state[1], state[1]


def test_the_integrator_is_of_second_order():
    """Harmonic oscillator: the error falls by four when the step is halved.

    After one second, since after whole periods that of semi-implicit Euler does too.
    """
    integrator = example("integrator", "push_glide_push")

    def error(n):
        state, dt = (1.0, 0.0), 1 / n
        for _ in range(n):
            state = integrator.step(Oscillator(), state, dt)
        return math.hypot(state[0] - math.cos(1), state[1] + math.sin(1))

    assert 3.8 < error(100) / error(200) < 4.2


def test_the_integrator_by_name_in_a_model():
    builder = ModelBuilder()
    builder.set_option(integrator="push_glide_push", timestep=0.01)
    builder.add_body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1))
    builder.add_joint("ball", "free")
    system = builder.build()
    pipeline = plugins.get("pipeline", "spring")
    state = pipeline.init(system, system.init_q, jnp.zeros(6))
    state = jax.jit(pipeline.step, static_argnums=3)(system, state, jnp.zeros(0), 100)
    # exact for constant acceleration, where semi-implicit Euler is off by g dt / 2
    np.testing.assert_allclose(state.x.pos[0, 2], -9.81 / 2, rtol=1e-5)


def test_slow_motion_is_half_the_time():
    """Free fall: n steps of slow motion are n steps of half the size."""
    builder = ModelBuilder()
    builder.set_option(timestep=0.01)
    builder.add_body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1))
    builder.add_joint("ball", "free")
    system = builder.build()
    pipeline = example("pipeline", "slow_motion")
    state = pipeline.init(system, system.init_q, jnp.zeros(6))
    state = jax.jit(pipeline.step, static_argnums=3)(system, state, jnp.zeros(0), 100)
    np.testing.assert_allclose(state.xd.vel[0, 2], -9.81 * 0.5, rtol=1e-5)


def test_the_propeller_pushes_with_the_square():
    builder = ModelBuilder()
    builder.set_option(timestep=0.001, gravity=(0, 0, 0))
    builder.add_body("cart", mass=2.0, inertia=(0.1, 0.1, 0.1))
    rail = builder.add_joint("cart", "slide", axis=(1, 0, 0))
    builder.add_actuator(rail, "propeller", gainprm=(3.0,))
    system = builder.build()
    pipeline = plugins.get("pipeline", "spring")
    step = jax.jit(pipeline.step, static_argnums=3)
    start = pipeline.init(system, jnp.zeros(1), jnp.zeros(1))
    for ctrl in (0.5, -2.0):
        state = step(system, start, jnp.array([ctrl]), 100)
        np.testing.assert_allclose(state.qd, [3 * ctrl * abs(ctrl) / 2 * 0.1], rtol=1e-3)


def test_the_motors_current_follows_its_voltage():
    builder = ModelBuilder()
    builder.set_option(timestep=0.001, gravity=(0, 0, 0))
    builder.add_body("rotor", mass=1.0, inertia=(0.01, 0.01, 0.01))
    axle = builder.add_joint("rotor", damping=0.1)
    builder.add_actuator(axle, "dc_motor", gainprm=(0.5,), dynprm=(2.0, 0.1))
    system = builder.build()
    for name in ("spring", "positional", "generalized"):
        pipeline = plugins.get("pipeline", name)
        step = jax.jit(pipeline.step, static_argnums=3)
        state = pipeline.init(system, jnp.zeros(1), jnp.zeros(1))
        np.testing.assert_array_equal(state.activation, [0.0])
        # L di/dt = V at rest, less what the resistance takes: i = V / R (1 - exp(-R t / L))
        first = step(system, state, jnp.array([12.0]), 1)
        np.testing.assert_allclose(first.activation, 6 * (1 - np.exp(-0.02)), rtol=1e-5)
        # at last k i = b w and V = R i + k w: w = V k / (k k + R b), i = b w / k
        last = step(system, state, jnp.array([12.0]), 3000)
        np.testing.assert_allclose(last.qd, [12 * 0.5 / 0.45], rtol=1e-3)
        np.testing.assert_allclose(last.activation, [0.1 * 12 / 0.45], rtol=1e-3)


def test_the_sensor_reads_the_power_of_a_joint():
    builder = ModelBuilder()
    builder.add_body("rotor", mass=1.0, inertia=(0.01, 0.01, 0.01))
    axle = builder.add_joint("rotor")
    builder.add_actuator(axle, gear=3.0)
    builder.add_sensor("jointpower", ("joint", axle), "power")
    system = builder.build()
    state = plugins.get("pipeline", "spring").init(system, jnp.zeros(1), jnp.array([2.0]))
    read = sensors.sensors(system, state, jnp.array([0.5]))[sensors.slices(system)["power"]]
    np.testing.assert_allclose(read, [3 * 0.5 * 2], rtol=1e-6)


def test_the_trainer_learns_the_environment(tmp_path):
    """Random search beats doing nothing, and its policy comes back from the run's directory."""
    environment = example("environment", "example_cart")()
    trainer = example("trainer", "random_search")
    make_policy, params, metrics = trainer.train(environment, seed=1, run_dir=tmp_path)
    # doing nothing stays about half a metre off: a reward of about a half a step
    assert metrics["eval/episode_reward"] > 75
    obs = jnp.array([0.5, -0.2])
    action, _ = make_policy(params)(obs, jax.random.key(0))
    again, _ = trainer.load_policy(tmp_path)(obs, jax.random.key(0))
    np.testing.assert_array_equal(action, again)


def test_the_model_format_and_the_command(brax, tmp_path):
    file = tmp_path / "clock.pendulum"
    file.write_text('{"length": 0.5, "mass": 1.25}')
    done = brax("weigh", str(file))
    assert (done.returncode, done.stdout) == (0, "1.25 kg\n"), done.stderr
    (tmp_path / "clock.pendulumm").write_text("")
    done = brax("weigh", str(tmp_path / "clock.pendulumm"))
    assert done.returncode == 2
    assert (
        "unknown suffix '.pendulumm'" in done.stderr and "Did you mean '.pendulum'?" in done.stderr
    )
    file.write_text('{"length": 0.5}')
    done = brax("weigh", str(file))
    assert done.returncode == 2
    assert "a pendulum needs mass" in done.stderr


def test_the_metric_logger_writes_the_last_report(tmp_path):
    logger = example("metric_logger", "latest")(tmp_path)
    logger.write(10, {"reward": 1.5, "old": 1.0})
    logger.write(20, {"reward": 2.5})
    logger.close()
    assert (tmp_path / "latest.txt").read_text() == "step 20\nreward 2.5\n"


def test_the_renderer_draws_where_links_are():
    made = ModelBuilder()
    for name, x in (("a", 0.0), ("b", 0.1)):
        made.add_body(name, pos=(x, 0, 1), mass=1.0, inertia=(0.1, 0.1, 0.1))
        made.add_joint(name, "free")
    sys = made.build()
    state = plugins.get("pipeline", "spring").init(sys, sys.init_q, jnp.zeros(12))
    picture = example("renderer", "chart")(sys, state, 20, 40)
    assert np.argwhere(picture[..., 0]).tolist() == [[10, 20], [10, 30]]


def test_looking_up_again_warns_no_more():
    plugins.names("environment")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plugins.names("environment")
