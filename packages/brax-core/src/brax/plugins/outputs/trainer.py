"""Output checks of trainers: what `train` and `load_policy` return."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from brax import plugins
from brax.errors import PluginError, TrainingError, describe_error
from brax.plugins.outputs.policy import first_memory
from brax.plugins.outputs.traced import blamed, describe


def train(name: str, environment: object, **settings: object) -> Any:
    """Train with a trainer by name, and return make_policy, params and metrics.

    Raises:
        PluginError: if the trainer returns something else.
        TrainingError: if a third-party trainer raises an error that is not one of Brax's.
    """
    trainer = plugins.get("trainer", name)
    who = plugins.specs("trainer")[name]
    # A run that fails midway makes the command exit with code 1, which is TrainingError's.
    with blamed(who, ": train raised", TrainingError):
        out = trainer.train(environment, **settings)
    if problem := trained_problem(out, environment):
        raise PluginError(f"{who}: {problem}")
    return out


def load_policy(
    name: str, path: Path | str, environment: object = None, deterministic: bool = True
) -> Callable[..., Any]:
    """Return the policy of a run or checkpoint, for a single observation.

    Args:
        name: the trainer that wrote it.
        path: the run's folder, or that of a checkpoint.
        environment: the environment that the policy acts in. If it is given, the policy of a
            third-party trainer is called once with shapes in place of numbers.
        deterministic: take the mean action instead of drawing one.

    Raises:
        PluginError: if the trainer returns no function, or its policy returns no action.
    """
    trainer = plugins.get("trainer", name)
    who = plugins.specs("trainer")[name]
    policy = trainer.load_policy(path, deterministic=deterministic)
    if not callable(policy):
        raise PluginError(
            f"{who}: load_policy must return a function of an observation and a key, but returns "
            f"{describe(policy)}"
        )
    if not who.ours and environment is not None:
        try:
            problem = policy_problem(policy, environment)
        except Exception as error:
            problem = f"the policy raised {describe_error(error)}"
        if problem:
            raise PluginError(f"{who}: load_policy: {problem}")
    return policy


def trained_problem(out: object, environment: object) -> str:
    """Return what is wrong with the result of `train`; empty if nothing is."""
    if not isinstance(out, tuple | list) or len(out) != 3:
        return f"train must return (make_policy, params, metrics), but returns {describe(out)}"
    make_policy, params, metrics = out
    if not callable(make_policy):
        return f"train: make_policy must be a function of params, but is {describe(make_policy)}"
    if not isinstance(metrics, Mapping):
        return f"train: metrics must be a dictionary, but is {describe(metrics)}"
    try:
        policy = make_policy(params)
        if not callable(policy):
            return (
                "train: make_policy must return a function of an observation and a key, but "
                f"returns {describe(policy)}"
            )
        return policy_problem(policy, environment)
    except Exception as error:
        return f"the policy of make_policy(params) raised {describe_error(error)}"


def policy_problem(policy: Callable[..., object], environment: Any) -> str:
    """Return what is wrong with a policy's action for one observation; empty if nothing is."""
    key = jax.random.key(0)
    obs = jax.eval_shape(environment.reset, key).obs
    out = jax.eval_shape(policy, obs, key, *first_memory(policy))
    if not isinstance(out, tuple) or len(out) != 2:
        return f"the policy must return (action, extras), but returns {describe(out)}"
    size = environment.action_size
    if not hasattr(out[0], "shape") or out[0].shape != (size,):
        return (
            f"the policy must return an action of shape ({size},), but returns {describe(out[0])}"
        )
    return ""


def report_problem(metrics: object) -> str:
    """Return what is wrong with the metrics that `train` reports; empty if nothing is."""
    wanted = "train must call progress_fn(steps, metrics) with a dictionary of scalars"
    if not isinstance(metrics, Mapping):
        return f"{wanted}, but the metrics are {describe(metrics)}"
    wrong = [name for name, value in metrics.items() if np.ndim(value)]
    return f"{wanted}, but '{wrong[0]}' is {describe(metrics[wrong[0]])}" if wrong else ""
