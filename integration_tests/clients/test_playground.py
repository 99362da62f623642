"""A client in the style of MuJoCo Playground.

Its environments, states and wrappers are its own. From Brax it takes `VmapWrapper`,
`EpisodeWrapper`, `EvalWrapper` and the agents. Its functions write into `info` in place, and its
wrappers read the size of the batch off the raw words of the keys.
"""

import contextlib
import functools
import math
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.envs.wrappers import training
from brax.training.agents.ppo import networks
from brax.training.agents.ppo import train as ppo

EPISODE = 10
DT = 0.05


@flax.struct.dataclass
class Model:
    """The pendulum's numbers."""

    length: jax.Array
    table: jax.Array
    """An array that all environments share."""


@flax.struct.dataclass
class State:
    """A state without `pipeline_state`."""

    data: jax.Array
    obs: dict[str, jax.Array]
    reward: jax.Array
    done: jax.Array
    metrics: dict[str, jax.Array]
    info: dict[str, Any]


class Pendulum:
    """A pendulum in a few lines of JAX, paid for standing upright; no subclass of `Env`."""

    action_size = 1

    def __init__(self):
        self.model = Model(jnp.array(1.0), jnp.arange(3.0))

    @property
    def unwrapped(self):
        return self

    @property
    def observation_size(self):
        obs = jax.eval_shape(self.reset, jax.random.PRNGKey(0)).obs
        return jax.tree.map(lambda x: x.shape, obs)

    def reset(self, rng):
        rng, key = jax.random.split(rng)
        data = jax.random.uniform(key, (2,), minval=-0.1, maxval=0.1)
        zero = jnp.zeros(())
        return State(data, self._obs(data), zero, zero, {"upright": zero}, {"rng": rng, "taken": 0})

    def step(self, state, action):
        angle, rate = state.data
        rate += DT * (9.81 / self.model.length * jnp.sin(angle) + action[0])
        data = jnp.stack([angle + DT * rate, rate])
        upright = jnp.cos(data[0])
        state.metrics["upright"] = upright
        state.info["taken"] += 1
        done = jnp.isnan(data).any().astype(float)
        return state.replace(data=data, obs=self._obs(data), reward=upright, done=done)

    def _obs(self, data):
        seen = jnp.array([jnp.cos(data[0]), jnp.sin(data[0]), data[1]])
        return {"state": seen, "privileged_state": jnp.append(seen, self.model.length)}


class Wrapper:
    """The client's own base class of wrappers."""

    def __init__(self, env):
        self.env = env

    def reset(self, rng):
        return self.env.reset(rng)

    def step(self, state, action):
        return self.env.step(state, action)

    def __getattr__(self, name):
        return getattr(self.env, name)


class RandomizedVmap(Wrapper):
    """Gives each environment a model of its own, in place, while a function is traced."""

    def __init__(self, env, randomization_fn):
        super().__init__(env)
        self._models, self._in_axes = randomization_fn(self.env.model)

    @contextlib.contextmanager
    def _with(self, model):
        env = self.env.unwrapped
        before, env.model = env.model, model
        try:
            yield env
        finally:
            env.model = before

    def reset(self, rng):
        def reset(model, key):
            with self._with(model) as env:
                return env.reset(key)

        return jax.vmap(reset, in_axes=(self._in_axes, 0))(self._models, rng)

    def step(self, state, action):
        def step(model, state, action):
            with self._with(model) as env:
                return env.step(state, action)

        return jax.vmap(step, in_axes=(self._in_axes, 0, 0))(self._models, state, action)


class AutoReset(Wrapper):
    """Restarts in the first state, or anew, and counts the episodes."""

    def __init__(self, env, full_reset=False):
        super().__init__(env)
        self._full = full_reset

    def reset(self, rng):
        keys = jax.vmap(jax.random.split)(rng)
        state = self.env.reset(keys[:, 0])
        state.info["first"] = (state.data, state.obs)
        state.info["reset_rng"] = keys[:, 1]
        state.info["episodes"] = jnp.zeros(rng.shape[:-1], int)
        return state

    def step(self, state, action):
        start = state.info["first"]
        if self._full:
            fresh = self.reset(state.info["reset_rng"])
            start, state.info["reset_rng"] = (fresh.data, fresh.obs), fresh.info["reset_rng"]
        state.info["steps"] = jnp.where(state.done > 0, 0, state.info["steps"])
        state = self.env.step(state.replace(done=jnp.zeros_like(state.done)), action)
        pick = functools.partial(jax.vmap(jnp.where), state.done > 0)
        data, obs = jax.tree.map(pick, start, (state.data, state.obs))
        state.info["episodes"] += state.done.astype(int)
        return state.replace(data=data, obs=obs)


