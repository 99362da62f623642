"""The wrappers for Gymnasium and dm_env, on an environment whose every number is known."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import envs
from brax.builder import ModelBuilder
from brax.env import AutoResetWrapper, Env, EpisodeWrapper, PipelineEnv, State, VmapWrapper
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
    with pytest.raises(ConfigError, match=r"GymWrapper needs a single environment.*VectorGymWrapp"):
        gym.GymWrapper(batch())


def test_a_batch_restarts_its_episodes(gym):
    """Otherwise an environment that has ended would end again in each step."""
    with pytest.raises(ConfigError, match="needs environments that restart: pass"):
        gym.VectorGymWrapper(EpisodeWrapper(VmapWrapper(Counter(), 3), 3))
    with pytest.raises(ConfigError, match="without auto_reset=False"):
        gym.VectorGymWrapper(envs.create("fast", batch_size=3, auto_reset=False))


def test_nothing_goes_on_before_it_began(gym):
    with pytest.raises(ConfigError, match="step before reset: call reset first"):
        gym.GymWrapper(single()).step(GO)


FAST: dict[str, Any] = {"obs_mode": "dict_pixels_state", "asymmetric_obs": True}
ENTRIES = {
    "pixels/view_0": (8, 8, 3),
    "pixels/view_1": (8, 8, 3),
    "state": (2,),
    "privileged_state": (4,),
}
"""Observation of `fast` with `FAST`, which declares its vectors by their lengths."""


def test_gym_spaces_of_dictionaries_with_vectors(gym):
    env = gym.GymWrapper(envs.create("fast", **FAST))
    assert {name: box.shape for name, box in env.observation_space.items()} == ENTRIES
    assert env.observation_space.contains(env.reset(seed=0)[0])
    assert env.observation_space.contains(env.step(np.ones(1, np.float32))[0])
    many = gym.VectorGymWrapper(envs.create("fast", batch_size=3, **FAST))
    assert {name: box.shape for name, box in many.single_observation_space.items()} == ENTRIES
    assert many.observation_space.contains(many.reset(seed=0)[0])


def test_dm_env_specs_of_dictionaries_with_vectors():
    pytest.importorskip("dm_env")
    from brax.envs.wrappers.dm_env import DmEnvWrapper

    env = DmEnvWrapper(envs.create("fast", **FAST))
    specs, first = env.observation_spec(), env.reset().observation
    assert {name: spec.shape for name, spec in specs.items()} == ENTRIES
    for name, spec in specs.items():
        spec.validate(first[name])


def test_gymnax_spaces_of_dictionaries_with_vectors():
    from brax.envs.wrappers.gymnax import GymnaxWrapper

    env = GymnaxWrapper(envs.get_environment("fast", **FAST))
    spaces, obs = env.observation_space(), env.reset(jax.random.key(0))[0]
    assert {name: box.shape for name, box in spaces.items()} == ENTRIES
    assert {name: box.low.shape for name, box in spaces.items()} == ENTRIES
    assert all(box.contains(obs[name]) for name, box in spaces.items())


class Mixed(Env):
    """Observes numbers of several types."""

    action_size = 1

    def reset(self, rng):
        obs = {
            "float": jnp.ones(2),
            "count": jnp.full(1, -3, jnp.int32),
            "image": jnp.full((2, 2, 3), 200, jnp.uint8),
            "flag": jnp.ones(1, bool),
        }
        return State(None, obs, jnp.zeros(()), jnp.zeros(()))

    def step(self, state, action):
        return state.replace(reward=action[0])


@pytest.mark.parametrize("double", [False, True])
def test_observations_have_the_types_that_their_spaces_declare(gym, double):
    """In double precision the floats of an environment are float64."""
    from brax.envs.wrappers.gymnax import GymnaxWrapper

    with jax.enable_x64(double):
        one, many = (
            gym.GymWrapper(Mixed()),
            gym.VectorGymWrapper(AutoResetWrapper(VmapWrapper(Mixed(), 3))),
        )
        for env in (one, many):
            obs, _ = env.reset(seed=0)
            assert obs["float"].dtype == (np.float64 if double else np.float32)
            assert env.observation_space.contains(obs)
            assert env.observation_space.contains(env.step(env.action_space.sample())[0])
        image, flag = one.observation_space["image"], one.observation_space["flag"]
        assert (image.low.min(), image.high.max(), flag.high.max()) == (0, 255, True)
        space = GymnaxWrapper(Mixed()).observation_space()
        assert {name: box.dtype for name, box in space.items()} == {
            name: x.dtype for name, x in obs.items()
        }
        dm_env = pytest.importorskip("brax.envs.wrappers.dm_env")
        env = dm_env.DmEnvWrapper(Mixed())
        for name, spec in env.observation_spec().items():
            spec.validate(env.reset().observation[name])


def test_a_batch_is_no_environment_of_dm_env():
    dm_env = pytest.importorskip("brax.envs.wrappers.dm_env")
    with pytest.raises(ConfigError, match=r"DmEnvWrapper needs a single environment: pass"):
        dm_env.DmEnvWrapper(batch())


def test_an_unknown_platform_is_named(gym):
    with pytest.raises(ConfigError, match=r"backend='abacus': Unknown backend"):
        gym.GymWrapper(single(), backend="abacus")


@pytest.mark.parametrize("seed", [1.5, "1", 2**63])
def test_a_seed_is_a_whole_number(gym, seed):
    with pytest.raises(ConfigError, match=r"seed must be a whole number below 2\*\*63, got "):
        gym.GymWrapper(single(), seed=seed)


class Paired(PipelineEnv):
    """Two motors that get the same control."""

    action_size = 1

    def __init__(self):
        builder = ModelBuilder()
        for name in ("a", "b"):
            builder.add_body(name, mass=1.0, inertia=(1, 1, 1))
            builder.add_joint(name, "hinge", name, axis=(0, 1, 0))
            builder.add_actuator(name, ctrl_range=(-2, 3))
        super().__init__(builder.build())

    def reset(self, rng):
        physics = self.pipeline_init(jnp.zeros(2), jnp.zeros(2))
        return State(physics, physics.q, jnp.zeros(()), jnp.zeros(()))

    def step(self, state, action):
        physics = self.pipeline_step(state.pipeline_state, jnp.tile(action, 2))
        return state.replace(pipeline_state=physics, obs=physics.q)


def test_fewer_actions_than_actuators(gym):
    env = gym.GymWrapper(Paired())
    assert (env.action_space.low.tolist(), env.action_space.high.tolist()) == ([-1], [1])
    env.reset(seed=0)
    env.step(env.action_space.sample())


class Foreign:
    """An environment that is no `Env`: it has what the wrappers need, and no more."""

    action_size = 1

    def reset(self, rng):
        return State(None, jnp.zeros(2), jnp.zeros(()), jnp.zeros(()))

    def step(self, state, action):
        return state.replace(reward=action[0])


def test_an_environment_need_not_be_an_env(gym):
    wrapped: Any = AutoResetWrapper(EpisodeWrapper(Foreign(), 3))  # type: ignore[arg-type]
    assert type(wrapped.unwrapped) is Foreign
    for env in (gym.GymWrapper(Foreign()), gym.GymWrapper(wrapped)):
        assert env.reset(seed=0)[0].tolist() == [0, 0]
        assert env.step(np.full(1, 0.5, np.float32))[1] == 0.5


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


def test_tensors():
    torch = pytest.importorskip("torch")
    from brax.envs.wrappers.torch import TorchWrapper

    env = TorchWrapper(batch(), seed=1)
    first, _ = env.reset()
    assert isinstance(first, torch.Tensor) and first.shape == (3, 1)
    action = torch.tensor(np.stack([GO, STOP, GO]), requires_grad=True)
    obs, reward, terminated, truncated, info = env.step(action)
    assert reward.tolist() == [0.5] * 3 and reward.dtype == torch.float32
    assert terminated.tolist() == [False, True, False] and terminated.dtype == torch.bool
    assert not truncated.any() and info["taken"].tolist() == [0.5] * 3
    np.testing.assert_allclose(info["final_obs"], first + 1, rtol=1e-6)
    np.testing.assert_allclose(obs[[0, 2]], first[[0, 2]] + 1, rtol=1e-6)
    assert torch.equal(env.reset(seed=1)[0], first)


def test_tensors_of_a_gym_wrapper_as_in_googles_brax():
    torch = pytest.importorskip("torch")
    pytest.importorskip("gymnasium")
    from brax.envs.wrappers.gym import GymWrapper, VectorGymWrapper
    from brax.envs.wrappers.torch import TorchWrapper

    env = TorchWrapper(VectorGymWrapper(batch(), seed=1), device="cpu")
    first = env.reset()
    assert isinstance(first, torch.Tensor) and first.shape == (3, 1)
    assert (env.num_envs, env.action_space.shape, env.observation_space.shape[-1]) == (3, (3, 2), 1)
    for done, truncation in (([0, 1, 0], [0] * 3), ([0] * 3, [0] * 3), ([1, 0, 1], [1, 0, 1])):
        stop = torch.tensor(np.stack([GO, STOP if done[1] else GO, GO]))
        _, reward, ended, info = env.step(stop)
        assert reward.tolist() == [0.5] * 3 and info["taken"].tolist() == [0.5] * 3
        assert ended.tolist() == done and ended.dtype == torch.float32
        assert info["truncation"].tolist() == truncation
    assert TorchWrapper(GymWrapper(single(), seed=3)).reset().shape == (1,)
    with pytest.raises(AttributeError, match="TorchWrapper has no attribute 'num_envs'"):
        _ = TorchWrapper(batch()).num_envs


def test_an_action_may_be_overwritten_at_once():
    torch = pytest.importorskip("torch")
    from brax.envs.wrappers.torch import to_jax

    action = torch.ones(4)
    array = to_jax(action)
    action.zero_()
    assert array.tolist() == [1] * 4


def test_functions_in_the_way_of_gymnax():
    from brax.envs.wrappers.gymnax import GymnaxWrapper

    env = GymnaxWrapper(Counter(), episode_length=3)
    keys = jax.random.split(jax.random.key(0), 4)
    obs, state = env.reset(keys[0])
    first = obs
    for i, key in enumerate(keys[1:]):
        obs, state, reward, done, info = jax.jit(env.step)(key, state, GO)
        assert reward == 0.5 and bool(done) == (i == 2) == bool(info["truncation"])
        np.testing.assert_allclose(info["terminal_obs"], first + i + 1, rtol=1e-6)
    assert 0 <= obs < 1 and np.array_equal(obs, env.reset(keys[3])[0])
    _, state, _, done, info = env.step(keys[0], state, jnp.asarray(STOP))
    assert done and not info["truncation"] and state.info["steps"] == 0
    assert env.action_space().contains(env.action_space().sample(keys[0]))
    assert env.observation_space().shape == (1,) and env.default_params is None


@pytest.mark.slow
def test_the_system_is_an_argument():
    """A rotor of four times the inertia is turned at a quarter of the speed."""
    from brax.envs.wrappers.gymnax import GymnaxWrapper

    env = GymnaxWrapper(envs.get_environment("reacher"))
    params = env.default_params
    assert params is not None
    assert env.action_space().low.tolist() == [-1, -1]
    rotors = jnp.array([1.0, 4.0])
    several = jax.vmap(lambda m: params.replace(dof_armature=m * params.dof_armature))(rotors)
    key = jax.random.key(0)
    state = env.reset(key)[1]
    state = state.replace(pipeline_state=env._env.pipeline_init(jnp.zeros(4), jnp.zeros(4)))
    step = jax.jit(jax.vmap(lambda p: env.step(key, state, jnp.array([1.0, 0.0]), p)[1]))
    speed = step(several).pipeline_state.qd[:, 0]
    # The rotor, of 1 kg m^2, is all but the whole inertia; its damper takes 2 % in this time.
    assert float(speed[0] / speed[1]) == pytest.approx(4, rel=0.05)


@pytest.fixture(scope="module")
def baselines():
    pytest.importorskip("stable_baselines3")
    from brax.envs.wrappers import stable_baselines3

    return stable_baselines3.StableBaselinesWrapper


def test_a_batch_for_stable_baselines(baselines):
    env = baselines(batch())
    env.seed(5)
    first = env.reset()
    _, reward, done, infos = env.step(np.stack([GO, STOP, GO]))
    assert done.tolist() == [False, True, False] and reward.tolist() == [0.5] * 3
    assert infos[0] == {} and infos[1]["TimeLimit.truncated"] is False
    np.testing.assert_allclose(infos[1]["terminal_observation"], first[1] + 1, rtol=1e-6)
    env.step(np.stack([GO] * 3))
    *_, done, infos = env.step(np.stack([GO] * 3))
    assert done.tolist() == [True, False, True] and infos[2]["TimeLimit.truncated"] is True
    env.seed(5)
    assert np.array_equal(env.reset(), first)


def test_a_dictionary_with_vectors_for_stable_baselines(baselines):
    env = baselines(envs.create("fast", batch_size=2, **FAST))
    assert {name: box.shape for name, box in env.observation_space.items()} == ENTRIES
    assert {name: x.shape[1:] for name, x in env.reset().items()} == ENTRIES


@pytest.mark.slow
def test_stable_baselines_learns_on_it(baselines):
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import VecMonitor

    env = VecMonitor(baselines(envs.create("fast", episode_length=16, batch_size=4)))
    agent = PPO("MlpPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu")
    agent.learn(256)
    # Each of its 16 steps earns 1.
    assert {info["r"] for info in agent.ep_info_buffer} == {16}
