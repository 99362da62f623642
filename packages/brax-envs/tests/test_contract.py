"""Every environment of the collection keeps the contract, on every pipeline."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import envs, plugins
from brax.env import wrap
from brax.testing import check_environment

OURS = [n for n, s in plugins.specs("environment").items() if s.distribution == "brax-envs"]
BACKENDS = ("generalized", "positional", "spring")
SMALL = ("ant", "fast", "inverted_double_pendulum", "inverted_pendulum", "reacher")


@pytest.mark.parametrize(
    "name", [n if n in SMALL else pytest.param(n, marks=pytest.mark.slow) for n in OURS]
)
def test_structure(name):
    # T93
    check_environment(envs.get_environment(name), steps=0)


LARGEST = ("fetch", "grasp", "halfcheetah", "humanoid", "humanoidstandup", "pusher")
"""Compiling these takes minutes."""

MIDDLE = (
    "hopper",
    "inverted_double_pendulum",
    "reacher",
    "reacherangle",
    "swimmer",
    "ur5e",
    "walker2d",
)
LARGE = (*LARGEST, *MIDDLE)
"""Compiling these takes half a minute or more."""

# CI runs the smaller ones on their default pipeline, which comes first.
EVERY = [
    pytest.param(name, backend, marks=[pytest.mark.long] * (name in LARGEST or i > 0))
    for name in OURS
    if name != "fast"
    for i, backend in enumerate(BACKENDS)
]


@pytest.mark.slow
@pytest.mark.parametrize("name, backend", EVERY)
def test_a_thousand_random_steps(name, backend):
    # T93
    env = envs.get_environment(name, backend=backend)
    wrapped = wrap(env, episode_length=1000)

    def step(state, key):
        action = jax.random.uniform(key, (64, env.action_size), minval=-1, maxval=1)
        state = wrapped.step(state, action)
        terms = [v for name, v in state.metrics.items() if name.startswith("reward_")]
        return state, (state.obs, state.reward, sum(terms), state.done, state.info["nan"])

    @jax.jit
    def run(key):
        state = wrapped.reset(jax.random.split(key, 64))
        return jax.lax.scan(step, state, jax.random.split(key, 1000))

    last, (obs, reward, terms, done, lost) = run(jax.random.key(0))
    assert obs.shape == (1000, 64, env.observation_size) and obs.dtype == jnp.float32
    assert reward.dtype == done.dtype == jnp.float32 and reward.shape == (1000, 64)
    for leaf in jax.tree.leaves((last, obs, reward)):
        assert not jnp.issubdtype(leaf.dtype, jnp.inexact) or jnp.isfinite(leaf).all()
    assert lost.sum() == 0
    assert ((done == 0) | (done == 1)).all() and done.any(axis=0).all()  # if only by time
    np.testing.assert_allclose(reward, terms, rtol=1e-5, atol=1e-5)
    assert jnp.abs(obs).max() < 1e3


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.long] * (n in LARGE)) for n in OURS]
)
def test_eager_and_compiled_agree(name):
    """In double precision: in single, small forces beside large ones differ by their rounding."""
    with jax.enable_x64(True):
        env = envs.get_environment(name)
        action = jnp.linspace(-1, 1, env.action_size)
        eager = env.step(env.reset(jax.random.key(0)), action)
        compiled = jax.jit(env.step)(jax.jit(env.reset)(jax.random.key(0)), action)
        for a, b in zip(jax.tree.leaves(eager), jax.tree.leaves(compiled), strict=True):
            assert a.dtype == b.dtype
            if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
                a, b = jax.random.key_data(a), jax.random.key_data(b)
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
