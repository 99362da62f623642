"""Departures from Gymnasium's environments that docstrings and docs/environments.md declare."""

import sys
import types
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from brax import envs
from brax.envs import humanoid, pusher
from brax.envs.task import ASSETS

gymnasium = pytest.importorskip("gymnasium", reason="Gymnasium's environments are the reference")


@pytest.fixture(scope="module", autouse=True)
def without_films():
    """Gymnasium's renderer imports imageio, which these tests do not need."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "imageio", types.ModuleType("imageio"))
        yield


def task(name: str, **settings: Any) -> Any:
    """Return an environment with the attributes of its own class."""
    return envs.get_environment(name, **settings)


def theirs(name: str) -> Any:
    """Return Gymnasium's environment after a reset, without wrappers."""
    env = gymnasium.make(f"{name}-v5").unwrapped
    env.reset(seed=0)
    return env


def ours(name: str) -> Any:
    """Return our class of the environment that Gymnasium has by this name."""
    names = {
        "InvertedDoublePendulum": "inverted_double_pendulum",
        "InvertedPendulum": "inverted_pendulum",
    }
    return envs._envs[names.get(name, name.lower())]


def model_of(name: str) -> mujoco.MjModel:
    """Return our model for the environment that Gymnasium has by this name."""
    return mujoco.MjModel.from_xml_path(str(ASSETS / ours(name).model))


def state(**parts: Any) -> Any:
    """Return a state with only these parts, for functions that read no others."""
    return types.SimpleNamespace(**{name: jnp.asarray(x) for name, x in parts.items()})


def test_standing_up_earns_a_fifth_and_costs_a_tenth():
    env = theirs("HumanoidStandup")
    *_, info = env.step(np.linspace(-0.4, 0.4, 17, dtype=np.float32))
    after = state(q=env.data.qpos)
    terms = task("humanoidstandup").rewards(after, after, jnp.asarray(env.data.ctrl))
    assert terms["reward_linup"] * 5 == pytest.approx(info["reward_linup"], rel=1e-5)
    assert terms["reward_quadctrl"] * 10 == pytest.approx(info["reward_quadctrl"], rel=1e-5)
    # `uph_cost_weight=5, ctrl_cost_weight=0.1` makes them equal.
    same = task("humanoidstandup", uph_cost_weight=5.0, ctrl_cost_weight=0.1)
    equal = same.rewards(after, after, jnp.asarray(env.data.ctrl))
    for name in ("reward_linup", "reward_quadctrl"):
        assert equal[name] == pytest.approx(info[name], rel=1e-5)


def test_the_pushers_point_is_in_front_of_the_palm():
    env = theirs("Pusher")
    rng = np.random.default_rng(0)
    env.set_state(env.init_qpos + rng.uniform(-0.4, 0.4, 11), np.zeros(11))
    palm, hand = env._get_obs()[14:17], env.data.body("r_wrist_roll_link")
    tips = [env.data.geom(name).xpos for name in ("tip_arml", "tip_armr")]
    middle = np.mean(tips, axis=0)
    np.testing.assert_allclose(hand.xpos + hand.xmat.reshape(3, 3) @ pusher.BETWEEN_FINGERS, middle)
    np.testing.assert_allclose(palm, hand.xpos)
    assert np.linalg.norm(middle - palm) == pytest.approx(0.1)


def test_the_pushers_positions_in_gymnasium_are_one_physics_step_old():
    late, early = theirs("Pusher"), theirs("Pusher")
    action = np.full(7, 2.0, np.float32)
    seen = late.step(action)[0][14:17]
    early.frame_skip -= 1
    early.step(action)
    mujoco.mj_forward(early.model, early.data)
    np.testing.assert_allclose(early._get_obs()[14:17], seen, atol=1e-12)
    mujoco.mj_forward(late.model, late.data)
    assert np.linalg.norm(late._get_obs()[14:17] - seen) > 1e-4


