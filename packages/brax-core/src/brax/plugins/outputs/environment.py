"""Output checks of environments: what `reset` and `step` return."""

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from brax import plugins
from brax.env.base import Env, State
from brax.env.structure import differences
from brax.errors import BraxError, PluginError, describe_error
from brax.plugins.outputs.traced import describe


def make(name: str, **settings: Any) -> Any:
    """Makes an environment by name.

    Args:
        name: a registered name.
        **settings: what its constructor takes.

    Raises:
        UnknownNameError: if there is no such environment.
        PluginError: if what is registered makes none.
    """
    env = plugins.get("environment", name)(**settings)
    if not all(callable(getattr(env, function, None)) for function in ("reset", "step")):
        who = plugins.specs("environment")[name]
        raise PluginError(f"{who} must return a brax.env.Env, but returns {describe(env)}")
    return env


def checked(name: str, env: Any) -> Any:
    """Returns an environment whose reset and step were found right, if another package made it.

    Raises:
        PluginError: naming everything that is wrong.
    """
    who = plugins.specs("environment")[name]
    if not who.ours and (found := list(problems(env))):
        raise PluginError("".join(f"{who}: {problem}. " for problem in found).rstrip())
    return env


def problems(env: Env) -> Iterator[str]:
    """Gives what is wrong with an environment's sizes, and with the states that it returns."""
    if type(env.action_size) is not int or env.action_size < 0:
        yield f"action_size must be a number of entries, got {env.action_size!r}"
        return
    action = jax.ShapeDtypeStruct((env.action_size,), jnp.float32)
    name, states = "reset", []
    try:
        states.append(jax.eval_shape(env.reset, jax.random.key(0)))
        if isinstance(states[0], State):
            name = "step"
            states.append(jax.eval_shape(env.step, states[0], action))
    except BraxError as error:
        yield f"{name}: {error}"
        return
    except Exception as error:
        yield f"{name} raised {describe_error(error)}"
        return
    if not isinstance(states[-1], State):
        got = "None" if states[-1] is None else type(states[-1]).__name__
        yield f"{name} must return a brax.env.State, but returns {got}"
        return
    start, after = states
    yield from differences(start, after)
    yield from _scalars(start)
    yield from _observation(env, start.obs)


def _scalars(state: State) -> Iterator[str]:
    for name in ("reward", "done"):
        value = getattr(state, name)
        kinds = (jnp.float32, jnp.result_type(float))  # either, where double precision is enabled
        if not hasattr(value, "shape") or value.shape != () or value.dtype not in kinds:
            yield f"{name} must be float32[], but is {describe(value)}"
    for name, value in state.metrics.items():
        if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
            yield f"metrics.{name} must be a float [], but is {describe(value)}"


def _observation(env: Env, obs: Any) -> Iterator[str]:
    """What is wrong with the observation that reset returns, or with what the size says of it."""
    if not isinstance(obs, Mapping):
        if len(obs.shape) != 1:
            yield f"obs must be a vector, or a dictionary, but is {describe(obs)}"
        elif env.observation_size != obs.shape[0]:
            yield f"observation_size is {env.observation_size}, but obs has {obs.shape[0]} entries"
        return
    told, seen = env.observation_size, {name: part.shape for name, part in obs.items()}
    shapes = told if isinstance(told, Mapping) else {}
    if {name: (x,) if isinstance(x, int) else tuple(x) for name, x in shapes.items()} != seen:
        yield f"observation_size is {told}, but the shapes of obs are {seen}"
