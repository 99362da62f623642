"""Environments by name."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from brax import env, envs, plugins
from brax.env import Env, State
from brax.envs.base import PipelineEnv, Wrapper
from brax.envs.wrappers import training
from brax.errors import ConfigError, ShapeError, UnknownNameError


class Still(Env):
    """Stays where it is.

    More.
    """

    action_size = 2

    def __init__(self, reward=1.0):
        self.reward = reward

    def reset(self, rng):
        return State(None, jnp.zeros(1), jnp.zeros(()), jnp.zeros(()))

    def step(self, state, action):
        return state.replace(reward=jnp.float32(self.reward))


class Other(Still):
    """Another."""


@pytest.fixture
def still():
    """`Still`, registered while a test runs."""
    envs.register_environment("still", Still)
    yield
    plugins.unregister("register_environment still")


def test_names():
    assert {"ant", "halfcheetah", "humanoid", "walker2d"} <= set(envs.list_environments())
    assert plugins.specs("environment")["ant"].distribution == "brax-envs"


def test_an_unknown_name_says_what_there_is():
    message = "unknown environment 'antt'.*ant, fast, fetch, grasp, halfcheetah.*mean 'ant'"
    with pytest.raises(UnknownNameError, match=message):
        envs.get_environment("antt")


def test_an_unknown_backend_says_what_there_is():
    with pytest.raises(UnknownNameError, match=r"unknown pipeline 'sprig'.*mean 'spring'"):
        envs.get_environment("inverted_pendulum", backend="sprig")


def test_registering(still):
    assert "still" in envs.list_environments()
    generous: Any = envs.get_environment("still", reward=2.0)
    assert generous.reward == 2.0
    assert plugins.specs("environment")["still"].summary == "Stays where it is."
    envs.register_environment("still", Still)  # the same again is no conflict


def test_a_taken_name(still):
    envs.register_environment("still", Other, override=True)
    assert isinstance(envs.get_environment("still"), Other)
    with pytest.warns(UserWarning, match=r"'still' replaces the one of register_environment still"):
        envs.register_environment("still", Still)
    assert type(envs.get_environment("still")) is Still


def test_the_classes_by_name(still):
    assert envs._envs["still"] is Still and list(envs._envs) == envs.list_environments()
    assert len(envs._envs) == len(envs.list_environments()) and "antt" not in envs._envs
    assert isinstance(envs._envs["fast"](), Env)


def test_a_class_that_a_notebook_defines_anew_takes_its_place(still):
    again = type("Still", (Other,), {"__module__": Still.__module__})
    again.__qualname__ = Still.__qualname__
    envs.register_environment("still", again)
    assert type(envs.get_environment("still")) is again


def test_overriding_an_installed_environment():
    before = plugins.specs("environment")
    try:
        with pytest.warns(UserWarning, match=r"pendulum' replaces the one of brax-envs 0\."):
            envs.register_environment("inverted_pendulum", Other)
        envs.register_environment("inverted_pendulum", Still, override=True)
        assert type(envs.get_environment("inverted_pendulum")) is Still
    finally:
        plugins.unregister("register_environment inverted_pendulum")
    assert list(plugins.specs("environment").items()) == list(before.items())


def test_create(still):
    assert type(envs.create("still", episode_length=None, auto_reset=False)) is Still
    batch = envs.create("still", episode_length=4, action_repeat=2, batch_size=3, reward=0.5)
    state = jax.jit(batch.reset)(jax.random.key(0))
    step = jax.jit(batch.step)
    for steps in (2, 4, 2):
        state = step(state, jnp.zeros((3, 2)))
        assert state.reward.tolist() == [1, 1, 1]
        assert state.info["steps"].tolist() == [steps] * 3
        assert state.info["truncation"].tolist() == [steps == 4] * 3
    assert envs.create("still").reset(jax.random.key(0)).obs.shape == (1,)
    with pytest.raises(ConfigError, match="episode_length=1, action_repeat=2"):
        envs.create("still", episode_length=1, action_repeat=2)


@pytest.mark.parametrize("action", [jnp.zeros(5), jnp.zeros((3, 1)), jnp.zeros(())])
def test_a_mass_is_pushed_by_one_number(action):
    env = envs.get_environment("fast")
    with pytest.raises(ShapeError, match=r"action has shape \(.*\); 'Fast' takes \(1,\)"):
        env.step(env.reset(jax.random.key(0)), action)


def test_the_paths_that_users_know():
    assert envs.training is training
    assert envs.ant.Ant is type(envs.get_environment("ant"))
    with pytest.raises(AttributeError, match=r"module 'brax.envs' has no attribute 'antt'"):
        _ = envs.antt
    assert (PipelineEnv, envs.base.State, Wrapper) == (env.PipelineEnv, env.State, env.Wrapper)
    assert training.wrap is env.wrap and training.EvalWrapper is env.EvalWrapper


def test_settings_that_an_environment_does_not_take():
    with pytest.raises(
        ConfigError, match=r"'fast' takes no setting 'use_dict'.* mean 'use_dict_obs'\?"
    ):
        envs.create("fast", use_dict=True)
    with pytest.raises(ConfigError, match="auto_reset must be True or False, got 'no'"):
        envs.create("fast", auto_reset="no")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="cannot be called; register the class"):
        made: Any = envs.get_environment("fast")
        envs.register_environment("made already", made)


@pytest.mark.parametrize("action", [None, [0.0], 0.0])
@pytest.mark.parametrize("name", ["fast", "inverted_pendulum"])
def test_an_action_is_an_array(name, action):
    env = envs.get_environment(name)
    start = jax.eval_shape(env.reset, jax.random.key(0))
    with pytest.raises(ShapeError, match=r"step needs an action, an array of shape \(1,\), got"):
        env.step(start, action)
    with pytest.raises(ShapeError, match=r"step needs the state that its"):
        env.step(start.pipeline_state, jnp.zeros(1))
