"""Environments whose steps are compiled once for all tests."""

from types import SimpleNamespace

import jax
import pytest

from brax import envs


def compiled(name):
    """Return an environment, 512 starts of it, and its compiled `step`."""
    env = envs.get_environment(name)
    reset = jax.jit(jax.vmap(env.reset))
    starts = reset(jax.random.split(jax.random.key(0), 512))
    start = jax.tree.map(lambda x: x[0], starts)
    return SimpleNamespace(env=env, reset=reset, starts=starts, start=start, step=jax.jit(env.step))


def lost(state):
    """Return a state whose physics is NaN."""
    return state.replace(pipeline_state=state.pipeline_state * float("nan"))


@pytest.fixture(scope="session")
def ant():
    return compiled("ant")


@pytest.fixture(scope="session")
def pendulum():
    return compiled("inverted_pendulum")


@pytest.fixture(name="lost", scope="session")
def _lost():
    return lost
