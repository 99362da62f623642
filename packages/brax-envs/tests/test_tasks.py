"""Rewards, ends and starts of the environments, against arithmetic."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import envs
from brax.envs import grasp, inverted_double_pendulum, reacher, ur5e
from brax.envs.goal import goal, placed
from brax.envs.inverted_double_pendulum import InvertedDoublePendulum
from brax.errors import ConfigError, ShapeError


def task(name: str, **settings: Any) -> Any:
    """Return an environment with the attributes of its own class."""
    return envs.get_environment(name, **settings)


def lying(env, q=(), qd=()):
    """Return a state with these first coordinates and velocities."""
    state = jax.eval_shape(env.reset, jax.random.key(0)).pipeline_state
    state = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), state)
    return state.replace(
        q=state.q.at[: len(q)].set(jnp.array(q, float)),
        qd=state.qd.at[: len(qd)].set(jnp.array(qd, float)),
    )


@pytest.mark.parametrize("name", ["hopper", "walker2d"])
def test_when_planar_bodies_have_fallen(name):
    """Height, pitch and the fastest velocity, and whether that ends the hopper and the walker."""
    env = task(name)
    table = [
        (1.2, 0.0, 0.0, 0, 0),
        (0.75, 0.0, 0.0, 0, 1),
        (0.65, 0.0, 0.0, 1, 1),
        (2.1, 0.0, 0.0, 0, 1),
        (1.2, 0.25, 0.0, 1, 0),
        (1.2, -0.25, 0.0, 1, 0),
        (1.2, 1.1, 0.0, 1, 1),
        (1.2, 0.0, 101.0, 1, 0),
        (np.nan, 0.0, 0.0, 1, 1),
        (1.2, np.nan, 0.0, 1, 1),
    ]
    state = lying(env)
    free = task(name, terminate_when_unhealthy=False, healthy_reward=3.0)
    for height, pitch, speed, *over in table:
        now = state.replace(
            q=state.q.at[1].set(height).at[2].set(pitch), qd=state.qd.at[4].set(speed)
        )
        fallen = over[name == "walker2d"]
        assert env.is_over(now) == fallen, (height, pitch, speed)
        assert not free.is_over(now)
        ctrl = jnp.zeros(env.action_size)
        assert free.rewards(now, now, ctrl)["reward_healthy"] == (0 if fallen else 3)


@pytest.mark.parametrize(
    "name, entry, table",
    [
        ("humanoid", 2, {0.9: 1, 1.1: 0, 1.9: 0, 2.1: 1, np.nan: 1}),
        ("inverted_pendulum", 1, {0.0: 0, 0.19: 0, -0.21: 1, 0.21: 1, np.nan: 1}),
        ("halfcheetah", 1, {-1.0: 0, 5.0: 0}),
    ],
)
def test_when_one_coordinate_ends_it(name, entry, table):
    env = task(name)
    state = lying(env)
    for value, over in table.items():
        assert env.is_over(state.replace(q=state.q.at[entry].set(value))) == over, value


def poles(lower, upper, x=0.0, rates=(0.0, 0.0)):
    """Return the environment and a state of it; the upper angle is relative to the lower pole."""
    env = task("inverted_double_pendulum")
    return env, env.pipeline_init(jnp.array([x, lower, upper]), jnp.array([0.0, *rates]))


@pytest.mark.parametrize("lower, upper, x", [(0.0, 0.0, 0.3), (0.4, -0.9, -0.2), (-1.0, 0.3, 0.0)])
def test_tip_of_the_double_pendulum(lower, upper, x):
    _, state = poles(lower, upper, x)
    expected = [
        x + 0.6 * np.sin(lower) + 0.6 * np.sin(lower + upper),
        0,
        0.6 * np.cos(lower) + 0.6 * np.cos(lower + upper),
    ]
    np.testing.assert_allclose(inverted_double_pendulum.tip(state), expected, atol=1e-6)


@pytest.mark.parametrize("angle, over", [(0.0, 0), (0.58, 0), (0.59, 1), (np.nan, 1)])
def test_when_the_double_pendulum_has_fallen(angle, over):
    """Straight, its tip is at 1.2 cos: 1 m at 0.5857 rad."""
    env, state = poles(angle, 0.0)
    assert env.is_over(state) == over


def test_reward_of_the_double_pendulum():
    env, state = poles(0.1, -0.1, 0.5, (2.0, -3.0))
    terms = env.rewards(state, state, jnp.ones(1))
    x, z = 0.5 + 0.6 * np.sin(0.1), 0.6 * np.cos(0.1) + 0.6
    assert float(terms["reward_alive"]) == 10
    assert float(terms["reward_distance"]) == pytest.approx(-(0.01 * x**2 + (z - 2) ** 2), rel=1e-5)
    assert float(terms["reward_velocity"]) == pytest.approx(-(1e-3 * 4 + 5e-3 * 9), rel=1e-5)
    assert (
        InvertedDoublePendulum(healthy_reward=2.0).rewards(state, state, jnp.zeros(1))[
            "reward_alive"
        ]
        == 2
    )


def test_the_reachers_tip_moves_as_its_velocity_says():
    """Its velocity is the difference of its places a moment before and after."""
    env = task("reacher")
    q, qd = np.array([0.7, -1.3, 0.1, 0.05]), np.array([3.0, -5.0, 0.0, 0.0])
    h = 1e-3
    states = [env.pipeline_init(jnp.array(q + t * qd), jnp.array(qd)) for t in (-h, 0, h)]
    before, place, after = (np.asarray(reacher.tip(env.sys, s)) for s in states)
    now, moved = states[1], after - before
    # A third derivative of 0.2 m * (5 / s)^3 leaves 4e-6 m/s, single precision 2e-5.
    np.testing.assert_allclose(reacher.tip_velocity(env.sys, now), moved / (2 * h), atol=1e-4)
    x = 0.1 * np.cos(0.7) + 0.11 * np.cos(-0.6)
    y = 0.1 * np.sin(0.7) + 0.11 * np.sin(-0.6)
    np.testing.assert_allclose(place, [x, y, 0.01], atol=1e-6)
    terms = env.rewards(now, now, jnp.array([0.5, -1.0]))
    miss = np.hypot(x - 0.1, y - 0.05)
    assert float(terms["reward_dist"]) == pytest.approx(-miss, rel=1e-4)
    assert float(terms["reward_ctrl"]) == pytest.approx(-1.25)


def bent(target):
    """Angles of the reacher at which its tip is at a target (2,), the elbow's positive."""
    upper, lower = 0.1, 0.11
    cosine = (target @ target - upper**2 - lower**2) / (2 * upper * lower)
    elbow = jnp.arccos(jnp.clip(cosine, -1, 1))  # within 0.01 m of the root it cannot come
    inner = jnp.arctan2(lower * jnp.sin(elbow), upper + lower * jnp.cos(elbow))
    shoulder = jnp.arctan2(target[1], target[0]) - inner
    return jnp.array([jnp.arctan2(jnp.sin(shoulder), jnp.cos(shoulder)), elbow])


