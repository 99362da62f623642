"""Start of a run from an earlier one: from its whole training state, or its parameters only."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from brax.errors import CheckpointError, ConfigError
from brax.training.acme import running_statistics
from brax.training.checkpoints import checkpoint
from brax.training.config import RunConfig


class StartingPoint(NamedTuple):
    """The state that a run starts from."""

    state: Any
    """Training state."""
    step: int = 0
    """Training steps behind it."""
    seconds: float = 0.0
    """Seconds of training behind it."""


def recorded_settings(path: Path | str | None, names: Sequence[str]) -> dict[str, Any]:
    """Return the settings of the checkpoint that a run continues from.

    Args:
        path: the checkpoint, or folder of checkpoints, if any.
        names: names of settings; those that the checkpoint does not record are left out.

    Raises:
        CheckpointError: if there is no such checkpoint.
    """
    if path is None or not names:
        return {}
    # `read_starting_point` verifies the checkpoint, which takes as long as reading all arrays.
    config = checkpoint.read_record(checkpoint.find_folder(Path(path))).get("config", {})
    return {name: config[name] for name in names if name in config}


def read_starting_point(
    path: Path | str, like: object, record: Mapping[str, Any], config: RunConfig
) -> StartingPoint:
    """Read the training state to continue from.

    Args:
        path: checkpoint, or folder of checkpoints.
        like: shapes of the training state.
        record: record that this run would save.
        config: the numbers of this run.

    Returns:
        The training state, on the host, with its training steps and seconds.

    Raises:
        CheckpointError: if it is damaged or was saved by a run that differs.
        ConfigError: if the number of environment steps per training step would change.
    """
    found = checkpoint.load(path)
    if "training_steps" not in found.record:
        raise CheckpointError(
            f"checkpoint '{found.path}' holds only parameters, which are not enough to continue: "
            "start from them, with restore_params."
        )
    # The training state has shapes and meaning only together with these. Other settings may change.
    for name in ("agent", "environment", "observation_size", "action_size", "network"):
        parts = (_without_none(found.record.get(name)), _without_none(record[name]))
        place, saved, now = _first_difference(name, *parts)
        if saved != now:
            raise CheckpointError(
                f"checkpoint '{found.path}' was saved with {place} {saved}, but this run has {now}."
            )
    # Training steps are counted: another number of environment steps each would change what is
    # behind the run.
    names = {field.name for field in dataclasses.fields(config)}
    # A setting that is not known any more, or not yet, cannot be compared.
    before = type(config)(**{n: x for n, x in found.record["config"].items() if n in names})
    for name, saved, now in (
        (
            config.step_formula,
            before.env_steps_per_training_step,
            config.env_steps_per_training_step,
        ),
        ("candidates", before.candidates, config.candidates),
        ("policy_average_steps", before.policy_average_steps, config.policy_average_steps),
    ):
        if saved != now:
            raise ConfigError(
                f"{name} must stay what it was in '{found.path}', {saved}; it is {now}."
            )
    record = found.record
    return StartingPoint(
        checkpoint.restore(found, like), record["training_steps"], record.get("seconds", 0.0)
    )


def _without_none(value: object) -> Any:
    """Return a dictionary without the entries that are None: a newer setting that is not used."""
    if not isinstance(value, dict):
        return value
    return {name: entry for name, entry in value.items() if entry is not None}


def _first_difference(name: str, saved: object, now: object) -> tuple[str, Any, Any]:
    """Return the first entry in which two values differ: its dotted name and both values."""
    if isinstance(saved, Mapping) and isinstance(now, Mapping):
        for key in [*now, *saved]:
            if saved.get(key) != now.get(key):
                return _first_difference(f"{name}.{key}", saved.get(key), now.get(key))
    return name, saved, now


def check_params(params: object, like: Any) -> dict[str, Any]:
    """Check that parameters to start from fit the agent's and are finite.

    Args:
        params: parameters that a user passed.
        like: the agent's parameters or their shapes, a named tuple.

    Returns:
        Copies of the parameters on the host, by the names that the agent has for them.

    Raises:
        ConfigError: naming the first leaf that is wrong.
    """
    if not isinstance(params, tuple | list) or not 2 <= len(params) <= len(like):
        names = ", ".join(like._fields)
        raise ConfigError(
            f"restore_params must be ({names}), as train returns it, or at least the first two."
        )
    given = dict(zip(like._fields, params, strict=False))
    like = {name: getattr(like, name) for name in given}
    statistics = running_statistics.RunningStatisticsState
    if all(isinstance(each["normalizer"], statistics) for each in (given, like)):
        # This run's setting, not that of the run which the statistics come from.
        eps = like["normalizer"].std_eps
        given["normalizer"] = given["normalizer"].replace(std_eps=eps)
    # As text, since it is what the error message shows.
    structure, needed = str(jax.tree.structure(given)), str(jax.tree.structure(like))
    if structure != needed:
        raise ConfigError(
            f"restore_params has the structure {structure}; these settings need {needed}."
        )
    wanted = jax.tree_util.tree_leaves_with_path(like)
    leaves, treedef = jax.tree.flatten(given)
    found = []
    for (path, want), got in zip(wanted, leaves, strict=True):
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        if np.shape(got) != want.shape:
            raise ConfigError(
                f"restore_params: {name} has shape {np.shape(got)}; {want.shape} is needed."
            )
        if not np.isfinite(np.asarray(got)).all():
            raise ConfigError(f"restore_params: {name} is not finite.")
        # Copies, since a training step takes over the memory of each leaf. They have the types that
        # the program is compiled for, whatever the precision of the given ones.
        found.append(np.array(got, want.dtype))
    return dict(jax.tree.unflatten(treedef, found))
