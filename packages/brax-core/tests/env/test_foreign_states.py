"""Environments of other packages, whose states are not `brax.env.State`.

Playground's are such: a dataclass with `data` in place of `pipeline_state`, wrapped by wrappers of
its own around `EpisodeWrapper`.
"""

import functools
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.env import AutoResetWrapper, EpisodeWrapper, EvalWrapper, VmapWrapper, wrap
from brax.errors import ShapeError


@flax.struct.dataclass
class Data:
    """Physics with an array that all environments share."""

    place: jax.Array
    table: jax.Array


@flax.struct.dataclass
class ForeignState:
    """A state with fields of its own."""

    data: Data
    obs: jax.Array
    reward: jax.Array
    done: jax.Array
    metrics: dict[str, jax.Array]
    info: dict[str, Any]


class Walk:
    """A point that moves by its action; the episode ends beyond one. No subclass of `Env`."""

    action_size = 1
    observation_size = 1
    backend = ""

    @property
    def unwrapped(self):
        return self

    def reset(self, rng):
        place = jax.random.uniform(rng, (1,), maxval=0.1)
        data = Data(place, jnp.arange(3.0))
        zero = jnp.zeros(())
        return ForeignState(data, place, zero, zero, {"far": zero}, {"rng": rng})

    def step(self, state, action):
        place = state.data.place + action
        return state.replace(
            data=state.data.replace(place=place),
            obs=place,
            reward=place[0],
            done=jnp.where(place[0] > 1.0, 1.0, 0.0),
            metrics={"far": place[0]},
        )


def walk() -> Any:
    """Return an environment that type checkers do not know as one."""
    return Walk()


def run(env, keys, actions):
    """Return the states of all steps."""

    def step(state, action):
        state = env.step(state, action)
        return state, state

    first = jax.jit(env.reset)(keys)
    return first, jax.jit(lambda s, a: jax.lax.scan(step, s, a))(first, actions)[1]


KEYS = jax.random.split(jax.random.PRNGKey(0), 2)


@pytest.mark.parametrize("reset", ["cached", "fresh"])
def test_a_foreign_state_is_counted_ended_and_restarted(reset):
    env = EvalWrapper(wrap(walk(), episode_length=5, reset=reset))
    actions = jnp.stack([jnp.full((6, 1), 0.6), jnp.full((6, 1), 0.01)], axis=1)
    first, states = run(env, KEYS, actions)
    assert isinstance(states, ForeignState)
    # The first point passes 1 at its second and fourth step; the second one runs out of time.
    np.testing.assert_array_equal(states.done[:, 0], [0, 1, 0, 1, 0, 1])
    np.testing.assert_array_equal(states.info["truncation"][:, 1], [0, 0, 0, 0, 1, 0])
    np.testing.assert_array_equal(states.info["steps"][:, 0], [1, 2, 1, 2, 1, 2])
    start = first.data.place[0, 0]
    np.testing.assert_allclose(states.info["terminal_obs"][1, 0, 0], start + 1.2, rtol=1e-6)
    np.testing.assert_array_equal(states.data.place[1, 0], states.obs[1, 0])
    assert (states.obs[1, 0] == start) == (reset == "cached")
    assert states.obs[1, 0, 0] < 0.1
    np.testing.assert_array_equal(states.data.table, np.broadcast_to(np.arange(3.0), (6, 2, 3)))


def test_records_start_anew_when_another_wrapper_restarts():
    class Restart(VmapWrapper):
        """A wrapper of another package that restarts in the first state."""

        def reset(self, rng):
            state: Any = self.env.reset(rng)
            return state.replace(info=state.info | {"first": state.data})

        def step(self, state, action):
            state = self.env.step(state.replace(done=jnp.zeros_like(state.done)), action)
            pick = functools.partial(jax.vmap(jnp.where), state.done > 0)
            return state.replace(data=jax.tree.map(pick, state.info["first"], state.data))

    env = Restart(EpisodeWrapper(VmapWrapper(walk()), episode_length=3))
    _, states = run(env, KEYS, jnp.full((7, 2, 1), 0.01))
    np.testing.assert_array_equal(states.info["steps"][:, 0], [1, 2, 3, 1, 2, 3, 1])
    np.testing.assert_array_equal(
        states.info["episode_metrics"]["length"][:, 1], [1, 2, 3] * 2 + [1]
    )


@pytest.mark.parametrize("reset", ["cached", "fresh"])
def test_an_outer_wrapper_may_add_to_info(reset):
    class Noted(AutoResetWrapper):
        def reset(self, rng):
            state = super().reset(rng)
            return state.replace(info=state.info | {"note": jnp.arange(2.0)})

    env = Noted(EpisodeWrapper(VmapWrapper(walk()), episode_length=2), reset)
    _, states = run(env, KEYS, jnp.full((4, 2, 1), 0.01))
    np.testing.assert_array_equal(states.info["note"], np.broadcast_to(np.arange(2.0), (4, 2)))


def test_an_environment_need_not_say_the_size_of_its_actions():
    class Forward:
        """An environment with the two functions only."""

        reset = staticmethod(Walk().reset)
        step = staticmethod(Walk().step)

    forward: Any = Forward()
    env = VmapWrapper(forward)
    state = env.step(env.reset(KEYS), jnp.full((2, 1), 0.5))
    np.testing.assert_array_equal(state.obs, env.reset(KEYS).obs + 0.5)
    with pytest.raises(ShapeError, match=r"for 2 environments: pass one for each, \(2, \.\.\.\)"):
        env.step(state, jnp.zeros((3, 1)))


def test_what_is_no_state_is_one_sentence():
    class Wrong(Walk):
        def reset(self, rng):
            return {"obs": jnp.zeros(1)}

    with pytest.raises(ShapeError, match=r"Wrong\.reset must return a brax\.env\.State, or"):
        EpisodeWrapper(Wrong(), episode_length=2).reset(KEYS[0])  # type: ignore[arg-type]
