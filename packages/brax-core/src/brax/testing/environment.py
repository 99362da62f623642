"""`check_environment`: verifies that an environment follows the interface of `brax.env`."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from brax.env import Env, State
from brax.plugins.outputs import environment as outputs
from brax.testing.faults import in_turn, raise_problems


def check_environment(env: Env, steps: int = 3) -> None:
    """Check one environment, without wrappers.

    Both kinds of key must reset it. `step` must return the structure, shapes and dtypes that
    `reset` returns, so that `jax.lax.scan` can carry it, and must not write into the info and
    metrics that it was given. Reward and done must be scalars of float32 (or float64 with
    `jax_enable_x64`), and metrics must be scalars. The observation must agree with
    `observation_size`. `jax.vmap` must map the environment. In `steps` steps under zero actions
    nothing may be NaN, and done may only be 0 or 1.

    Args:
        env: the environment.
        steps: number of steps that are run; with 0 only the structure is checked, without
            compiling.

    Raises:
        PluginError: naming everything that is wrong, each leaf by its path.
    """
    checks = [_interface, outputs.problems, _structure]
    if steps > 0:
        checks.append(lambda env: _numbers(env, steps))
    raise_problems(env, "environments", in_turn(env, *checks))


def _interface(env: object) -> Iterator[str]:
    """Yield a problem if the object is not an `Env`, or its backend is not a name."""
    if not isinstance(env, Env):
        yield f"it must be a brax.env.Env, but is {type(env).__name__}"
        return
    if not isinstance(env.backend, str):
        yield f"backend must be a name, got {env.backend!r}"


def _structure(env: Env) -> Iterator[str]:
    """Yield the problems of further calls: writes of `step`, both kinds of key, and batches."""
    start = jax.eval_shape(env.reset, jax.random.key(0))
    written: list[str] = []
    action = jax.ShapeDtypeStruct((env.action_size,), jnp.float32)
    jax.eval_shape(lambda s, a: _watched(env, s, a, written), start, action)
    yield from written
    old = jax.eval_shape(env.reset, jax.random.PRNGKey(0))
    if _paths(old) != _paths(start):
        yield "reset returns another structure for a PRNGKey than for a key"
    batch = jax.eval_shape(jax.vmap(env.reset), jax.random.split(jax.random.key(0), 2))
    if batch.done.shape != (2,):
        yield f"jax.vmap over 2 keys gives done the shape {batch.done.shape}"


def _paths(tree: object) -> list[Any]:
    """Return the paths of a tree's leaves."""
    return [path for path, _ in jax.tree_util.tree_leaves_with_path(tree)]


def _watched(env: Env, state: State, action: jax.Array, written: list[str]) -> State:
    """Return the result of a step, and record what it wrote into its argument in `written`."""
    before = {field: dict(getattr(state, field)) for field in ("info", "metrics")}
    new = env.step(state, action)
    for field, entries in before.items():
        now = getattr(state, field)
        # By identity: traced arrays cannot be compared.
        if [*entries] != [*now] or any(entries[key] is not now[key] for key in entries):
            written.append(f"step writes into the {field} it was given; return a new one instead")
    return new


def _numbers(env: Env, steps: int) -> Iterator[str]:
    """Yield the problems of a few steps under zero actions."""

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