LENGTHS = {
    "Ant": (105, 27),
    "HalfCheetah": (17, 17),
    "Hopper": (11, 11),
    "Humanoid": (348, 244),
    "HumanoidStandup": (348, 244),
    "InvertedDoublePendulum": (9, 8),
    "InvertedPendulum": (4, 4),
    "Pusher": (23, 23),
    "Reacher": (10, 11),
    "Swimmer": (8, 8),
    "Walker2d": (17, 17),
}
"""Lengths of observations in Gymnasium, and here."""


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_of_observations(name):
    (seen,) = theirs(name).observation_space.shape
    assert (seen, sum(part.size for part in ours(name).layout)) == LENGTHS[name]


def test_the_humanoids_observe_less():
    env = theirs("Humanoid")
    parts = env.observation_structure
    assert 348 - parts["cfrc_ext"] == 270
    bodies = env.model.nbody - 1
    assert (bodies, humanoid.LINKS) == (13, 11)
    assert (parts["cinert"], parts["cvel"], parts["qfrc_actuator"]) == (10 * bodies, 6 * bodies, 17)
    # MuJoCo's `cvel`: the velocity of the body at the model's centre of mass.
    model, data = env.model, env.data
    data.qvel[:] = np.random.default_rng(0).normal(size=model.nv)
    mujoco.mj_forward(model, data)
    six = np.zeros(6)
    shin = model.body("left_shin").id
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, shin, six, 0)
    angular, linear = six[:3], six[3:]
    arm = data.subtree_com[1] - data.xipos[shin]
    np.testing.assert_allclose(data.cvel[shin], [*angular, *(linear + np.cross(angular, arm))])


def test_starts_of_the_ant():
    assert theirs("Ant").init_qpos.tolist() == [0, 0, 0.75, 1, *[0] * 11]
    start = model_of("Ant").numeric("init_qpos").data
    assert start.tolist() == [0, 0, 0.55, 1, 0, 0, 0, 0, 1, 0, -1, 0, -1, 0, 1]


def test_velocities_at_the_start_of_the_double_pendulum():
    env = theirs("InvertedDoublePendulum")
    drawn = []
    for _ in range(400):
        env.reset()
        drawn.append(env.data.qvel.copy())
    assert np.std(drawn) == pytest.approx(0.1, rel=0.1)
    poles = task("inverted_double_pendulum")
    keys = jax.random.split(jax.random.key(0), 400)
    rates = jax.vmap(lambda key: poles.first_velocities(key, 0.1))(keys)
    assert np.std(rates) == pytest.approx(0.01, rel=0.1)


def test_targets_of_the_reacher():
    """The mean distance is half the radius if it is uniform, and 2/3 of it in a uniform disc."""
    env = theirs("Reacher")
    far = []
    for _ in range(400):
        env.reset()
        far.append(np.linalg.norm(env.data.qpos[2:]))
        # Coordinates of the target are its position, as in our model.
        np.testing.assert_allclose(env.data.body("target").xpos[:2], env.data.qpos[2:])
    assert np.mean(far) == pytest.approx(0.2 * 2 / 3, rel=0.05)
    keys = [jax.random.split(jax.random.key(k), 400) for k in (0, 1)]
    q, _ = jax.jit(jax.vmap(task("reacher").start))(*keys)
    assert np.mean(np.linalg.norm(q[:, 2:], axis=1)) == pytest.approx(0.2 / 2, rel=0.1)


def test_the_step_that_terminates_is_rewarded():
    env = theirs("Hopper")
    env.set_state(env.init_qpos - [0, 0.6, 0, 0, 0, 0], env.init_qvel)
    _, _, terminated, _, info = env.step(np.zeros(3, np.float32))
    assert terminated and info["reward_survive"] == 0
    hopper, after = task("hopper"), state(q=env.data.qpos, qd=env.data.qvel)
    assert hopper.is_over(after)
    assert hopper.rewards(after, after, jnp.zeros(3))["reward_healthy"] == 1
    env = theirs("InvertedPendulum")
    env.set_state(np.array([0, 0.3]), np.zeros(2))
    assert env.step(np.zeros(1, np.float32))[1:3] == (0, True)
    pole = state(q=env.data.qpos)
    cart = task("inverted_pendulum")
    assert cart.is_over(pole) and cart.rewards(pole, pole, jnp.zeros(1))["reward_alive"] == 1


