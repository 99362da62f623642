"""Models as people have them: where they start, and what both sides of `models` do with them."""

import sys
from contextlib import closing

import forward
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from click.testing import CliRunner
from forward import FAST, Forward
from physics import Physics
from robots import heap, robots
from sides import Side
from states import EACH, SIMULATIONS, Robot

SLIDER = (
    '<mujoco><worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 0.5">'
    '<joint name="rail" type="slide" axis="0 0 1"/><geom type="sphere" size="0.1"/></body>'
    '</worldbody><actuator><motor joint="rail" ctrllimited="true" ctrlrange="-2 6"/></actuator>'
    "</mujoco>"
)
LEGGED = (
    '<mujoco><worldbody><body name="trunk" pos="0 0 1"><freejoint name="root"/>'
    '<geom type="sphere" size="0.1"/><body pos="0.1 0 0"><joint name="left_knee"/>'
    '<geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.2"/></body></body></worldbody></mujoco>'
)


def drawn_controls(robot, steps):
    states = robot.start + np.zeros((100, 1))
    return robot.controls("settled", np.random.default_rng(0), states, steps)


def test_a_heap_has_its_boxes_above_the_floor():
    robot = Robot({"xml": heap(5)})
    assert (robot.model.nv, robot.model.ngeom) == (30, 6)
    assert (robot.start[2::7] >= 0.1).all()


def test_every_model_is_a_file_or_a_text():
    assert all(("path" in model) != ("xml" in model) for model in robots().values())


def test_a_robot_without_ground_and_motors_gets_them_and_stands():
    about = {
        "xml": LEGGED,
        "floor": True,
        "stiffness": 40.0,
        "height": 0.3,
        "angles": {"knee": 0.6},
    }
    robot = Robot(about)
    assert robot.start[2] == 0.3
    assert robot.start[7] == robot.centre[0] == 0.6
    assert (robot.model.nu, robot.model.actuator_gainprm[0, 0]) == (1, 40.0)
    # Beyond the angle of the start a servo may move by a tenth of a radian.
    drawn = drawn_controls(robot, 10)
    assert drawn.shape == (100, 10, 1)
    assert 0.5 <= drawn.min() < 0.52 < 0.68 < drawn.max() <= 0.7


def test_a_model_may_start_from_a_keyframe():
    key = '<keyframe><key name="home" qpos="0.2" ctrl="3"/></keyframe></mujoco>'
    robot = Robot({"xml": SLIDER.replace("</mujoco>", key), "key": "home"})
    np.testing.assert_array_equal((robot.start, robot.centre), ([0.2], [3.0]))
    assert drawn_controls(robot, 5).min() >= 2.6


def test_settled_states_lie_and_falling_ones_do_not_touch_the_ground():
    robot = Robot({"xml": SLIDER})
    heights = {k: 0.5 + robot.states(k, threads=1)[:, 1] for k in ("settled", "falling")}
    assert all(h.shape == (SIMULATIONS * EACH,) for h in heights.values())
    assert np.abs(heights["settled"] - 0.1).max() < 0.01
    # After 0.05 to 0.2 s of free fall from 0.5 m, with a random velocity of 0.05 m/s.
    assert 0.25 < heights["falling"].min() < 0.35 < 0.45 < heights["falling"].max() < 0.51
    # A tenth of half the range -2 to 6, around zero.
    assert np.abs(drawn_controls(robot, 10)).max() <= 0.4


CART = (
    '<mujoco><worldbody><body><joint name="x" type="slide" axis="1 0 0"/>'
    '<geom size="0.1" mass="2"/></body></worldbody><actuator><motor joint="x"/></actuator></mujoco>'
)


@pytest.fixture
def braked(tmp_path):
    """Return a cart that is pushed against its velocity, with half a newton at 1 m/s."""
    kernel = [[-np.arctanh(0.5)]]
    np.savez(tmp_path / "cart.npz", mean=[0], std=[1], kernel_0=kernel, bias_0=[0], layers=1)
    return {"xml": CART, "policy": str(tmp_path / "cart.npz")}


def test_a_policy_acts_on_what_it_sees_and_holds_its_controls(braked):
    robot = Robot(braked)
    assert robot.kinds == ["settled", "falling", "trained"]
    # Time, position and velocity: 1 m/s wherever the cart is.
    states = np.array([[0.0, 0.0, 1.0], [0.0, 7.0, 1.0]])
    controls = robot.controls("trained", np.random.default_rng(0), states, 8)
    # Half a newton on 2 kg takes 0.25 m/s^2 * 0.002 s in each of 5 steps.
    later = -np.tanh(np.arctanh(0.5) * (1.0 - 5 * 0.0005))
    expected = np.repeat([-0.5, later], (5, 3))
    np.testing.assert_allclose(controls[..., 0], [expected, expected], rtol=1e-6)