@pytest.mark.slow
def test_the_reacher_can_be_solved_and_noise_costs_the_most():
    """A controller that turns the joints at 8 rad/s earns better than -15 in 1000 steps.

    Noise on the action costs its variance, twice, in every step: 20 where it deviates by 0.1, and
    then what the controller does against it.
    """
    env = task("reacher")

    def episode(key, deviation):
        state = env.reset(key)
        goal = bent(jnp.array(state.pipeline_state.q[2:]))

        def step(state, key):
            q, qd = state.pipeline_state.q[:2], state.pipeline_state.qd[:2]
            torque = (8.0**2 * (goal - q) - 2 * 8.0 * qd) / 200
            noise = deviation * jax.random.normal(key, (2,))
            state = env.step(state, jnp.clip(torque + noise, -1, 1))
            return state, (state.reward, state.metrics["reward_ctrl"])

        return jax.lax.scan(step, state, jax.random.split(key, 1000))[1]

    keys = jax.random.split(jax.random.key(0), 64)
    run = jax.jit(jax.vmap(episode, (0, None)))
    quiet, loud = (run(keys, deviation) for deviation in (0.0, 0.1))
    assert -8 < float(quiet[0].sum(1).mean()) < -4
    assert float((quiet[1] - loud[1]).sum(1).mean()) > 0.98 * 1000 * 2 * 0.1**2
    assert float(loud[0].sum(1).mean()) < -15


