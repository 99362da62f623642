"""`check_trainer`: verifies that a trainer follows its interface."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from brax.env import Env
from brax.errors import describe_error
from brax.plugins.outputs.policy import act, first_memory
from brax.plugins.outputs.traced import describe
from brax.plugins.outputs.trainer import policy_problem, trained_problem
from brax.testing.faults import in_turn, raise_problems


def check_trainer(
    trainer: object, environment: Env, path: Path | str | None = None, **settings: object
) -> None:
    """Check one trainer, by a short run.

    `train` must return `(make_policy, params, metrics)`, whose policy returns an action of the
    environment's size. With `path`, `load_policy(path)` must return the actions of that policy.

    Args:
        trainer: the trainer.
        environment: the environment that it trains on, without wrappers.
        path: where the settings make it save its policy, for `load_policy`.
        **settings: settings of `train` that make the run short.

    Raises:
        PluginError: naming everything that is wrong.
    """
    problems = in_turn(
        trainer, _interface, lambda trainer: _run(trainer, environment, path, settings)
    )
    raise_problems(trainer, "trainers", problems)


def _interface(trainer: object) -> Iterator[str]:
    """Yield the members that a trainer lacks."""
    if not isinstance(getattr(trainer, "name", None), str):
        yield "name must be a string"
    for name in ("train", "load_policy"):
        if not callable(getattr(trainer, name, None)):
            yield f"it must have a function {name}"


def _run(trainer: Any, environment: Env, path: object, settings: dict[str, Any]) -> Iterator[str]:
    """Yield the problems of a run, and of the policy that it saved."""
    try:
        out = trainer.train(environment, **settings)
    except Exception as error:
        yield f"train raised {describe_error(error)}"
        return
    if problem := trained_problem(out, environment):
        yield problem
    elif path is not None:
        yield from _loaded(trainer, environment, path, out)


def _loaded(trainer: Any, environment: Env, path: object, out: object) -> Iterator[str]:
    """Yield the problems of a policy that was loaded from a run."""
    try:
        policy = trainer.load_policy(path, deterministic=True)
    except Exception as error:
        yield f"load_policy raised {describe_error(error)}"
        return
    if not callable(policy):
        yield f"load_policy must return a function, but returns {describe(policy)}"
        return
    if problem := policy_problem(policy, environment):
        yield f"load_policy: {problem}"
        return
    obs = environment.reset(jax.random.key(0)).obs
    key = jax.random.key(1)
    one, other = (act(each, obs, key, first_memory(each))[0] for each in (policy, _greedy(out)))
    same = np.allclose(one, other, atol=1e-5)
    if not same:
        yield "load_policy must return the policy that train returned"


def _greedy(out: Any) -> Any:
    """Return the deterministic policy, if the trainer distinguishes it."""
    make_policy, params, _ = out
    try:
        # A trainer whose actions are never random need not take `deterministic`.
        return make_policy(params, deterministic=True)
    except TypeError:
        return make_policy(params)