def test_a_robot_without_a_policy_has_no_states_of_one():
    assert Robot({"xml": SLIDER}).kinds == ["settled", "falling"]


def test_the_environment_pays_for_speed_along_x(braked):
    env = Forward(Robot(braked))
    state = env.reset(jax.random.key(0))
    fast = state.replace(pipeline_state=env.pipeline_init(jnp.array([7.0]), jnp.array([1.0])))
    after = jax.jit(env.step)(fast, jnp.array([0.5]))
    # 0.25 m/s^2 for 0.01 s by Euler's method: 1.0005, ..., 1.0025 m/s.
    assert after.metrics["speed"] == pytest.approx(1.0015, abs=1e-4)
    assert after.reward == pytest.approx(1.0015 - 0.1 * 0.25, abs=1e-4)
    np.testing.assert_allclose(after.obs, [1.0025], rtol=1e-5)
    faster = fast.replace(pipeline_state=env.pipeline_init(jnp.zeros(1), jnp.array([9.0])))
    assert jax.jit(env.step)(faster, jnp.zeros(1)).reward == FAST


def test_a_free_robot_has_fallen_below_a_share_of_its_height():
    env = Forward(Robot({"xml": LEGGED, "floor": True, "stiffness": 40.0}))
    state = env.reset(jax.random.key(0))
    step = jax.jit(env.step)
    for height, done in ((0.7, 0.0), (0.6, 1.0)):
        q = jnp.array([0, 0, height, 1, 0, 0, 0, 0])
        low = state.replace(pipeline_state=env.pipeline_init(q, jnp.zeros(7)))
        assert step(low, jnp.zeros(1)).done == done


@pytest.mark.slow
def test_a_policy_is_trained_and_written(monkeypatch, tmp_path):
    small = {"num_envs": 16, "batch_size": 8, "num_minibatches": 2, "num_eval_envs": 4}
    monkeypatch.setattr(forward, "SETTINGS", forward.SETTINGS | small | {"episode_length": 20})
    monkeypatch.setattr(forward, "POLICIES", tmp_path)
    monkeypatch.setattr(forward, "robots", lambda: {"cart": {"xml": CART}})
    done = CliRunner().invoke(forward.main, ["cart", "--steps", "320"], catch_exceptions=False)
    assert "m/s" in done.output
    robot = Robot({"xml": CART, "policy": str(tmp_path / "cart.npz")})
    controls = robot.controls("trained", np.random.default_rng(0), np.zeros((3, 3)), 5)
    assert controls.shape == (3, 5, 1)
    assert np.abs(controls).max() <= 1


class Counted(Physics):
    """A side whose calls take as long as their batch has it."""

    def __init__(self) -> None:
        super().__init__({"xml": SLIDER}, [1, 2, 8], seconds=0.0, threads=1)
        self.calls: list[tuple[str, int, int]] = []

    def advance(self, kind, batch, length):
        self.calls.append((kind, batch, length))


def test_the_first_run_finds_the_fastest_batch_and_later_ones_repeat_it(monkeypatch):
    side = Counted()
    costs = {1: 1.0, 2: 0.4, 8: 0.1}  # of a physics step
    clock = iter(lambda: sum(b * n * costs[b] for _, b, n in side.calls), None)
    monkeypatch.setattr("physics.time.perf_counter", lambda: next(clock))
    monkeypatch.setattr("physics.LONGEST", 25.0)
    found = side.run(10)
    # At the speed of a batch of 2, a call of 8 would take 8 * 10 * 0.4 s, which is too long.
    assert {batch for _, batch, _ in side.calls} == {1, 2}
    assert {kind: run["batch"] for kind, run in found.items()} == {"settled": 2, "falling": 2}
    before = len(side.calls)
    assert side.run(10)["settled"]["steps"] == 20
    assert side.calls[before:] == [("settled", 2, 10), ("falling", 2, 10)]


@pytest.mark.slow
@pytest.mark.parametrize("script", ["physics_worker.py", "rollout_worker.py"])
def test_both_sides_step_the_same_states(script):
    settings = {"model": {"xml": SLIDER}, "batches": [64], "seconds": 0.0, "threads": 1}
    with closing(Side("side", sys.executable, settings, script)) as side:
        assert side.ask("compile")["compile"] >= 0
        found = side.ask("run", length=20)
        assert side.ask("check")["problems"] == []
    assert found["settled"]["batch"] == 64
    assert found["falling"]["steps"] == 64 * 20
