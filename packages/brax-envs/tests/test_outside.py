"""The wrappers for Gymnasium and dm_env, on an environment whose every number is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import envs
from brax.env import AutoResetWrapper, Env, EpisodeWrapper, State, VmapWrapper
from brax.errors import ConfigError

gymnasium = pytest.importorskip("gymnasium")


class Counter(Env):
    """Counts its steps from a start that is drawn; ends by itself when the action is negative."""

    action_size = 2

    def reset(self, rng):
        """At a number from 0 to 1."""
        obs = jax.random.uniform(rng, (1,))
        return State(None, obs, jnp.zeros(()), jnp.zeros(()), {"taken": jnp.zeros(())})

    def step(self, state, action):
        """One more."""
        done = (action[0] < 0).astype(jnp.float32)
        metrics = {"taken": action[1]}
        return state.replace(obs=state.obs + 1, reward=action[1], done=done, metrics=metrics)


def single(length=3):
    return AutoResetWrapper(EpisodeWrapper(Counter(), length), reset="fresh")


def batch(size=3, length=3):
    env = VmapWrapper(Counter(), size)
    return AutoResetWrapper(EpisodeWrapper(env, length), reset="fresh")


GO, STOP = np.array([1.0, 0.5], np.float32), np.array([-1.0, 0.5], np.float32)


@pytest.fixture(scope="module")
def gym():
    from brax.envs.wrappers import gym

    return gym


def test_the_checker_of_gymnasium_passes(gym):
    from gymnasium.utils.env_checker import check_env

    with pytest.warns(UserWarning) as warned:
        check_env(gym.GymWrapper(single()))
    told = [str(w.message) for w in warned if issubclass(w.category, UserWarning)]
    # Observations have no bounds; the environment was not made by `gymnasium.make`.
    assert all("Box observation space" in t or "spec" in t for t in told), told


def test_one_episode(gym):
    env = gym.GymWrapper(single())
    first, info = env.reset(seed=7)
    assert first.shape == (1,) and first.dtype == np.float32 and 0 <= first[0] < 1 and info == {}
    taken = [env.step(GO) for _ in range(3)]
    assert [t[1:4] for t in taken] == [(0.5, False, False)] * 2 + [(0.5, False, True)]
    np.testing.assert_allclose([t[0][0] - first[0] for t in taken], [1, 2, 3], rtol=1e-6)
    assert taken[0][4] == {"taken": 0.5}
    assert env.observation_space.contains(taken[-1][0])
    second, _ = env.reset()
    assert second != first
    assert env.reset(seed=7)[0] == first and env.reset()[0] == second
    assert env.step(STOP)[2:4] == (True, False)


def test_a_batch(gym):
    env = gym.VectorGymWrapper(batch())
    assert env.action_space.shape == (3, 2) and env.observation_space.shape == (3, 1)
    first, _ = env.reset(seed=1)
    assert len(np.unique(first)) == 3
    obs, reward, terminated, truncated, info = env.step(np.stack([GO, STOP, GO]))
    assert terminated.tolist() == [False, True, False] and not truncated.any()
    assert terminated.dtype == truncated.dtype == bool and reward.tolist() == [0.5] * 3
    assert info["_final_obs"].tolist() == info["_final_info"].tolist() == terminated.tolist()
    np.testing.assert_allclose(info["final_obs"], first + 1, rtol=1e-6)
    np.testing.assert_allclose(obs[[0, 2]], first[[0, 2]] + 1, rtol=1e-6)
    assert 0 <= obs[1, 0] < 1 and info["final_info"]["taken"].tolist() == [0.5] * 3
    quiet = env.step(np.stack([GO] * 3))
    assert "final_obs" not in quiet[4]
    assert env.step(np.stack([GO] * 3))[3].tolist() == [True, False, True]


def test_a_single_environment_is_no_batch(gym):
    with pytest.raises(ConfigError, match="batch_size"):
        gym.VectorGymWrapper(single())


@pytest.mark.parametrize("name", ["inverted_pendulum", "humanoid", "reacher", "pusher"])
def test_actions_are_those_that_step_accepts(name):
    from brax.envs.wrappers.host import action_bounds

    env = envs.create(name)
    low, high = action_bounds(env)
    assert low.tolist() == [-1] * env.action_size and high.tolist() == [1] * env.action_size


@pytest.mark.slow
def test_the_checker_passes_on_physics(gym):
    from gymnasium.utils.env_checker import check_env

    with pytest.warns(UserWarning):
        check_env(gym.GymWrapper(envs.create("inverted_pendulum")))


def test_dm_env():
    pytest.importorskip("dm_env")
    from brax.envs.wrappers.dm_env import DmEnvWrapper

    env = DmEnvWrapper(single(), seed=3)
    first = env.step(GO)  # nothing has begun: the action is not looked at
    assert first.first() and env.observation_spec().validate(first.observation) is not None
    steps = [env.step(GO) for _ in range(3)]
    assert [(s.reward, s.discount, s.last()) for s in steps] == [
        (0.5, 1, False),
        (0.5, 1, False),
        (0.5, 1, True),
    ]
    assert steps[-1].observation == pytest.approx(first.observation + 3)
    assert env.step(GO).first()
    over = env.step(STOP)
    assert over.last() and over.discount == 0
    assert env.action_spec().minimum.tolist() == [-1, -1]
    env.seed(3)
    assert env.reset().observation == first.observation
