"""Objects that are no environment, state or action raise one clear error."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from brax.env import (
    AutoResetWrapper,
    EpisodeWrapper,
    EvalWrapper,
    Randomization,
    Range,
    VmapWrapper,
    wrap,
)
from brax.env.wrappers import DomainRandomizationVmapWrapper
from brax.errors import ConfigError, ShapeError


@pytest.mark.parametrize("wrapper", [VmapWrapper, AutoResetWrapper, EvalWrapper, wrap])
def test_a_wrapper_takes_an_environment(walker, wrapper):
    name = "VmapWrapper" if wrapper is wrap else wrapper.__name__
    with pytest.raises(ConfigError, match=rf"{name}: env is the class Walker: give an instance"):
        wrapper(walker)
    with pytest.raises(ConfigError, match=rf"{name}: env is the name 'ant': give the environment"):
        wrapper("ant")


def single(walker):
    """Return a state without wrappers, and an action for it."""
    return jax.eval_shape(walker().reset, jax.random.key(0)), jnp.zeros(1)


def draws(env):
    """Return the environment with systems that a function draws."""
    draw: Any = lambda sys: (sys, None)  # noqa: E731
    return DomainRandomizationVmapWrapper(env, draw)


WRAPPED: dict[str, tuple[Any, str]] = {
    "episode": (lambda env: EpisodeWrapper(env, 5), r"no info\['steps'\]"),
    "reset": (AutoResetWrapper, r"no info\['terminal_obs'\]"),
    "fresh": (lambda env: AutoResetWrapper(env, "fresh"), r"no info\['terminal_obs'\]"),
    "eval": (EvalWrapper, r"no info\['eval_metrics'\]"),
    "draws": (draws, r"no info\['randomized'\]"),
    "batch": (VmapWrapper, "got a single state; pass the batch"),
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_a_wrapper_takes_the_states_of_its_own_reset(walker, kind):
    make, message = WRAPPED[kind]
    state, action = single(walker)
    env = make(walker())
    with pytest.raises(ShapeError, match=message):
        env.step(state, action)
    with pytest.raises(ShapeError, match=r"step needs the state .* a builtins.dict"):
        env.step(state.pipeline_state, action)


@pytest.mark.parametrize("action", [None, [[0.0], [0.0]], 0.0])
def test_a_batch_takes_an_array_of_actions(walker, action):
    env = VmapWrapper(walker())
    states = jax.eval_shape(env.reset, jax.random.split(jax.random.key(0), 2))
    with pytest.raises(ShapeError, match=r"needs an action, an array of shape \(2, 1\), got"):
        env.step(states, action)


@pytest.mark.parametrize("wrapper", [AutoResetWrapper, lambda env: EpisodeWrapper(env, 5)])
def test_an_environment_is_wrapped_once(walker, wrapper):
    with pytest.raises(ConfigError, match=r"Wrapper: the environment is in a \w+ already"):
        wrapper(wrap(walker(), 5))


def test_what_is_drawn_is_declared(walker):
    with pytest.raises(ConfigError, match="randomization_fn=3 must be a function"):
        wrap(walker(), randomization_fn=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="low and high must be numbers, got 'a'"):
        Range("a", 1.0)
    with pytest.raises(ConfigError, match=r"cannot randomize 'gain' by 0\.5: give a Range"):
        Randomization({"gain": 0.5})  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match="needs a dictionary of Ranges by quantity, got 3"):
        Randomization(3)  # type: ignore[arg-type]
