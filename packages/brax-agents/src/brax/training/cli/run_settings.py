"""From the user's options to a checked run: settings, environment, trainer."""

import inspect
import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from brax import plugins
from brax.errors import ConfigError, closest, describe_error
from brax.plugins import kinds
from brax.plugins.outputs import environment as env_outputs
from brax.training.checkpoints import run_directory
from brax.training.cli.options import OWN_RANDOMIZATION
from brax.training.config import renamed
from brax.training.runner import presets

FIXED_BY_RUN = {"save_checkpoint_path", "checkpoint_logdir", "progress_fn"}
"""Settings that `train_run` sets and users cannot: those of the run's folder, by all of their
names.
"""


def prepare_run(
    env: str, trainer: str | None, preset: str, changes: Iterable[str], **more: object
) -> tuple[run_directory.Run, Any]:
    """Return the run that a user asks for, checked before a folder is made.

    Args:
        env: name of the environment.
        trainer: name of the trainer; None takes the best one that is known.
        preset: name of the preset.
        changes: changes of the preset, as `parse_changes` reads them.
        **more: further settings; None leaves one as it is.

    Returns:
        The run and its environment.

    Raises:
        ConfigError: if a name or a setting is wrong.
    """
    settings = parse_changes(changes)
    env_settings = settings.pop("env", {})
    trainer = trainer or presets.best_trainer(env, preset)
    agent = plugins.get("trainer", trainer)
    environment = construct(env, env_settings)
    settings = by_own_names(agent, settings)
    config = merge(presets.choose(agent, environment, env, preset), settings)
    config |= {name: value for name, value in more.items() if value is not None}
    config = recorded(config)
    try:
        check(trainer, with_randomization(config, environment))
    except ConfigError as error:
        raise ConfigError(f"{error}{_of_environment(env, environment, settings)}") from error
    env_outputs.checked(env, environment)  # last: tracing a large model takes many seconds
    return run_directory.Run(env, env_settings, trainer, config), environment


def _of_environment(env: str, environment: Any, settings: Iterable[str]) -> str:
    """Return the end of a message on settings that a trainer refuses, if some are `env`'s."""
    known, _ = env_outputs.settings_of(plugins.get("environment", env))
    # Our environments take the fields of a dataclass as well, which they keep.
    parameters = getattr(environment, "parameters", None)
    mine = [name for name in settings if name in known or hasattr(parameters, name)]
    return "".join(f" The environment takes '{name}': --set env.{name}=VALUE." for name in mine)


def by_own_names(trainer: object, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by our agents' own names in place of Google's, which readers of runs know.

    Raises:
        ConfigError: if one setting is given by both of its names.
    """
    from brax.training.agent import Agent

    return renamed(trainer.config, settings) if isinstance(trainer, Agent) else dict(settings)


def recorded(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as `run.json` has them, so that a resumed run has the same.

    Paths are absolute, and sequences are lists.

    Raises:
        ConfigError: if JSON cannot represent a setting.
    """
    paths = {name: config.get(name) for name in ("teacher", "restore_checkpoint_path")}
    found = {**config, **{name: str(Path(x).absolute()) for name, x in paths.items() if x}}
    for name, value in found.items():
        try:
            found[name] = json.loads(json.dumps(value))
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"{name}={value!r} cannot be written into {run_directory.RUN_FILE} ({error}): the "
                "settings of a run are numbers, text, and lists and tables of these."
            ) from error
    return found


def with_randomization(config: Mapping[str, object], environment: object) -> dict[str, Any]:
    """Return the settings with `randomization_fn` as a function, where it is given by name.

    Raises:
        ConfigError: if there is no such function.
    """
    name = config.get("randomization_fn")
    if not isinstance(name, str):
        return dict(config)
    if name == OWN_RANDOMIZATION:
        found = getattr(environment, "randomization_fn", None)
        if found is None:
            raise ConfigError(
                f"the environment {type(environment).__name__} has no randomization of its own, "
                "an attribute randomization_fn: name a function, --randomize MODULE:FUNCTION."
            )
        return {**config, "randomization_fn": found}
    try:
        found = kinds.resolve(name)
    except Exception as error:
        raise ConfigError(
            f"randomization_fn '{name}' cannot be imported: {describe_error(error)}. Name it as "
            "MODULE:FUNCTION."
        ) from error
    return {**config, "randomization_fn": found}


def check(trainer: str, config: Mapping[str, object]) -> None:
    """Reject settings that the trainer would reject, and those that the command itself sets.

    Raises:
        ConfigError: naming one.
    """
    if taken := sorted(config.keys() & FIXED_BY_RUN):
        raise ConfigError(
            f"{taken[0]}: a run keeps checkpoints and metrics in its own folder, so the command "
            "sets it; choose the folder with --runs and --name."
        )
    agent = plugins.get("trainer", trainer)
    # Optional for trainers: without it, the parameters of `train` are all that is known.
    if hasattr(agent, "check"):
        agent.check(config)
        return
    named, anything = parameters(agent)
    for name in () if anything else config:
        if name not in named:
            raise ConfigError(
                f"trainer '{trainer}' takes no setting '{name}'.{closest(name, named)} Settings: "
                f"{', '.join(sorted(named)) or 'none'}."
            )


def parameters(agent: Any) -> tuple[set[str], bool]:
    """Return the settings that a trainer's `train` names, and whether it takes any others."""
    # The first parameter is the environment.
    given = list(inspect.signature(agent.train).parameters.values())[1:]
    anything = any(p.kind is p.VAR_KEYWORD for p in given)
    return {p.name for p in given if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}, anything


def parse_changes(changes: Iterable[str]) -> dict[str, Any]:
    """Read `key=value` and `table.key=value` as TOML; a value that is not TOML is text, or `None`.

    Raises:
        ConfigError: if there is no `=`.
    """
    settings: dict[str, Any] = {}
    for change in changes:
        key, found, text = change.partition("=")
        if not found or not key:
            raise ConfigError(f"--set {change}: expected KEY=VALUE, such as learning_rate=1e-3")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            # TOML has no word for None, which many settings may be.
            value = None if text == "None" else text
        for part in reversed(key.split(".")):
            value = {part: value}
        settings = merge(settings, value)
    return settings


def merge(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return both dictionaries merged, table by table; the second takes precedence."""
    merged = {**first, **second}
    for key in first.keys() & second.keys():
        if isinstance(first[key], dict) and isinstance(second[key], dict):
            merged[key] = merge(first[key], second[key])
    return merged


def make_environment(name: str, settings: object) -> Any:
    """Make an environment by name.

    Raises:
        ConfigError: if it does not take these settings.
        PluginError: if another package registered it and it is no environment, or has wrong states.
    """
    return env_outputs.checked(name, construct(name, settings))


def construct(name: str, settings: Any) -> Any:
    """Make an environment by name; its reset and step are not traced yet.

    Raises:
        ConfigError: if it does not take these settings.
        PluginError: if another package registered it and it is no environment.
    """
    try:
        return env_outputs.make(name, **settings)
    except TypeError as error:
        raise ConfigError(f"environment '{name}': {error}") from error
