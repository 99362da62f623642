"""Environments whose steps are compiled once for all tests."""

from types import SimpleNamespace

import jax
import pytest

from brax import envs


def compiled(name):
    """An environment with its `reset` and `step` compiled."""
    env = envs.get_environment(name)
    return SimpleNamespace(env=env, reset=jax.jit(env.reset), step=jax.jit(env.step))


@pytest.fixture(scope="session")
def ant():
    return compiled("ant")


@pytest.fixture(scope="session")
def pendulum():
    return compiled("inverted_pendulum")
