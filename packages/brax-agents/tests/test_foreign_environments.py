"""Training on environments of other packages, in wrappers of their own, as Playground's are."""

import functools
import math
import time
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import pytest
from agent_toys import SMALL

from brax.env import EpisodeWrapper, VmapWrapper
from brax.training.agents.es import train as es
from brax.training.agents.ppo import train as ppo
from brax.training.agents.sac import train as sac


@flax.struct.dataclass
class ForeignState:
    """A state that is not a `brax.env.State`."""

    data: jax.Array
    obs: jax.Array
    reward: jax.Array
    done: jax.Array
    metrics: dict[str, jax.Array]
    info: dict[str, Any]


class ForeignPoint:
    """A point that moves by its action and is paid for being near the origin."""

    action_size = 1
    observation_size = 2

    @property
    def unwrapped(self):
        return self

    def reset(self, rng):
        place = jax.random.uniform(rng, (2,), minval=-1.0)
        zero = jnp.zeros(())
        return ForeignState(place, place, zero, zero, {"near": zero}, {"rng": rng})

    def step(self, state, action):
        # Written into the environment while it is traced, as Playground's wrappers write the
        # randomized model. Another thread that traces it meanwhile would change it.
        self._action = action
        time.sleep(0.05)
        place = state.data.at[0].add(0.2 * self._action[0])
        reward = 1.0 - jnp.abs(place[0])
        return state.replace(data=place, obs=place, reward=reward, metrics={"near": reward})


class Restart:
    """A wrapper that restarts in the first state and reads the size of the batch off the keys."""

    def __init__(self, env):
        self.env = env

    def __getattr__(self, name):
        return getattr(self.env, name)

    def reset(self, rng):
        (size,) = rng.shape[:-1]
        state = self.env.reset(rng)
        assert state.done.shape == (size,)
        return state.replace(info=state.info | {"first": (state.data, state.obs)})

    def step(self, state, action):
        state = self.env.step(state.replace(done=jnp.zeros_like(state.done)), action)
        pick = functools.partial(jax.vmap(jnp.where), state.done > 0)
        first = state.info["first"]
        data, obs = jax.tree.map(pick, first, (state.data, state.obs))
        return state.replace(data=data, obs=obs)


def wrapped(env, episode_length, action_repeat, randomization_fn=None):
    """Return the batch of an environment, as `wrap_env_fn`."""
    return Restart(EpisodeWrapper(VmapWrapper(env), episode_length, action_repeat))


AGENTS: dict[str, Any] = {
    "ppo": (ppo, {k: v for k, v in SMALL.items() if k != "num_eval_envs"}, 320),
    "es": (es, {"population_size": 8, "episode_length": 20}, 320),
    "sac": (
        sac,
        {"num_envs": 16, "batch_size": 16, "min_replay_size": 32, "episode_length": 20},
        320,
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*terminal_obs")
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_trains_an_environment_of_another_package(name):
    agent, settings, steps = AGENTS[name]
    seen = []
    agent.train(
        ForeignPoint(),
        steps,
        **settings,
        wrap_env_fn=wrapped,
        num_eval_envs=8,
        num_evals=2,
        progress_fn=lambda steps, metrics: seen.append(metrics),
    )
    assert all(math.isfinite(m["eval/episode_reward"]) for m in seen)
    # Episodes are counted anew: every one has 20 steps.
    assert seen[-1]["eval/avg_episode_length"] == 20
