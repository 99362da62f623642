"""`check_environment`: whether an environment keeps the contract of `brax.env`."""

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from brax.env import Env, State
from brax.env.structure import differences
from brax.errors import PluginError


def check_environment(env: Env, steps: int = 3) -> None:
    """Checks one environment, without wrappers.

    Both kinds of key must reset it; `step` must return the structure, shapes and dtypes that
    `reset` returns, so that `jax.lax.scan` can carry it, and leave the info and metrics that it
    was given alone; reward and done must be scalars of float32, metrics scalars; the
    observation must be what `observation_size` says; `jax.vmap` must map it; and in `steps` steps
    under zero actions nothing may be NaN, done only 0 or 1.

    Args:
        env: the environment.
        steps: how many steps are run; with 0 only the structure is checked, without compiling.

    Raises:
        PluginError: naming everything that is wrong, each leaf by its path.
    """
    problems = list(_interface(env)) or list(_structure(env))
    if not problems and steps > 0:
        problems = list(_numbers(env, steps))
    if problems:
        listed = "".join(f"\n  {problem}" for problem in problems)
        raise PluginError(f"{type(env).__name__} breaks the contract of environments:{listed}")


def _interface(env: Any) -> Iterator[str]:
    if not isinstance(env, Env):
        yield f"it must be a brax.env.Env, but is {type(env).__name__}"
        return
    if not isinstance(env.action_size, int) or env.action_size < 0:
        yield f"action_size must be a number of entries, got {env.action_size!r}"
    if not isinstance(env.backend, str):
        yield f"backend must be a name, got {env.backend!r}"


def _structure(env: Env) -> Iterator[str]:
    """What shapes alone show."""
    start = jax.eval_shape(env.reset, jax.random.key(0))
    if not isinstance(start, State):
        yield f"reset must return a brax.env.State, but returns {type(start).__name__}"
        return
    written: list[str] = []
    action = jax.ShapeDtypeStruct((env.action_size,), jnp.float32)
    after = jax.eval_shape(lambda s, a: _watched(env, s, a, written), start, action)
    if not isinstance(after, State):
        yield f"step must return a brax.env.State, but returns {type(after).__name__}"
        return
    yield from differences(start, after)
    yield from _scalars(start)
    yield from _observation(env, start.obs)
    yield from written
    old = jax.eval_shape(env.reset, jax.random.PRNGKey(0))
    if _paths(old) != _paths(start):
        yield "reset returns another structure for a PRNGKey than for a key"
    batch = jax.eval_shape(jax.vmap(env.reset), jax.random.split(jax.random.key(0), 2))
    if batch.done.shape != (2,):
        yield f"jax.vmap over 2 keys gives done the shape {batch.done.shape}"


def _paths(tree: Any) -> list[Any]:
    return [path for path, _ in jax.tree_util.tree_leaves_with_path(tree)]


def _watched(env: Env, state: State, action: jax.Array, written: list[str]) -> State:
    """A step; what it wrote into its argument is added to `written`."""
    before = {field: dict(getattr(state, field)) for field in ("info", "metrics")}
    new = env.step(state, action)
    for field, entries in before.items():
        now = getattr(state, field)
        if [*entries] != [*now] or any(entries[key] is not now[key] for key in entries):
            written.append(f"step writes into the {field} it was given; return a new one instead")
    return new


def _scalars(state: State) -> Iterator[str]:
    for name in ("reward", "done"):
        value = getattr(state, name)
        if value.shape != () or value.dtype != jnp.float32:
            yield f"{name} must be float32[], but is {value.dtype}{list(value.shape)}"
    for name, value in state.metrics.items():
        if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating):
            yield f"metrics.{name} must be a float [], but is {value.dtype}{list(value.shape)}"


def _observation(env: Env, obs: Any) -> Iterator[str]:
    """What is wrong with the observation that reset returns, or with what the size says of it."""
    if not isinstance(obs, Mapping):
        if len(obs.shape) != 1:
            yield f"obs must be a vector, or a dictionary, but is {obs.dtype}{list(obs.shape)}"
        elif env.observation_size != obs.shape[0]:
            yield f"observation_size is {env.observation_size}, but obs has {obs.shape[0]} entries"
        return
    told, seen = env.observation_size, {name: part.shape for name, part in obs.items()}
    shapes = told if isinstance(told, Mapping) else {}
    if {name: (x,) if isinstance(x, int) else tuple(x) for name, x in shapes.items()} != seen:
        yield f"observation_size is {told}, but the shapes of obs are {seen}"


def _numbers(env: Env, steps: int) -> Iterator[str]:
    """What a few steps under zero actions show."""

    @jax.jit
    def roll_out(key: jax.Array) -> Any:
        def step(state: State, _: None) -> tuple[State, State]:
            state = env.step(state, jnp.zeros(env.action_size))
            return state, state

        first = env.reset(key)
        return first, jax.lax.scan(step, first, length=steps)[1]

    for when, states in zip(("reset", "step"), roll_out(jax.random.key(0)), strict=True):
        for path, leaf in jax.tree_util.tree_leaves_with_path(states):
            if jnp.issubdtype(leaf.dtype, jnp.inexact) and jnp.isnan(leaf).any():
                yield f"{jax.tree_util.keystr(path)[1:]} is NaN after {when}"
        if not ((states.done == 0) | (states.done == 1)).all():
            yield f"done must be 0 or 1, but is {states.done} after {when}"