@pytest.mark.parametrize(
    "name, forward, weight, cost",
    [
        ("halfcheetah", "reward_run", 1, 0.1),
        ("hopper", "reward_forward", 1, 1e-3),
        ("swimmer", "reward_fwd", 1, 1e-4),
        ("walker2d", "reward_forward", 1, 1e-3),
    ],
)
def test_runners_earn_their_speed(name, forward, weight, cost):
    env = task(name)
    before, after = lying(env, [0.5, 1.2]), lying(env, [0.6, 1.2])
    ctrl = jnp.linspace(-1, 1, env.action_size)
    terms = env.rewards(before, after, ctrl)
    assert float(terms[forward]) == pytest.approx(weight * 0.1 / float(env.dt), rel=1e-5)
    assert float(terms["reward_ctrl"]) == pytest.approx(-cost * np.sum(np.asarray(ctrl) ** 2))
    assert float(env.extras(before, after)["x_position"]) == pytest.approx(0.6)


def test_the_acrobat_earns_its_height():
    env = task("acrobot")
    for angles, height in [((0, 0), -2), ((np.pi, 0), 2), ((np.pi / 2, -np.pi / 2), -1)]:
        state = env.pipeline_init(jnp.array(angles, float), jnp.zeros(2))
        terms = env.rewards(state, state, jnp.array([-0.5]))
        assert float(terms["reward_height"]) == pytest.approx(height / 2, abs=1e-5)
        assert float(terms["reward_ctrl"]) == pytest.approx(-0.25e-3)


@pytest.mark.slow
def test_told_angles_are_reached():
    """In a second the servos, of 10 rad/s and more, have turned the joints to where they should."""
    env = task("reacherangle")
    state = jax.jit(env.reset)(jax.random.key(0))
    step = jax.jit(env.step)
    for _ in range(50):
        state = step(state, jnp.array([0.5, -0.25]))
    np.testing.assert_allclose(state.pipeline_state.q[:2], [np.pi / 2, -0.75], atol=0.01)


@pytest.fixture(scope="module")
def arm():
    """Return the arm, one step of it under zero action, and a state to step from."""
    env = task("ur5e")
    state = jax.jit(env.reset)(jax.random.key(0))
    return env, jax.jit(lambda s: env.step(s, jnp.zeros(6))), state


def aimed(state, target):
    """Return the state with the target elsewhere."""
    return state.replace(pipeline_state=placed(state.pipeline_state, target))


@pytest.mark.slow
def test_a_target_that_is_hit_appears_elsewhere(arm):
    env, step, state = arm
    place = ur5e.tool(env.sys, state.pipeline_state)
    away = place + jnp.array([0.0, 0.3, -0.4])
    missed = step(aimed(state, away))
    np.testing.assert_allclose(goal(missed.pipeline_state), away, atol=1e-6)
    np.testing.assert_allclose(missed.obs[-3:], [0, 0.3, -0.4], atol=1e-5)
    assert missed.metrics["reward_hit"] == 0
    hit = step(aimed(state, place + jnp.array([0.0, 0.01, 0.0])))
    assert hit.metrics["reward_hit"] == 1
    new = goal(hit.pipeline_state)
    far = np.linalg.norm(new - jnp.array(ur5e.SHOULDER))
    assert 0.3 <= far <= 0.8 and new[2] >= ur5e.SHOULDER[2]
    np.testing.assert_allclose(hit.pipeline_state.x.pos[-1], new)
    np.testing.assert_allclose(hit.obs[-3:], new - place, atol=1e-5)
    again = step(aimed(hit, place))
    assert not np.allclose(goal(again.pipeline_state), new)


