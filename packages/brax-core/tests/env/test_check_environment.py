"""The conformance check finds each breach, and names it."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from brax.env import Env
from brax.errors import PluginError
from brax.testing import check_environment


def test_a_good_environment_passes(walker):
    check_environment(walker())


def breaking(walker: Any, **changes):
    """Return a walker whose step changes its result."""

    class Broken(walker):
        def step(self, state, action):
            new = super().step(state, action)
            return new.replace(**{k: change(new) for k, change in changes.items()})

    return Broken()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"obs": lambda s: s.obs.astype(int)}, r"obs is float32\[1\] after reset and int32\[1\]"),
        ({"info": lambda s: {}}, "info.start is missing after step"),
        ({"metrics": lambda s: s.metrics | {"new": s.reward}}, "metrics.new appears only after"),
        ({"reward": lambda s: s.reward[None]}, r"reward is float32\[\] .* and float32\[1\] after"),
        (
            {"done": lambda s: s.done > 0},
            r"done is float32\[\] after reset and bool\[\] after step",
        ),
        ({"done": lambda s: s.done + 2}, "done must be 0 or 1"),
        ({"obs": lambda s: s.obs / 0 * 0}, r"obs is NaN after step"),
    ],
)
def test_a_breach_in_step(walker, changes, message):
    with pytest.raises(PluginError, match=f"Broken breaks the contract[^$]*{message}"):
        check_environment(breaking(walker, **changes))


def test_all_breaches_in_one_message(walker):
    env = breaking(walker, info=lambda s: {}, reward=lambda s: s.reward[None])
    with pytest.raises(PluginError, match=r"info\.start is missing") as caught:
        check_environment(env)
    assert "reward is float32[]" in str(caught.value)


def test_writing_into_info(walker: Any):
    class Writes(walker):
        def step(self, state, action):
            state.info["start"] = state.info["start"] + 1
            return super().step(state, action)

    with pytest.raises(PluginError, match="step writes into the info"):
        check_environment(Writes())


def test_scalars(walker: Any):
    class Integers(walker):
        def reset(self, rng):
            zero = jnp.int32(0)
            return super().reset(rng).replace(done=zero, metrics={"squared": jnp.zeros(2)})

    with pytest.raises(PluginError, match=r"done must be float32\[\], but is int32\[\]") as caught:
        check_environment(Integers())
    assert "metrics.squared must be a float [], but is float32[2]" in str(caught.value)


@pytest.mark.parametrize(
    "obs, size, message",
    [
        (lambda x: x, 1, r"obs must be a vector, or a dictionary, but is float32\[\]"),
        (lambda x: x[None], 2, "observation_size is 2, but obs has 1 entries"),
        (lambda x: {"a": x[None]}, {"b": (1,)}, r"size is \{'b'.*shapes of obs are \{'a': \(1,\)"),
        (lambda x: {"a": x[None]}, 1, r"observation_size is 1, but the shapes of obs are"),
    ],
)
def test_an_observation_is_what_its_size_says(walker: Any, obs, size, message):
    class Sees(walker):
        observation_size = size

        def reset(self, rng):
            state = super().reset(rng)
            return state.replace(obs=obs(state.pipeline_state["x"]))

        def step(self, state, action):
            new = super().step(state, action)
            return new.replace(obs=obs(new.pipeline_state["x"]))

    with pytest.raises(PluginError, match=message):
        check_environment(Sees(), steps=0)


def test_the_size_of_an_observation_may_be_a_number_of_numpy(walker: Any):
    class Sees(walker):
        observation_size: ClassVar[Any] = {"a": np.prod((1, 1))}

        def reset(self, rng):
            state = super().reset(rng)
            return state.replace(obs={"a": state.pipeline_state["x"][None]})

        def step(self, state, action):
            new = super().step(state, action)
            return new.replace(obs={"a": new.pipeline_state["x"][None]})

    check_environment(Sees(), steps=0)


def test_what_is_no_environment():
    with pytest.raises(PluginError, match=r"must be a brax\.env\.Env, but is object"):
        check_environment(object())  # type: ignore[arg-type]

    class Tuple(Env):
        action_size = 1

        def reset(self, rng):
            return jnp.zeros(3), {}

        def step(self, state, action):
            return state

    with pytest.raises(PluginError, match=r"must return a brax\.env\.State, but returns tuple"):
        check_environment(Tuple())


def test_keys_that_only_one_kind_fits(walker: Any):
    class OldKeys(walker):
        def reset(self, rng):
            state = super().reset(rng)
            return state if rng.ndim else state.replace(info=state.info | {"key": rng})

    with pytest.raises(PluginError, match="another structure for a PRNGKey"):
        check_environment(OldKeys(), steps=0)


def test_a_key_in_info_is_fine(walker: Any):
    class Keeps(walker):
        def reset(self, rng):
            state = super().reset(rng)
            return state.replace(info=state.info | {"key": jax.random.fold_in(rng, 1)})

    check_environment(Keeps())