def wrap(env, episode_length=EPISODE, action_repeat=1, randomization_fn=None, full_reset=False):
    """Return a batch of an environment, as the client's `wrap_env_fn`."""
    if randomization_fn is None:
        env = training.VmapWrapper(env)
    else:
        env = RandomizedVmap(env, randomization_fn)
    return AutoReset(training.EpisodeWrapper(env, episode_length, action_repeat), full_reset)


def lengths(model, rng):
    """Return models of 0.5 to 2 m, one for each key."""
    drawn = jax.vmap(lambda key: jax.random.uniform(key, minval=0.5, maxval=2.0))(rng)
    in_axes = jax.tree.map(lambda x: None, model).replace(length=0)
    return model.replace(length=drawn), in_axes


@pytest.mark.parametrize("full_reset", [False, True])
def test_episodes_are_counted_and_restarted(full_reset):
    env = training.EvalWrapper(wrap(Pendulum(), full_reset=full_reset))
    first = jax.jit(env.reset)(jax.random.split(jax.random.PRNGKey(0), 4))
    state, step = first, jax.jit(env.step)
    for _ in range(2 * EPISODE):
        state = step(state, jnp.zeros((4, 1)))
    np.testing.assert_array_equal(state.info["episodes"], 2)
    np.testing.assert_array_equal(state.info["taken"], 2 * EPISODE)
    np.testing.assert_array_equal(state.info["truncation"], 1)
    again = np.all(state.data == first.data, axis=1)
    np.testing.assert_array_equal(again, not full_reset)
    # A pendulum within 0.1 rad of the upright, at 0.1 rad/s, stays within 1 rad for 0.5 s.
    told = state.info["eval_metrics"].episode_metrics
    assert np.all(told["reward"] > EPISODE * math.cos(1.0)) and np.all(told["reward"] <= EPISODE)
    np.testing.assert_allclose(told["upright"], told["reward"], rtol=1e-6)


def test_models_that_differ_move_differently():
    keys = jax.random.split(jax.random.PRNGKey(1), 16)
    env = wrap(Pendulum(), randomization_fn=functools.partial(lengths, rng=keys))
    state = jax.jit(env.reset)(jnp.zeros((16, 2), jnp.uint32))
    assert len(np.unique(state.data[:, 0])) == 1
    state = jax.jit(env.step)(state, jnp.zeros((16, 1)))
    assert len(np.unique(state.data[:, 0])) == 16


@pytest.mark.filterwarnings("ignore:.*terminal_obs")
def test_ppo_trains_saves_and_plays(tmp_path):
    """The trainer randomizes, evaluates and saves; a second call only loads, and plays the same."""
    factory = functools.partial(
        networks.make_ppo_networks,
        policy_hidden_layer_sizes=(8,),
        value_hidden_layer_sizes=(8,),
        policy_obs_key="state",
        value_obs_key="privileged_state",
    )
    train = functools.partial(
        ppo.train,
        episode_length=EPISODE,
        num_envs=8,
        batch_size=8,
        num_minibatches=2,
        unroll_length=5,
        num_updates_per_batch=2,
        num_eval_envs=4,
        normalize_observations=True,
        network_factory=factory,
        wrap_env_fn=wrap,
        seed=1,
    )
    told = []
    pendulum: Any = Pendulum()
    make_policy, params, _ = train(
        environment=pendulum,
        num_timesteps=320,
        num_evals=2,
        randomization_fn=lengths,
        progress_fn=lambda steps, metrics: told.append((steps, metrics)),
        save_checkpoint_path=tmp_path,
    )
    assert [steps for steps, _ in told] == [0, 320]
    for _, metrics in told:
        assert metrics["eval/avg_episode_length"] == EPISODE
        assert -EPISODE <= metrics["eval/episode_reward"] <= EPISODE
    saved = sorted(path for path in tmp_path.iterdir() if path.name.isdigit())
    loaded = train(
        environment=pendulum, num_timesteps=0, restore_checkpoint_path=saved[-1], num_evals=0
    )
    obs = jax.jit(Pendulum().reset)(jax.random.PRNGKey(2)).obs
    actions = [
        jax.jit(make(params, deterministic=True))(obs, jax.random.PRNGKey(3))[0]
        for make, params in ((make_policy, params), loaded[:2])
    ]
    assert actions[0].shape == (1,)
    np.testing.assert_array_equal(*actions)
