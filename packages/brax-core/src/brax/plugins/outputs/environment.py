"""Output checks of environments: what `reset` and `step` return."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from brax import plugins
from brax.env.base import Env, State
from brax.env.structure import declared_shape, differences
from brax.env.wrappers.domain_randomization import DomainRandomizationVmapWrapper
from brax.errors import BraxError, ConfigError, PluginError, closest, describe_error
from brax.plugins.outputs.traced import blamed, describe


def make(name: str, **settings: object) -> Any:
    """Return an environment by name.

    Args:
        name: a registered name.
        **settings: keyword arguments of its constructor.

    Raises:
        ConfigError: if its constructor does not take one of the settings.
        UnknownNameError: if there is no such environment.
        PluginError: if the registered object does not make an environment.
    """
    maker = plugins.get("environment", name)
    who = plugins.specs("environment")[name]
    _check_settings(name, maker, settings)
    # A TypeError passes as it is: it usually says which argument is missing or has the wrong type.
    with blamed(who, " cannot be made:", passing=(TypeError,)):
        env = maker(**settings)
    if not all(callable(getattr(env, function, None)) for function in ("reset", "step")):
        raise PluginError(f"{who} must return a brax.env.Env, but returns {describe(env)}")
    return env


def settings_of(maker: Any) -> tuple[list[str], bool]:
    """Return the names of the settings that a function or class takes, and if it takes others."""
    try:
        parameters = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError):  # of a builtin
        return [], True
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return names, any(p.kind is p.VAR_KEYWORD for p in parameters)


def _check_settings(name: str, maker: object, settings: Mapping[str, object]) -> None:
    """Raise if the environment's constructor does not take a setting."""
    known, others = settings_of(maker)
    if others:
        return
    for setting in settings:
        if setting not in known:
            raise ConfigError(
                f"environment '{name}' takes no setting '{setting}'.{closest(setting, known)} "
                f"Settings: {', '.join(known) or 'none'}."
            )


def checked(name: str, env: Any) -> Any:
    """Return an environment, after checking its `reset` and `step` if it is a third-party one.

    Raises:
        PluginError: naming everything that is wrong.
    """
    who = plugins.specs("environment")[name]
    if not who.ours and (found := list(problems(env))):
        raise PluginError("".join(f"{who}: {problem}. " for problem in found).rstrip())
    return env


def problems(env: Env) -> Iterator[str]:
    """Yield what is wrong with an environment's sizes, and with the states that it returns."""
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
    # Brax's own messages name the fault; other errors are described with their line.
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
    yield from _randomization(env)


def _randomization(env: Env) -> Iterator[str]:
    """Yield what is wrong with the `randomization_fn` of an environment."""
    function = getattr(env, "randomization_fn", None)
    if function is None:
        return
    # A function that is a class attribute becomes a method, whose first argument is the
    # environment.
    if inspect.ismethod(function) and function.__self__ is env:
        yield (
            "randomization_fn must be a function of (sys, rng), but is a method: write "
            "randomization_fn = staticmethod(function)"
        )
        return
    try:
        draw = DomainRandomizationVmapWrapper(env, function).draw
        jax.eval_shape(draw, jax.random.split(jax.random.key(0), 2))
    except BraxError as error:
        yield f"randomization_fn: {error}"
    except Exception as error:
        yield f"randomization_fn raised {describe_error(error)}"


def _scalars(state: State) -> Iterator[str]:
    """Yield what is wrong with reward, done and metrics."""
    for name in ("reward", "done"):
        value = getattr(state, name)
        kinds = (jnp.float32, jnp.result_type(float))  # either, where double precision is enabled
        if not hasattr(value, "shape") or value.shape != () or value.dtype not in kinds:
            yield f"{name} must be float32[], but is {describe(value)}"
    for name, value in state.metrics.items():
        if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
            yield f"metrics.{name} must be a float [], but is {describe(value)}"


def _observation(env: Env, obs: Any) -> Iterator[str]:
    """Yield what is wrong with the observation of `reset`, or with `observation_size`."""
    if not isinstance(obs, Mapping):
        if len(obs.shape) != 1:
            yield f"obs must be a vector, or a dictionary, but is {describe(obs)}"
        elif env.observation_size != obs.shape[0]:
            yield f"observation_size is {env.observation_size}, but obs has {obs.shape[0]} entries"
        return
    declared, seen = env.observation_size, {name: part.shape for name, part in obs.items()}
    shapes = declared if isinstance(declared, Mapping) else {}
    if {name: declared_shape(x) for name, x in shapes.items()} != seen:
        yield f"observation_size is {declared}, but the shapes of obs are {seen}"