@pytest.mark.slow
def test_the_way_to_the_target_is_earned(arm):
    env, _, state = arm
    before = aimed(state, jnp.array([0.6, 0.0, 0.5])).pipeline_state
    after = env.pipeline_init(before.q.at[0].add(0.1), before.qd)
    far, near = (
        np.linalg.norm(ur5e.tool(env.sys, s) - np.array([0.6, 0, 0.5])) for s in (before, after)
    )
    terms = env.rewards(before, after, jnp.full(6, 0.5))
    assert float(terms["reward_approach"]) == pytest.approx(far - near, abs=1e-6) and far != near
    assert float(terms["reward_ctrl"]) == pytest.approx(-1e-3 * 1.5)


@pytest.mark.slow
def test_reward_and_targets_of_fetch():
    env = task("fetch")
    before, after = (lying(env, (x, 0, 0.4)) for x in (0.0, 0.3))

    def at(state, x):
        """Return a state with the trunk upright at x, and a target at (3, 4)."""
        turned = state.x.rot.at[0].set(jnp.array([1.0, 0, 0, 0]))
        frames = state.x.replace(pos=state.x.pos.at[0].set(jnp.array([x, 0, 0.4])), rot=turned)
        return placed(state.replace(x=frames), jnp.array([3.0, 4.0, 0.0]))

    before, after = at(before, 0.0), at(after, 0.3)
    terms = env.rewards(before, after, jnp.zeros(10))
    assert float(terms["reward_approach"]) == pytest.approx(5 - np.hypot(2.7, 4), rel=1e-5)
    assert float(terms["reward_height"]) == pytest.approx(0.1 * 0.02 * 0.4, rel=1e-5)
    assert float(terms["reward_upright"]) == pytest.approx(0.1 * 0.02, rel=1e-5)
    assert not env.is_hit(after) and env.is_hit(placed(after, jnp.array([0.3, 0.45, 0.0])))
    for lean, over in ((1.0, 0), (1.1, 1), (np.nan, 1)):
        turn = jnp.array([np.cos(lean / 2), np.sin(lean / 2), 0, 0])
        fallen = after.replace(x=after.x.replace(rot=after.x.rot.at[0].set(turn)))
        assert env.is_over(fallen) == over
    drawn = env.target(jax.random.key(3), after)
    assert float(jnp.linalg.norm(drawn - jnp.array([0.3, 0, 0]))) == pytest.approx(4, rel=1e-5)


@pytest.mark.slow
def test_reward_of_grasp():
    """A ball below one fingertip, which it touches, is carried when it is off the floor."""
    env = task("grasp")
    start = jax.jit(env.pipeline_init)(env.sys.init_q, jnp.zeros(env.sys.qd_size()))
    tip = start.x.pos[grasp.BALL] - grasp.tips(env.sys, start)[0]

    def at(ball):
        frames = start.x.replace(pos=start.x.pos.at[grasp.BALL].set(ball))
        return placed(start.replace(x=frames), tip + jnp.array([0.0, 0.0, 0.3]))

    higher, lower = at(tip - jnp.array([0, 0, 0.058])), at(tip - jnp.array([0, 0, 0.078]))
    rise = env.rewards(lower, higher, None)
    assert float(rise["reward_carry"]) == pytest.approx(5 * 0.02, rel=1e-4)
    assert float(rise["reward_touch"]) == pytest.approx(0.1 * 0.02)
    assert env.rewards(higher, lower, None)["reward_touch"] == 0
    palm = [np.linalg.norm(s.x.pos[grasp.PALM] - s.x.pos[grasp.BALL]) for s in (lower, higher)]
    assert float(rise["reward_approach"]) == pytest.approx(palm[0] - palm[1], rel=1e-4)
    assert float(rise["reward_near"]) == pytest.approx(0.02 / (1 + palm[1] / 0.1), rel=1e-4)
    floor, beside = (at(jnp.array([x, 0.0, 0.045])) for x in (0.1, 0.0))
    assert env.rewards(floor, beside, None)["reward_carry"] == 0
    # The target is 0.3 m above the fingertip, so 0.358 m above the ball; on the floor 0.6 m count.
    thrown, fallen = env.rewards(beside, higher, None), env.rewards(higher, floor, None)
    assert float(thrown["reward_carry"]) == pytest.approx(5 * (0.6 - 0.358), rel=1e-4)
    assert float(fallen["reward_carry"]) == -float(thrown["reward_carry"])
    assert not env.is_hit(higher) and env.is_hit(placed(higher, higher.x.pos[grasp.BALL]))


