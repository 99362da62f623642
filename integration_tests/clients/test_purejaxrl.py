"""A client in the style of PureJaxRL: one environment becomes gymnax's functions and is vectorized.

The whole loop is one compiled function. The wrappers of the client keep states of their own
around Brax's.
"""

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import envs
from brax.envs.wrappers.training import AutoResetWrapper, EpisodeWrapper

ENVS, EPISODE, STEPS = 4, 8, 20


class Functions:
    """An environment as functions of keys, states and parameters."""

    def __init__(self, env_name, backend):
        env = envs.get_environment(env_name=env_name, backend=backend)
        env = EpisodeWrapper(env, episode_length=EPISODE, action_repeat=1)
        self._env = AutoResetWrapper(env)
        self.action_size = env.action_size
        self.observation_size = (env.observation_size,)

    def reset(self, key, params=None):
        state = self._env.reset(key)
        return state.obs, state

    def step(self, key, state, action, params=None):
        after = self._env.step(state, action)
        return after.obs, after, after.reward, after.done > 0.5, {}


@flax.struct.dataclass
class LogState:
    """A state with the returns of episodes."""

    env_state: envs.State
    episode_return: jax.Array
    episode_length: jax.Array
    returned_return: jax.Array
    returned_length: jax.Array


class Wrapper:
    """A wrapper that provides what it does not define."""

    def __init__(self, env):
        self._env = env

    def __getattr__(self, name):
        return getattr(self._env, name)


class LogWrapper(Wrapper):
    """Sums the rewards of episodes."""

    def reset(self, key, params=None):
        obs, state = self._env.reset(key, params)
        return obs, LogState(state, jnp.array(0.0), jnp.array(0), jnp.array(0.0), jnp.array(0))

    def step(self, key, state, action, params=None):
        obs, inner, reward, done, info = self._env.step(key, state.env_state, action, params)
        total, length = state.episode_return + reward, state.episode_length + 1
        after = LogState(
            inner,
            total * (1 - done),
            length * (1 - done),
            jnp.where(done, total, state.returned_return),
            jnp.where(done, length, state.returned_length),
        )
        info["length"] = after.returned_length
        return obs, after, reward, done, info


class ClipAction(Wrapper):
    """Bounds actions."""

    def step(self, key, state, action, params=None):
        return self._env.step(key, state, jnp.clip(action, -1, 1), params)


class Vectorized(Wrapper):
    """Maps both functions over a leading axis."""

    def __init__(self, env):
        super().__init__(env)
        self.reset = jax.vmap(self._env.reset, in_axes=(0, None))
        self.step = jax.vmap(self._env.step, in_axes=(0, 0, 0, None))


@flax.struct.dataclass
class NormalState:
    """A state with running statistics of observations."""

    env_state: LogState
    mean: jax.Array
    square: jax.Array
    count: jax.Array


class Normalized(Wrapper):
    """Scales observations by their running mean and variance."""

    def reset(self, key, params=None):
        obs, state = self._env.reset(key, params)
        return obs, NormalState(state, jnp.mean(obs, 0), jnp.mean(obs**2, 0), jnp.array(1))

    def step(self, key, state, action, params=None):
        obs, inner, reward, done, info = self._env.step(key, state.env_state, action, params)
        rate = 1 / (state.count + 1)
        mean = state.mean + rate * (jnp.mean(obs, 0) - state.mean)
        square = state.square + rate * (jnp.mean(obs**2, 0) - state.square)
        scaled = (obs - mean) / jnp.sqrt(jnp.maximum(square - mean**2, 0) + 1e-8)
        return scaled, NormalState(inner, mean, square, state.count + 1), reward, done, info


@pytest.fixture(scope="module")
def run():
    """Return the last state and the transitions of one compiled loop."""
    env = Normalized(Vectorized(ClipAction(LogWrapper(Functions("inverted_pendulum", "spring")))))

    @jax.jit
    def loop(key):
        key, first = jax.random.split(key)
        obs, state = env.reset(jax.random.split(first, ENVS), None)

        def step(carry, _):
            obs, state, key = carry
            key, draw, move = jax.random.split(key, 3)
            action = 3 * jax.random.normal(draw, (ENVS, env.action_size))
            keys = jax.random.split(move, ENVS)
            obs, state, reward, done, info = env.step(keys, state, action, None)
            return (obs, state, key), (obs, reward, done, info)

        return jax.lax.scan(step, (obs, state, key), length=STEPS)

    return loop(jax.random.PRNGKey(30))


def test_episodes_restart_and_their_returns_are_logged(run):
    (_, state, _), (obs, _, done, info) = run
    assert obs.shape == (STEPS, ENVS, 4) and np.isfinite(obs).all()
    steps, lengths = np.zeros(ENVS, int), np.zeros(ENVS, int)
    for ended, told in zip(done, info["length"], strict=True):
        steps += 1
        lengths = np.where(ended, steps, lengths)
        steps = np.where(ended, 0, steps)
        np.testing.assert_array_equal(told, lengths)
    assert np.all((lengths > 0) & (lengths <= EPISODE))
    log = state.env_state
    # Brax's count stays that of the ended episode until the next step.
    counted = log.env_state.info["steps"]
    np.testing.assert_array_equal(np.where(done[-1], 0, counted), steps)
    # A step in which the pole stays up pays 1.
    np.testing.assert_array_equal(log.returned_return, log.returned_length)


def test_states_are_of_the_client_and_of_brax(run):
    (_, state, _), _ = run
    assert isinstance(state.env_state.env_state, envs.State)
    assert int(state.count) == STEPS + 1
