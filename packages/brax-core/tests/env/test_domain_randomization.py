"""Environments with physics of their own."""

import functools
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.env import DomainRandomizationVmapWrapper, Wrapper, wrap
from brax.errors import ConfigError, ShapeError


def with_axes(sys, **batched):
    """Return what a user's function returns: the system with batched leaves, and its axes."""
    in_axes = jax.tree.map(lambda x: None, sys).tree_replace({name: 0 for name in batched})
    return sys.tree_replace(batched), in_axes


def randomize(sys, rng):
    gain = jax.vmap(lambda key: jax.random.uniform(key, minval=1.0, maxval=2.0))(rng)
    return with_axes(sys, gain=gain * sys.gain)


def fixed(sys):
    return with_axes(sys, gain=jnp.array([1.0, 2.0, 3.0]))


def keys(n, seed=0):
    return jax.random.split(jax.random.key(seed), n)


def test_each_environment_has_its_own_system(walker):
    base = walker(gain=7.0)
    env = DomainRandomizationVmapWrapper(base, fixed)
    state = jax.jit(env.reset)(keys(3))
    state = jax.jit(env.step)(state, jnp.ones((3, 1)))
    assert state.reward.tolist() == [1, 2, 3]
    assert base.sys.gain == 7.0 and not isinstance(base.sys.gain, jax.core.Tracer)


def test_the_same_as_environments_built_one_by_one(walker):
    def final_obs(env, keys):
        state = env.reset(keys)
        actions = jnp.full((3, len(keys), 1), 0.5)
        return jax.lax.scan(lambda s, a: (env.step(s, a), None), state, actions)[0].obs

    run = jax.jit(final_obs, static_argnums=0)
    together = run(wrap(walker(), randomization_fn=fixed, episode_length=5), keys(3))
    for i, gain in enumerate([1.0, 2.0, 3.0]):
        alone = run(wrap(walker(gain=gain), episode_length=5), keys(3)[i : i + 1])
        assert np.array_equal(together[i], alone[0])


def test_wrappers_between_are_kept(walker):
    class Doubled(Wrapper):
        def step(self, state, action):
            return self.env.step(state, 2 * action)

    env = DomainRandomizationVmapWrapper(Doubled(walker()), fixed)
    state = env.step(env.reset(keys(3)), jnp.ones((3, 1)))
    assert state.reward.tolist() == [2, 4, 6]


@pytest.mark.parametrize("bound", [True, False], ids=["bound rng", "rng of reset"])
def test_both_forms_of_the_function(walker, bound):
    draw = functools.partial(randomize, rng=keys(4, seed=9)) if bound else randomize
    env = DomainRandomizationVmapWrapper(walker(gain=10.0), draw)
    gains = [jax.jit(env.reset)(keys(4, s)).info["randomized"]["gain"] for s in (0, 1)]
    assert ((gains[0] >= 10) & (gains[0] < 20)).all()
    assert np.array_equal(*gains) == bound


@pytest.mark.parametrize("way", ["key", "split", "fold_in"])
def test_what_is_drawn_says_nothing_of_the_start(walker: Any, make_key, way):
    """However a function and a reset make draws of their keys; of 400, chance gives 0.05."""
    own = {
        "key": lambda key: key,
        "split": lambda key: jax.random.split(key)[0],
        "fold_in": lambda key: jax.random.fold_in(key, 0),
    }

    class Splits(walker):
        def reset(self, rng):
            return super().reset(own[way](rng))

    def randomized(sys, rng, make):
        return randomize(sys, jax.vmap(make)(rng))

    for make in own.values():
        draw = functools.partial(randomized, make=make)
        env = DomainRandomizationVmapWrapper(Splits(), draw)
        state = env.reset(jax.random.split(make_key(0), 400))
        gain = state.info["randomized"]["gain"]
        assert abs(np.corrcoef(gain, state.info["start"])[0, 1]) < 0.2


def test_a_fresh_episode_draws_a_fresh_system(walker):
    modes: tuple[tuple[Literal["fresh", "cached"], bool], ...] = (
        ("fresh", True),
        ("cached", False),
    )
    for reset, changed in modes:
        env = wrap(walker(), 1, randomization_fn=randomize, reset=reset)
        first = jax.jit(env.reset)(keys(4))
        second = jax.jit(env.step)(first, jnp.ones((4, 1)))
        gain = [s.info["randomized"]["gain"] for s in (first, second)]
        assert np.array_equal(*gain) != changed
        np.testing.assert_array_equal(second.reward, gain[0])


def test_axes_other_than_the_first_and_prefix_trees(walker):
    def along_last(sys):
        gain = jnp.ones((1, 3)) * jnp.array([1.0, 2.0, 3.0])
        axes = jax.tree.map(lambda x: None, sys).replace(gain=1)
        return sys.replace(gain=gain), axes

    state = DomainRandomizationVmapWrapper(walker(), along_last).reset(keys(3))
    assert state.info["randomized"]["gain"].tolist() == [[1], [2], [3]]
    every: Any = lambda sys: (jax.tree.map(lambda x: jnp.stack([x, x]), sys), 0)  # noqa: E731
    state = DomainRandomizationVmapWrapper(walker(), every).reset(keys(2))
    assert set(state.info["randomized"]) == {"gain", "end"}


def test_counts_that_do_not_match(walker):
    env = DomainRandomizationVmapWrapper(walker(), fixed)
    with pytest.raises(ConfigError, match="3 values of gain, reset got 4 keys"):
        env.reset(keys(4))
    with pytest.raises(ConfigError, match="batch of keys"):
        env.reset(jax.random.key(0))
    state = env.reset(keys(3))
    with pytest.raises(ShapeError, match=r"shape \(2, 1\) for 3 environments: .* \(3, 1\)"):
        env.step(state, jnp.ones((2, 1)))
    alone = DomainRandomizationVmapWrapper(walker(), lambda sys: sys)
    with pytest.raises(ConfigError, match=r"returned one Rail; it must return two, \(systems, in_"):
        alone.reset(keys(3))
    nothing = DomainRandomizationVmapWrapper(walker(), with_axes)
    with pytest.raises(ConfigError, match="nothing differs"):
        nothing.reset(keys(4))