def test_starts_of_grasp():
    """In half of the episodes the ball is in the closed hand, where targets are."""
    env = task("grasp")
    q, qd = jax.vmap(env.start)(*jax.random.split(jax.random.key(0), (2, 512)))
    ball = np.asarray(q[:, 19:22])
    held = ball[:, 2] > 0.1
    assert 0.43 < held.mean() < 0.57 and not qd.any()
    assert np.abs(ball[:, :2]).max() <= 0.25 and (ball[~held, 2] == np.float32(0.045)).all()
    assert ball[held, 2].min() >= 0.15 and ball[held, 2].max() <= 0.35
    assert (q[~held, :19] == env.sys.init_q[:19]).all()
    # The palm is 0.3 m above the floor at zero, and 5.5 cm above a ball that it holds.
    palm = q[held, :3] + np.array([0, 0, 0.3])
    np.testing.assert_allclose(
        palm - ball[held], np.tile([0, 0, 0.055], (held.sum(), 1)), atol=1e-6
    )


def test_an_action_of_zero_holds_the_open_hand_of_grasp():
    sys = task("grasp").sys
    np.testing.assert_allclose(sys.actuator.ctrl_range.mean(axis=1), sys.init_q[:19], atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("held", [False, True])
def test_a_hand_that_closes_around_the_ball_carries_it_from_target_to_target(held):
    """A script lowers the open hand over the ball, closes it, and moves the palm.

    Where the closed hand holds the ball from the start, the script only moves the palm.
    """
    env = task("grasp", held_share=float(held))
    low, high = env.sys.actuator.ctrl_range.T

    def act(state, step):
        physics = state.pipeline_state
        ball, palm = physics.x.pos[grasp.BALL], physics.x.pos[grasp.PALM]
        # A palm whose controls are zero is 0.3 m above the floor.
        above = ball.at[2].set(jnp.where(step < 40, 0.0, -0.15))
        carrying = palm + grasp.to_target(physics) - jnp.array([0, 0, 0.3])
        opened, closed = jnp.array([0, -0.4, 0.1, 0.2]), jnp.array([0, 0.1, 0.6, 0.4])
        step = jnp.where(held, 130, step)
        fingers = jnp.tile(jnp.where(step < 80, opened, closed), 4)
        ctrl = jnp.concatenate([jnp.where(step < 130, above, carrying), fingers])
        return jnp.clip(2 * (ctrl - low) / (high - low) - 1, -1, 1)

    def advance(state, step):
        new = jax.vmap(env.step)(state, jax.vmap(act, (0, None))(state, step))
        return new, (new.metrics["reward_hit"] / env.parameters.hit_reward, new.done)

    starts = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(0), 8))
    _, (hits, done) = jax.jit(lambda s: jax.lax.scan(advance, s, jnp.arange(300)))(starts)
    assert not done.any()
    assert hits.sum(axis=0).min() >= 3


@pytest.mark.parametrize(
    "y, z, over",
    [
        (0.59, 0.05, 0),
        (-0.61, 0.05, 1),
        (np.nan, 0.05, 1),
        (0, 0.59, 0),
        (0, 0.61, 1),
        (0, -0.01, 1),
    ],
)
def test_when_the_ball_is_out_of_reach(y, z, over):
    env = task("grasp")
    state = lying(env)
    ball = state.x.replace(pos=state.x.pos.at[grasp.BALL].set(jnp.array([0.1, y, z])))
    assert env.sys.link_names[grasp.BALL] == "ball" and env.sys.link_names[grasp.PALM] == "palm"
    assert env.is_over(state.replace(x=ball)) == over


