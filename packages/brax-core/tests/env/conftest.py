"""An environment small enough to work out by hand."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from brax.base import Base, dataclass
from brax.env import Env, State


@dataclass
class Rail(Base):
    """The system of `Walker`: what a step is worth, and where the rail ends."""

    gain: jax.Array
    end: jax.Array


class Walker(Env):
    """A point on a rail: `x` grows by `gain * action`, the episode ends beyond `end`.

    It starts between 0 and 0.5; `info['start']` keeps where. The reward is the way gone, and the
    metric `squared` its square.
    """

    action_size = 1

    def __init__(self, gain=1.0, end=10.0):
        self.sys: Any = Rail(jnp.float32(gain), jnp.float32(end))

    def reset(self, rng):
        x = jax.random.uniform(rng, (), maxval=0.5)
        zero = jnp.zeros(())
        return State({"x": x}, x[None], zero, zero, {"squared": zero}, {"start": x})

    def step(self, state, action):
        way = self.sys.gain * action[0]
        x = state.pipeline_state["x"] + way
        done = (x > self.sys.end).astype(jnp.float32)
        return state.replace(
            pipeline_state={"x": x},
            obs=x[None],
            reward=way,
            done=done,
            metrics={"squared": way**2},
        )


@pytest.fixture
def walker():
    """Return the class `Walker`."""
    return Walker


@pytest.fixture(params=[jax.random.key, jax.random.PRNGKey], ids=["key", "PRNGKey"])
def make_key(request):
    """Both ways of making a key."""
    return request.param
