"""PPO's checkpoints: what is recorded, going on from one, and a policy out of one."""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from brax.env import Env
from brax.errors import CheckpointError, ConfigError
from brax.training import checkpoint, networks, types
from brax.training.acme import running_statistics
from brax.training.agents.ppo.config import PPOConfig, Runtime
from brax.training.agents.ppo.learner import TrainingState
from brax.training.agents.ppo.networks import PPOParams, make_inference_fn, make_ppo_networks


def describe(env: Env, config: PPOConfig, runtime: Runtime) -> dict[str, Any]:
    """What a checkpoint records: all that is needed to use it again."""
    return {
        "agent": "ppo",
        "environment": type(env.unwrapped).__name__,
        "config": dataclasses.asdict(config),
        "network": describe_networks(runtime.network_factory),
        "observation_size": _plain(env.observation_size),
        "action_size": env.action_size,
    }


def describe_networks(factory: Callable[..., Any]) -> dict[str, Any]:
    """A network factory as JSON can say it: `make_ppo_networks` with its settings, or a name."""
    inner = factory.func if isinstance(factory, functools.partial) else factory
    given = factory.keywords if isinstance(factory, functools.partial) else {}
    positional = factory.args if isinstance(factory, functools.partial) else ()
    if inner is not make_ppo_networks or positional:
        return {"factory": getattr(inner, "__qualname__", repr(inner))}
    parameters = inspect.signature(make_ppo_networks).parameters
    settings = {
        name: given.get(name, parameter.default)
        for name, parameter in parameters.items()
        if name not in ("observation_size", "action_size", "preprocess_observations_fn")
    }
    return {"factory": "make_ppo_networks", **{k: _plain(v) for k, v in settings.items()}}


def save(
    writer: checkpoint.Writer,
    record: Mapping[str, Any],
    env_steps: int,
    training_steps: int,
    state: TrainingState,
    metrics: Mapping[str, Any],
) -> Path:
    """Saves the whole training state; the mean evaluation return is its score."""
    reward = float(metrics.get("eval/episode_reward", math.nan))
    score = reward if math.isfinite(reward) else None
    return writer.save(
        env_steps, state, {**record, "training_steps": training_steps, "score": score}
    )


def resume(path: Path | str, like: TrainingState, record: Mapping[str, Any]) -> tuple[Any, int]:
    """Reads the training state to go on from.

    Args:
        path: checkpoint, or folder of checkpoints.
        like: shapes of the training state.
        record: what this run would record.

    Returns:
        The training state on the host, and the training steps behind it.

    Raises:
        CheckpointError: if it is damaged or was saved by something that differs.
    """
    found = checkpoint.load(path)
    for name in ("agent", "environment", "observation_size", "action_size", "network"):
        if found.record.get(name) != record[name]:
            raise CheckpointError(
                f"checkpoint '{found.path}' was saved with {name} {found.record.get(name)}, "
                f"but this run has {record[name]}."
            )
    saved, now = PPOConfig(**found.record["config"]), PPOConfig(**record["config"])
    if saved.env_steps_per_training_step != now.env_steps_per_training_step:
        raise ConfigError(
            "batch_size * num_minibatches * unroll_length * action_repeat must stay what it was "
            f"in '{found.path}', {saved.env_steps_per_training_step}; "
            f"it is {now.env_steps_per_training_step}."
        )
    return checkpoint.restore(found, like), found.record["training_steps"]


def load_policy(
    path: Path | str,
    deterministic: bool = True,
    network_factory: Callable[..., Any] | None = None,
) -> types.Policy:
    """Returns the policy `policy(obs, key) -> (action, extras)` of a run or checkpoint.

    Args:
        path: run, folder of checkpoints (the newest is taken), or checkpoint.
        deterministic: take the mean action instead of drawing one.
        network_factory: makes the networks, where they are not `make_ppo_networks`'s.

    Raises:
        CheckpointError: if there is no such checkpoint, or it is damaged or of another kind.
    """
    found = checkpoint.load(path)
    record = found.record
    if record.get("agent") != "ppo":
        raise CheckpointError(f"'{found.path}' is of agent '{record.get('agent')}', not of 'ppo'.")
    normalizer = _normalizer(found)
    preprocess = (
        running_statistics.normalize
        if record["config"]["normalize_observations"]
        else types.identity_observation_preprocessor
    )
    made = (network_factory or _factory(record["network"], found.path))(
        record["observation_size"], record["action_size"], preprocess_observations_fn=preprocess
    )
    shapes = jax.eval_shape(made.policy_network.init, jax.random.key(0))
    policy = checkpoint.restore(found, shapes, "params/policy")
    return make_inference_fn(made)((normalizer, policy), deterministic)


def check_params(params: Any, like: PPOParams) -> PPOParams:
    """Refuses parameters to start from that do not fit or are not finite.

    Raises:
        ConfigError: naming the first leaf that is wrong.
    """
    if not isinstance(params, tuple | list) or len(params) != 3:
        raise ConfigError("restore_params must be (normalizer, policy, value), as train returns it")
    given = PPOParams(*params)
    structure, needed = str(jax.tree.structure(given)), str(jax.tree.structure(like))
    if structure != needed:
        raise ConfigError(
            f"restore_params has the structure {structure}; these settings need {needed}."
        )
    wanted = jax.tree_util.tree_leaves_with_path(like)
    for (path, want), got in zip(wanted, jax.tree.leaves(given), strict=True):
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        if np.shape(got) != want.shape:
            raise ConfigError(
                f"restore_params: {name} has shape {np.shape(got)}; {want.shape} is needed."
            )
        if not np.isfinite(np.asarray(got)).all():
            raise ConfigError(f"restore_params: {name} is not finite.")
    return given


def _normalizer(found: checkpoint.Checkpoint) -> Any:
    """The statistics of observations in a checkpoint, `()` where there are none."""
    prefix = "params/normalizer/mean"
    mean = {k.removeprefix(prefix): v for k, v in found.arrays.items() if k.startswith(prefix)}
    if not mean:
        return ()
    sample = mean[""] if "" in mean else {k.removeprefix("/"): v for k, v in mean.items()}
    return checkpoint.restore(found, running_statistics.init_state(sample), "params/normalizer")


def _factory(description: Mapping[str, Any], path: Path) -> Callable[..., Any]:
    """The network factory that a checkpoint describes."""
    settings = dict(description)
    if settings.pop("factory") != "make_ppo_networks":
        raise CheckpointError(
            f"the networks of '{path}' were made by {description['factory']}: "
            "pass it as network_factory."
        )
    return functools.partial(make_ppo_networks, **settings)


def _plain(value: Any) -> Any:
    """A setting as JSON can say it."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if callable(value):
        names = [name for name, fn in networks.ACTIVATION.items() if fn is value]
        return names[0] if names else f"{value.__module__}.{value.__qualname__}"
    return value