@pytest.mark.slow
def test_starts_of_reacher_and_pusher():
    keys = [jax.random.split(jax.random.key(k), 512) for k in (0, 1)]
    reach, push = (task(name) for name in ("reacher", "pusher"))
    q, qd = jax.jit(jax.vmap(reach.start))(*keys)
    far = np.linalg.norm(q[:, 2:], axis=1)
    assert 0.19 < far.max() <= 0.2 and np.abs(q[:, :2]).max() <= 0.1
    assert np.mean(far) == pytest.approx(0.1, abs=0.01)
    assert np.abs(qd[:, :2]).max() <= 0.005 and not qd[:, 2:].any()
    q, qd = jax.jit(jax.vmap(push.start))(*keys)
    far = np.linalg.norm(q[:, 7:9], axis=1)
    assert 0.17 - 1e-6 < far.min() < 0.171 and far.max() < np.hypot(0.3, 0.2) + 1e-6
    assert q[:, 7].max() <= 0 and not q[:, :7].any() and not q[:, 9:].any() and not qd[:, 7:].any()


@pytest.mark.parametrize(
    "name, duration", [("hopper", 0.008), ("reacher", 0.02), ("swimmer", 0.04)]
)
def test_a_step_lasts_as_long_on_every_pipeline(name, duration):
    for backend in ("generalized", "positional", "spring"):
        assert float(task(name, backend=backend).dt) == pytest.approx(duration)
    assert float(task(name, n_frames=1).dt) < duration


@pytest.mark.slow
@pytest.mark.parametrize("name", ["acrobot", "reacher"])
def test_an_action_does_the_same_on_every_pipeline(name):
    """Rates after five steps, less those without an action: of the same motors and inertias."""
    rates = []
    for backend in ("generalized", "positional", "spring"):
        env = task(name, backend=backend)

        @jax.jit
        def run(action, env=env):
            start = env.pipeline_init(env.sys.init_q, jnp.zeros(env.sys.qd_size()))
            step = lambda s, _: (env.pipeline_step(s, action), None)  # noqa: E731
            return jax.lax.scan(step, start, length=5)[0].qd

        pushed = jnp.linspace(0.2, -0.2, env.action_size)
        rates.append(run(pushed) - run(0 * pushed))
    assert np.abs(rates[0]).max() > 0.5
    for other in rates[1:]:  # physics steps of half the length differ by 0.3 %
        np.testing.assert_allclose(other, rates[0], atol=0.01 * np.abs(rates[0]).max())


def test_a_wrong_action_is_named():
    env = task("pusher")
    state = jax.eval_shape(env.reset, jax.random.key(0))
    with pytest.raises(ShapeError, match="act has 3 entries; 'Pusher' has 7 actuators"):
        jax.eval_shape(env.step, state, jnp.zeros(3))


def test_fast_earns_its_position():
    env = task("fast")

    def earned(action):
        state = env.reset(jax.random.key(0))

        def step(state, _):
            state = env.step(state, jnp.full(1, action))
            return state, state.reward

        return jax.lax.scan(step, state, None, length=128)[1].sum()

    np.testing.assert_allclose(earned(0.1), 0.02**2 * 128 * 129 * 130 / 6, rtol=1e-5)
    assert earned(-0.1) == 0.0


def test_fast_observes_what_is_asked_for():
    assert task("fast").observation_size == 2
    both = task("fast", asymmetric_obs=True)
    assert both.observation_size == {"state": 2, "privileged_state": 4}
    assert task("fast", obs_mode="dict_state").observation_size == {"state": 2}
    views = {"pixels/view_0": (8, 8, 3), "pixels/view_1": (8, 8, 3)}
    seen = task("fast", obs_mode="dict_pixels_state", pixel_obs=True)
    assert seen.observation_size == {**views, "state": 2}
    assert task("fast", obs_mode="dict_pixels").observation_size == views
    coded = task("fast", obs_mode="dict_latent_state", asymmetric_obs=True)
    latents = {"latent_pixels/view_0": 12, "latent_pixels/view_1": 12}
    assert coded.observation_size == {**latents, "state": 2, "privileged_state": 4}


def test_fast_rejects_what_it_cannot_observe():
    with pytest.raises(ConfigError, match=r"unknown obs_mode 'dict_stat'.*'dict_state'"):
        task("fast", obs_mode="dict_stat")
    with pytest.raises(ConfigError, match="obs_mode='dict_state' has no images"):
        task("fast", obs_mode="dict_state", pixel_obs=True)
