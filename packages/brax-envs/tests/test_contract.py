"""Every environment of the collection keeps the contract."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax import envs, plugins
from brax.env import wrap
from brax.testing import check_environment

OURS = [n for n, s in plugins.specs("environment").items() if s.distribution == "brax-envs"]


@pytest.mark.parametrize("name", OURS)
def test_structure(name):
    check_environment(envs.get_environment(name), steps=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_a_thousand_random_steps_are_finite(name):
    env = wrap(envs.get_environment(name), episode_length=1000, reset="fresh")

    def step(carry, key):
        state, sane = carry
        action = jax.random.uniform(key, (64, env.action_size), minval=-1, maxval=1)
        state = env.step(state, action)
        leaves = [x for x in jax.tree.leaves(state) if jnp.issubdtype(x.dtype, jnp.inexact)]
        sane &= jnp.array([jnp.isfinite(x).all() for x in leaves]).all()
        return (state, sane), (state.info["nan"], state.done, jnp.abs(state.obs).max())

    @jax.jit
    def run(key):
        state = env.reset(jax.random.split(key, 64))
        keys = jax.random.split(key, 1000)
        return jax.lax.scan(step, (state, jnp.array(True)), keys)

    (_, sane), (lost, done, largest) = run(jax.random.key(0))
    assert sane and lost.sum() == 0
    assert done.sum() > 0
    assert largest.max() < 1e3


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_eager_and_compiled_agree(name):
    env = envs.get_environment(name)
    action = jnp.linspace(-1, 1, env.action_size)
    eager = env.step(env.reset(jax.random.key(0)), action)
    compiled = jax.jit(env.step)(jax.jit(env.reset)(jax.random.key(0)), action)
    for a, b in zip(jax.tree.leaves(eager), jax.tree.leaves(compiled), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
