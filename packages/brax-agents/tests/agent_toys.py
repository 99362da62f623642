"""Environments without physics, and small settings, for tests of agents."""

import functools
import json
import os
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.env import Env, State
from brax.training import policies
from brax.training.agents.ppo import train as ppo
from brax.training.checkpoints import checkpoint
from brax.training.distributed import devices
from brax.training.learner import Parts
from brax.training.runner import parts

SMALL: dict[str, Any] = {
    "episode_length": 20,
    "num_envs": 16,
    "batch_size": 16,
    "num_minibatches": 2,
    "unroll_length": 5,
    "num_updates_per_batch": 4,
    "num_eval_envs": 64,
    "normalize_observations": True,
    "discounting": 0.9,
    "learning_rate": 5e-3,
    "network_factory": {
        "policy_hidden_layer_sizes": [16],
        "value_hidden_layer_sizes": [16],
    },
}
"""Settings of PPO that all tests start from, so that few programs are compiled."""

STEP = 160
"""Environment steps of one training step with these settings."""


def lists(params):
    """Parameters as lists of numbers.

    Statistics have added what rounding has left out of them: that alone is noise.
    """
    seen = params.normalizer
    if seen:
        exact = {
            name: jax.tree.map(lambda x, rest: np.float64(x) + rest, getattr(seen, name), rest)
            for name, rest in (("mean", seen.rest.mean), ("variance", seen.rest.variance))
        }
        params = params._replace(normalizer={**exact, "std": seen.std, "count": int(seen.count)})
    return [np.ravel(x).tolist() for x in jax.tree.leaves(params)]


class Point(Env):
    """A point on a line that is paid for being near the origin; it moves by its action.

    An episode of 20 steps earns at most 20, and 10 on average by doing nothing.
    """

    action_size = 1

    def reset(self, rng: jax.Array) -> State:
        x = jax.random.uniform(rng, (2,), minval=-1.0, maxval=1.0)
        zero = jnp.zeros(())
        return State(x, x, zero, zero, {"distance": zero}, {})

    def step(self, state: State, action: jax.Array) -> State:
        x = state.pipeline_state
        x = jnp.stack([jnp.clip(x[0] + 0.2 * action[0], -2.0, 2.0), x[1]])
        distance = jnp.abs(x[0])
        return state.replace(
            pipeline_state=x, obs=x, reward=1.0 - distance, metrics={"distance": distance}
        )


class Counter(Env):
    """Observes the steps of its episode and after how many it ends of itself: 2 or 100.

    The reward is the number of the step.
    """

    action_size = 1

    def reset(self, rng: jax.Array) -> State:
        obs = jnp.array([0.0, 2.0]) + jnp.array([0.0, 98.0]) * jax.random.bernoulli(rng)
        zero = jnp.zeros(())
        return State(obs, obs, zero, zero, {}, {})

    def step(self, state: State, action: jax.Array) -> State:
        obs = state.pipeline_state + jnp.array([1.0, 0.0])
        done = (obs[0] >= obs[1]).astype(jnp.float32)
        return state.replace(pipeline_state=obs, obs=obs, reward=obs[0], done=done)


class Dot(Env):
    """Shows a dot of 2 x 2 pixels, and is paid for the action that says in which column it is.

    The dot is drawn anew in every step. Its column, 0 to 6, is -1 to 1 as an action; a step earns 1
    less the distance. What is best without seeing it, always 0, earns 3 / 7 a step on average.
    """

    action_size = 1

    def __init__(self, colour: int = 255) -> None:
        """`colour`: of the dot, on black."""
        self.colour = colour

    def reset(self, rng: jax.Array) -> State:
        zero = jnp.zeros(())
        return self._shown(State(None, None, zero, zero, {}, {}), rng)

    def step(self, state: State, action: jax.Array) -> State:
        column, key = state.pipeline_state
        reward = 1.0 - jnp.abs(action[0] - (column - 3.0) / 3.0)
        return self._shown(state.replace(reward=reward), key)

    def _shown(self, state: State, key: jax.Array) -> State:
        key, now = jax.random.split(key)
        row, column = jax.random.randint(now, (2,), 0, 7)
        dot = jnp.full((2, 2, 1), self.colour, jnp.uint8)
        image = jnp.zeros((8, 8, 1), jnp.uint8)
        image = jax.lax.dynamic_update_slice(image, dot, (row, column, 0))
        obs = {"pixels/view": image, "state": jnp.stack([100.0 * row, jnp.float32(1.0)])}
        return state.replace(pipeline_state=(column, key), obs=obs)


def on_devices(count, *arguments, timeout=600):
    """Run Python with so many devices made of the cores of the CPU; return what it prints."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "JAX_NUM_CPU_DEVICES": str(count), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def make_learner(agent, environment, **settings):
    """Return an agent's learner, not compiled, with these settings of the network factory."""
    config, runtime = agent.check(settings)
    key = jax.random.key(0)  # there is no randomization that would draw by it
    env = parts.wrap_environment(environment, config, runtime, config.num_envs, key)
    networks = functools.partial(
        agent.make_networks, **{**runtime.network_factory, **config.network_settings}
    )(
        environment.observation_size,
        environment.action_size,
        preprocess_observations_fn=policies.preprocessor(config.normalize_observations),
    )
    mesh = devices.env_mesh(config.num_envs, 1)
    return agent.learner(
        Parts(env, networks, config, runtime, mesh, parts.check_state(env, config))
    )


def check_same_bits(one, other):
    """Fail unless all arrays of two checkpoints are equal to the last bit."""
    whole, rest = (checkpoint.load(folder).arrays for folder in (one, other))
    assert whole.keys() == rest.keys()
    assert [name for name in whole if not np.array_equal(whole[name], rest[name])] == []


def params_on(count, settings):
    """Return the parameters of a short run of PPO on some devices, as lists."""
    own = {**SMALL, **settings, "run_evals": False, "max_devices_per_host": count}
    _, params, _ = ppo.train(Point(), **own)
    return lists(params)


ONE_AND_TWO = """
import sys
sys.path.insert(0, sys.argv[1])
import json, jax
from agent_toys import params_on
assert jax.device_count() == 2
print(json.dumps([params_on(count, json.loads(sys.argv[2])) for count in (1, 2)]))
"""


def check_two_devices_learn_what_one_learns(**settings):
    """Fail unless PPO learns the same on one and on two devices, up to the order of sums."""
    folder = os.path.dirname(__file__)
    one, two = json.loads(on_devices(2, "-c", ONE_AND_TWO, folder, json.dumps(settings)))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