DURATIONS = {
    "Ant": 0.05,
    "HalfCheetah": 0.05,
    "Hopper": 0.008,
    "Humanoid": 0.015,
    "HumanoidStandup": 0.015,
    "InvertedDoublePendulum": 0.05,
    "InvertedPendulum": 0.04,
    "Pusher": 0.05,
    "Reacher": 0.02,
    "Swimmer": 0.04,
    "Walker2d": 0.008,
}
"""Duration of a step in Gymnasium [s]."""
HERE = DURATIONS | {"InvertedDoublePendulum": 0.02, "InvertedPendulum": 0.02}
"""The same here [s]."""
EULER = ("HalfCheetah", "Pusher")
"""Environments that Gymnasium does not integrate with RK4."""


@pytest.mark.parametrize("name", DURATIONS)
def test_durations_and_integrators(name):
    env = theirs(name)
    assert env.dt == pytest.approx(DURATIONS[name])
    for timestep, n_frames in ours(name).physics.values():
        assert timestep * n_frames == pytest.approx(HERE[name])
    euler, rk4 = mujoco.mjtIntegrator.mjINT_EULER, mujoco.mjtIntegrator.mjINT_RK4
    assert env.model.opt.integrator == (euler if name in EULER else rk4)
    assert model_of(name).opt.integrator == euler


def collisions(model: mujoco.MjModel) -> tuple[set[str], bool]:
    """Return the geoms that collide with the first one, the floor, and whether others collide."""
    kind, affinity = model.geom_contype[:, None], model.geom_conaffinity
    collide = (kind & affinity) | (kind & affinity).T
    with_floor = {model.geom(i).name for i in np.flatnonzero(collide[0]) if i != 0}
    return with_floor, bool(collide[1:, 1:].any())


FLOOR = {
    "Ant": {"foot_1", "foot_2", "foot_3", "foot_4"},
    "HalfCheetah": {"torso", "head", "bshin", "bfoot", "fshin", "ffoot"},
    "Hopper": {"foot"},
    "Humanoid": {"left_foot", "right_foot"},
    "Walker2d": {"foot", "foot_left"},
}
"""Our geoms that collide with the floor."""
FLOOR["HumanoidStandup"] = {"head", "chest", "buttocks"} | {
    f"{side}_{part}" for side in ("left", "right") for part in ("lower_arm", "hand", "shin", "foot")
}
AMONG_THEMSELVES = ("Hopper", "Humanoid", "HumanoidStandup")
"""Environments in which Gymnasium's parts collide with each other."""


@pytest.mark.parametrize("name", FLOOR)
def test_what_collides(name):
    model, reference = model_of(name), theirs(name).model
    assert collisions(model) == (FLOOR[name], False)
    found, others = collisions(reference)
    assert found == {reference.geom(i).name for i in range(1, reference.ngeom)}
    assert others == (name in AMONG_THEMSELVES)
    margins = [set(m.geom_margin.tolist()) for m in (model, reference)]
    assert margins == [{0}, {0.01}] if name == "Ant" else margins[0] == margins[1]


def test_contacts_of_the_pusher():
    """In Gymnasium the table collides as well, and condim 1 means no friction."""
    model, reference = model_of("Pusher"), theirs("Pusher").model
    assert collisions(model) == (set(), True)
    touching = np.flatnonzero(reference.geom_contype)
    bodies = {reference.body(reference.geom_bodyid[i]).name for i in touching}
    assert bodies == {"world", "r_wrist_roll_link", "object"}
    assert set(reference.geom_condim.tolist()) == {1} and set(model.geom_condim.tolist()) == {3}


def test_quaternions_at_the_start():
    env = theirs("Ant")
    first, _ = env.reset(seed=1)
    assert abs(np.linalg.norm(first[1:5]) - 1) > 0.01
    ant = task("ant")
    drawn = jax.jit(lambda key: ant.reset(key).obs)(jax.random.key(0))
    assert np.linalg.norm(drawn[1:5]) == pytest.approx(1, abs=1e-6)


def test_limits_of_episodes():
    limits = {spec: gymnasium.spec(f"{spec}-v5").max_episode_steps for spec in DURATIONS}
    assert limits == dict.fromkeys(DURATIONS, 1000) | {"Reacher": 50, "Pusher": 100}


@pytest.mark.parametrize("name", DURATIONS)
def test_which_actions_are_scaled(name):
    assert (theirs(name).action_space.high[0] != 1) == ours(name).scaled
