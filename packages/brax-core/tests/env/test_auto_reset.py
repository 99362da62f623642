"""Auto-reset: the part of the state that a new episode replaces, and the part that stays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.env import AutoResetWrapper, EpisodeWrapper, Wrapper, wrap
from brax.errors import ConfigError


def rollout(env, state, actions):
    """All states after each row of actions, stacked along the first axis."""

    def step(state, row):
        state = env.step(state, row[:, None])
        return state, state

    return jax.jit(lambda s, a: jax.lax.scan(step, s, a)[1])(state, jnp.float32(actions))


@pytest.mark.parametrize("reset", ["cached", "fresh"])
def test_only_what_has_ended_starts_anew(walker, make_key, reset):
    # T92
    env = wrap(walker(end=2.6), episode_length=9, reset=reset)
    first = jax.jit(env.reset)(jax.random.split(make_key(1), 2))
    s = rollout(env, first, [[2, 0.25]] * 3)
    # Environment 0 ends in step 2, beyond 2.6; environment 1 goes on.
    assert s.done.tolist() == [[0, 0], [1, 0], [0, 0]]
    assert s.info["steps"].tolist() == [[1, 1], [2, 2], [1, 3]]
    assert s.info["termination"].tolist() == [[0, 0], [1, 0], [0, 0]]
    assert s.info["episode_metrics"]["sum_reward"].tolist() == [[2, 0.25], [4, 0.5], [2, 0.75]]
    assert s.reward.tolist() == [[2, 0.25]] * 3
    assert s.metrics["squared"].tolist() == [[4, 0.0625]] * 3
    start = first.obs[0, 0]
    np.testing.assert_allclose(s.info["terminal_obs"][1, 0, 0], start + 4, rtol=1e-6)
    assert np.array_equal(s.info["terminal_obs"][1, 1], s.obs[1, 1])
    # What the next episode starts from is one reset's, whole: obs, physics and info agree.
    restarted = s.obs[1, 0, 0]
    assert restarted == s.pipeline_state["x"][1, 0] == s.info["start"][1, 0]
    assert (restarted == start) == (reset == "cached")
    np.testing.assert_allclose(s.obs[2, 0, 0], restarted + 2, rtol=1e-6)
    assert s.info["start"][2, 1] == first.info["start"][1]


def test_fresh_episodes_differ_and_repeat_with_the_key(walker):
    env = wrap(walker(), episode_length=1, reset="fresh")
    run = lambda seed: rollout(  # noqa: E731
        env, jax.jit(env.reset)(jax.random.split(jax.random.key(seed), 3)), jnp.ones((20, 3))
    )
    starts = np.asarray(run(0).obs).ravel()
    assert len(set(starts.tolist())) == 60
    assert 0.2 < starts.mean() < 0.3  # uniform in [0, 0.5): 60 draws have a deviation of 0.019
    assert np.array_equal(run(0).obs, run(0).obs)
    assert not np.array_equal(run(0).obs, run(1).obs)


@pytest.mark.parametrize("reset", ["cached", "fresh"])
def test_what_all_environments_share_is_not_reset(walker, reset):
    """A batch of its own with one counter, and one key, for all its environments."""

    class Herd(Wrapper):
        def reset(self, rng):
            state = jax.vmap(self.env.reset)(rng)
            return state.replace(
                info=state.info | {"level": jnp.int32(7), "key": jax.random.key(3)}
            )

        def step(self, state, action):
            later = jax.random.split(state.info["key"])[1]
            info = state.info | {"level": state.info["level"] + 1, "key": later}
            own = {"start": info["start"]}
            state = jax.vmap(self.env.step)(state.replace(info=own), action)
            return state.replace(info=info)

    env = AutoResetWrapper(EpisodeWrapper(Herd(walker(end=2.6)), 9), reset)
    first = jax.jit(env.reset)(jax.random.split(jax.random.key(1), 2))
    # Environment 0 ends in steps 2 and 4.
    s = rollout(env, first, [[2, 0.25]] * 4)
    assert s.done.tolist() == [[0, 0], [1, 0], [0, 0], [1, 0]]
    assert s.info["level"].tolist() == [8, 9, 10, 11]
    key = jax.random.key(3)
    for k in range(4):
        key = jax.random.split(key)[1]
        assert s.info["key"][k] == key
    assert s.obs[1, 0] == s.info["start"][1, 0]


@pytest.mark.parametrize("reset", ["cached", "fresh"])
def test_one_environment_without_a_batch_is_the_same_as_in_one(walker, reset):
    env = AutoResetWrapper(EpisodeWrapper(walker(end=2.6), 9), reset)
    keys = jax.random.split(jax.random.PRNGKey(1), 2)
    batch = wrap(walker(end=2.6), 9, reset=reset)
    together = jax.jit(batch.reset)(keys)
    alone = jax.jit(jax.vmap(env.reset))(keys)
    step, vstep = jax.jit(batch.step), jax.jit(jax.vmap(env.step))
    for _ in range(4):
        together, alone = step(together, jnp.ones((2, 1))), vstep(alone, jnp.ones((2, 1)))
    assert jax.tree.all(jax.tree.map(np.array_equal, together, alone))


def test_a_blown_up_environment_is_counted_and_starts_anew(walker):
    env = wrap(walker(end=jnp.inf), episode_length=50)
    first = jax.jit(env.reset)(jax.random.split(jax.random.key(0), 64))
    calm = np.full((5, 64), 0.5)
    hurt = calm.copy()
    hurt[2, 17] = np.nan
    a, b = rollout(env, first, hurt), rollout(env, first, calm)
    assert a.info["nan"].sum() == 1 and a.info["nan"][2, 17] == 1
    assert a.obs[2, 17] == first.obs[17]
    assert a.info["steps"][:, 17].tolist() == [1, 2, 3, 1, 2]
    assert all(bool(jnp.isfinite(x).all()) for x in jax.tree.leaves(a))
    others = np.arange(64) != 17
    same = jax.tree.map(lambda x, y: np.array_equal(x[:, others], y[:, others]), a, b)
    assert jax.tree.all(same)


def test_the_mode_must_be_known(walker):
    with pytest.raises(ConfigError, match="'cached' or 'fresh', got 'never'"):
        wrap(walker(), reset="never")  # type: ignore[arg-type]
