"""A client in the style of QDax: a population of policies is scored and archived.

Wrappers inside and outside the automatic reset write a descriptor into `info`. A population of
policies plays one episode each in a scan, and its transitions go to a replay buffer.
"""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import envs
from brax.envs.base import Wrapper
from brax.envs.wrappers import training

EPISODE, POPULATION, CELLS = 20, 6, 5


class PositionWrapper(Wrapper):
    """Writes the cart's position into `info`."""

    def __init__(self, env):
        super().__init__(env)
        self._link = self.env.sys.link_names.index("cart")

    def reset(self, rng):
        return self._described(self.env.reset(rng))

    def step(self, state, action):
        return self._described(self.env.step(state, action))

    def _described(self, state):
        state.info["state_descriptor"] = state.pipeline_state.x.pos[self._link, :1]
        return state


class DescriptorResetWrapper(Wrapper):
    """Restarts the descriptor with the episode, outside the automatic reset."""

    def reset(self, rng):
        state = self.env.reset(rng)
        state.info["first_descriptor"] = state.info["state_descriptor"]
        return state

    def step(self, state, action):
        state = self.env.step(state, action)
        first, now = state.info["first_descriptor"], state.info["state_descriptor"]
        state.info["state_descriptor"] = jnp.where(state.done > 0, first, now)
        return state


class Policy(nn.Module):
    """A linear policy."""

    actions: int

    @nn.compact
    def __call__(self, obs):
        return jnp.tanh(nn.Dense(self.actions)(obs))


@pytest.fixture(scope="module")
def env():
    env = PositionWrapper(envs.get_environment("inverted_pendulum", backend="spring"))
    return DescriptorResetWrapper(training.AutoResetWrapper(training.EpisodeWrapper(env, EPISODE)))


def play_step(env, policy, carry, _):
    """Advance one policy's environment, and return the transition."""
    state, params = carry
    action = policy.apply(params, state.obs)
    after = env.step(state, action)
    transition = {
        "obs": state.obs,
        "next_obs": after.obs,
        "action": action,
        "reward": after.reward,
        "done": after.done,
        "truncation": after.info["truncation"],
        "descriptor": state.info["state_descriptor"],
    }
    return (after, params), transition


@pytest.fixture(scope="module")
def scored(env):
    """Return the function that scores a population, compiled once, and its first population."""
    policy = Policy(env.action_size)
    keys = jax.random.split(jax.random.key(0), POPULATION)
    params = jax.vmap(policy.init, in_axes=(0, None))(keys, jnp.zeros(env.observation_size))

    @jax.jit
    def score(params, key):
        first = jax.vmap(env.reset)(jax.random.split(key, POPULATION))
        step = functools.partial(play_step, env, policy)
        _, data = jax.vmap(lambda *carry: jax.lax.scan(step, carry, length=EPISODE))(first, params)
        # Steps after the first end of an episode do not count.
        counts = jnp.cumsum(data["done"], axis=1) - data["done"] == 0
        fitness = jnp.sum(data["reward"] * counts, axis=1)
        last = jnp.sum(counts, axis=1) - 1
        return fitness, data["descriptor"][jnp.arange(POPULATION), last, 0], data

    return score, params


def test_a_population_is_scored(scored):
    score, params = scored
    fitness, descriptor, data = score(params, jax.random.key(1))
    assert np.all((fitness > 0) & (fitness <= EPISODE)) and np.all(np.abs(descriptor) < 1)
    # The next observation is that of the next step, except where an episode restarted.
    same = np.all(data["next_obs"][:, :-1] == data["obs"][:, 1:], axis=-1)
    assert np.all(same)
    starts = np.all(data["obs"][:, 1:] == data["obs"][:, :1], axis=-1)
    np.testing.assert_array_equal(starts, data["done"][:, :-1] > 0)
    first = np.broadcast_to(data["descriptor"][:, :1], data["descriptor"][:, 1:].shape)
    np.testing.assert_array_equal(data["descriptor"][:, 1:][starts], first[starts])


def test_an_archive_fills_with_policies_that_differ(scored):
    """MAP-Elites in a few lines: the best of each cell stays, its children are tried."""
    score, params = scored
    archive = jax.tree.map(lambda x: jnp.zeros((CELLS, *x.shape[1:])), params)
    best = jnp.full(CELLS, -jnp.inf)

    @jax.jit
    def insert(archive, best, params, fitness, descriptor):
        cell = jnp.clip(jnp.floor((descriptor + 0.2) / 0.4 * CELLS), 0, CELLS - 1).astype(int)
        for i in range(POPULATION):
            better = fitness[i] > best[cell[i]]
            archive = jax.tree.map(
                lambda a, p, i=i, b=better: a.at[cell[i]].set(jnp.where(b, p[i], a[cell[i]])),
                archive,
                params,
            )
            best = best.at[cell[i]].max(fitness[i])
        return archive, best

    totals = []
    for key in jax.random.split(jax.random.key(2), 4):
        fitness, descriptor, _ = score(params, key)
        archive, best = insert(archive, best, params, fitness, descriptor)
        totals.append(float(jnp.sum(jnp.where(jnp.isfinite(best), best, 0))))
        picks = jax.random.categorical(
            key, jnp.where(jnp.isfinite(best), 0.0, -jnp.inf), shape=(6,)
        )
        params = jax.tree.map(
            lambda a, key=key, picks=picks: a[picks] + 0.5 * jax.random.normal(key, a[picks].shape),
            archive,
        )
    assert totals == sorted(totals)
    assert np.isfinite(best).sum() > 1


def test_transitions_go_to_a_replay_buffer(scored):
    score, params = scored
    *_, data = score(params, jax.random.key(3))
    rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), data)
    count, size = POPULATION * EPISODE, 200
    buffer = jax.tree.map(lambda x: jnp.zeros((size, *x.shape[1:])), rows)

    @jax.jit
    def insert(buffer, rows, at):
        where = (at + jnp.arange(count)) % size
        return jax.tree.map(lambda table, new: table.at[where].set(new), buffer, rows)

    buffer = insert(insert(buffer, rows, 0), rows, count)
    # The second insertion wraps around: 80 rows at the end, 40 over the oldest.
    for name, table in buffer.items():
        np.testing.assert_array_equal(table[count:], rows[name][: size - count])
        np.testing.assert_array_equal(table[: 2 * count - size], rows[name][size - count :])
