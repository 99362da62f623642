"""The commands `brax train` and `brax resume`."""

import contextlib
import functools
import inspect
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from brax import plugins
from brax.errors import ConfigError, PluginError, closest, describe_error
from brax.plugins import kinds
from brax.plugins.outputs import environment as env_outputs
from brax.training.checkpoints import run_directory
from brax.training.distributed import hosts
from brax.training.runner import presets

env_argument = click.argument("env")
preset_option = click.option(
    "--preset", default="default", show_default=True, help="Named settings, such as cpu."
)
trainer_option = click.option("--trainer", default="ppo", show_default=True, help="The agent.")
steps_option = click.option(
    "--steps", type=click.IntRange(min=0), help="Environment steps to train for."
)
runs_option = click.option(
    "--runs",
    "runs_dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Where runs are kept.",
)
set_option = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a setting of the trainer; env.KEY=VALUE one of the environment. Repeatable.",
)

OWN = "own"
"""Stands for the environment's own function that randomizes its physics."""

OURS = {"save_checkpoint_path", "checkpoint_logdir", "progress_fn"}
"""Settings that `train_run` gives, and no user: those of a run's folder, by all their names."""


def _distributed_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a process that trains with others; it joins them before the command runs."""

    @click.option(
        "--coordinator", metavar="HOST:PORT", help="Where the first of several processes listens."
    )
    @click.option("--num-processes", type=click.IntRange(min=1), help="Number of processes.")
    @click.option("--process-id", type=click.IntRange(min=0), help="Which this one is, from 0.")
    @functools.wraps(command)
    def joined(
        *args: Any,
        coordinator: str | None,
        num_processes: int | None,
        process_id: int | None,
        **kwargs: Any,
    ) -> None:
        hosts.join(coordinator, num_processes, process_id)
        command(*args, **kwargs)

    return joined


randomize_option = click.option(
    "--randomize",
    metavar="[MODULE:FUNCTION]",
    is_flag=False,
    flag_value=OWN,
    help="Randomize the physics: by the environment's own function, or by the one named.",
)

_render_option = click.option(
    "--render", is_flag=True, help="Write rollout.html at the end, a page that shows the result."
)


@click.command()
@env_argument
@preset_option
@trainer_option
@steps_option
@click.option("--seed", type=click.IntRange(min=0), help="Seed of everything random.")
@click.option("--name", default="", help="Name of the run; by default environment and time.")
@runs_option
@set_option
@randomize_option
@_render_option
@_distributed_options
@click.pass_context
def train(
    ctx: click.Context,
    env: str,
    preset: str,
    trainer: str,
    steps: int | None,
    seed: int | None,
    name: str,
    runs_dir: Path,
    changes: tuple[str, ...],
    randomize: str | None,
    render: bool,
) -> None:
    """Trains an agent in the environment ENV.

    The run is kept in RUNS/NAME: run.json, metrics.jsonl, checkpoints. Ctrl-C saves it; brax resume
    goes on with it.
    """
    with hosts.together():
        more = {"num_timesteps": steps, "seed": seed, "randomization_fn": randomize}
        run, environment = asked(env, trainer, preset, changes, **more)
        folder = run.create(runs_dir, name) if hosts.first() else runs_dir / name
    with run_directory.forgotten_unless_begun([folder] if hosts.first() else []):
        train_run(run, folder, environment)
    with hosts.together():
        if render and hosts.first():
            _render(ctx, folder)


@click.command()
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--steps", type=click.IntRange(min=1), help="Total environment steps to go to.")
@click.option(
    "--step",
    type=click.IntRange(min=0),
    help="Checkpoint to go on from, if not the newest; later ones are removed.",
)
@_render_option
@_distributed_options
@click.pass_context
def resume(
    ctx: click.Context, run: Path, steps: int | None, step: int | None, render: bool
) -> None:
    """Goes on with the training of RUN from its newest checkpoint.

    The result is the same, bit for bit on a CPU, as if the run had never stopped.
    """
    from brax.training.checkpoints import checkpoint

    with hosts.together():
        record = run_directory.read(run)
        if steps is not None:
            record = record.with_config(num_timesteps=steps)
        environment = _construct(record.environment, record.environment_kwargs)
        check(record.trainer, with_randomization(record.config, environment))
        behind = checkpoint.available(run / "checkpoints")
        if step is not None and step not in behind:
            raise ConfigError(
                f"run '{run}' has no checkpoint of step {step}. It has: "
                f"{', '.join(map(str, behind))}."
            )
        newest = behind[-1] if step is None and behind else step
        if newest is not None and newest >= record.config.get("num_timesteps", 0):
            raise ConfigError(
                f"run '{run}' is complete, with {newest} steps: ask for more with --steps."
            )
        env_outputs.checked(record.environment, environment)
        if steps is not None and hosts.first():
            record.write(run)
    more: dict[str, Any] = {}
    if newest is not None:  # else it was stopped before it saved, and begins anew
        where = run / "checkpoints"
        more["restore_checkpoint_path"] = where if step is None else where / f"{step:012d}"
    if step is not None:
        more["overwrite_checkpoints"] = True
    train_run(record, run, environment, **more)
    with hosts.together():
        if render and hosts.first():
            _render(ctx, run)


def asked(
    env: str, trainer: str, preset: str, changes: Iterable[str], **more: Any
) -> tuple[run_directory.Run, Any]:
    """What a user asks for, checked before a folder is made.

    Args:
        env: name of the environment.
        trainer: name of the trainer.
        preset: name of the preset.
        changes: what to change in it, as `parse_changes` reads it.
        **more: settings to change besides; None leaves one as it is.

    Returns:
        The run and its environment.

    Raises:
        ConfigError: if a name or a setting is wrong.
    """
    settings = parse_changes(changes)
    env_settings = settings.pop("env", {})
    agent = plugins.get("trainer", trainer)
    environment = _construct(env, env_settings)
    config = merge(presets.choose(agent, environment, env, preset), settings)
    config |= {name: value for name, value in more.items() if value is not None}
    check(trainer, with_randomization(config, environment))
    env_outputs.checked(env, environment)  # last: tracing a large model takes many seconds
    return run_directory.Run(env, env_settings, trainer, with_whole_paths(config)), environment


def with_whole_paths(config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings whose paths mean the same wherever the run is gone on with."""
    paths = {name: config.get(name) for name in ("teacher", "restore_checkpoint_path")}
    return {**config, **{name: str(Path(x).absolute()) for name, x in paths.items() if x}}


def with_randomization(config: Mapping[str, Any], environment: Any) -> dict[str, Any]:
    """Settings whose `randomization_fn`, if it is named by text, is the function itself.

    Raises:
        ConfigError: if there is no such function.
    """
    name = config.get("randomization_fn")
    if not isinstance(name, str):
        return dict(config)
    if name == OWN:
        found = getattr(environment, "randomization_fn", None)
        if found is None:
            raise ConfigError(
                f"the environment {type(environment).__name__} brings no randomization of its own, "
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


def check(trainer: str, config: Mapping[str, Any]) -> None:
    """Refuses settings that a trainer would refuse, where it can tell, and those of the command.

    Raises:
        ConfigError: naming one.
    """
    if taken := sorted(config.keys() & OURS):
        raise ConfigError(
            f"{taken[0]}: a run keeps checkpoints and metrics in its own folder, so the command "
            "sets it; say where that is with --runs and --name."
        )
    agent = plugins.get("trainer", trainer)
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
    """Returns the settings that a trainer's `train` names, and whether it takes any others."""
    given = list(inspect.signature(agent.train).parameters.values())[1:]
    anything = any(p.kind is p.VAR_KEYWORD for p in given)
    return {p.name for p in given if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}, anything


def train_run(run: run_directory.Run, folder: Path, environment: Any, **more: Any) -> None:
    """Runs the trainer with everything that watches it.

    Args:
        run: what was asked for.
        folder: where it is kept.
        environment: the environment.
        **more: settings of the trainer instead or besides, not recorded.
    """
    from brax.plugins.outputs import trainer as outputs
    from brax.training.loggers import MetricLoggers
    from brax.training.runner.progress import Progress

    with hosts.together():
        loggers = MetricLoggers(folder) if hosts.first() else None
    title = f"{run.trainer} on {run.environment}, {folder}"
    resumed = bool({**run.config, **more}.get("restore_checkpoint_path"))
    progress = Progress(title, int(run.config.get("num_timesteps", 0)), resumed=resumed)

    def report(step: int, metrics: Any) -> None:
        if problem := outputs.report_problem(metrics):
            raise PluginError(f"{plugins.specs('trainer')[run.trainer]}: {problem}")
        if loggers:
            loggers.write(step, metrics)
            progress.update(step, metrics)

    own = {"progress_fn": report, "save_checkpoint_path": folder / "checkpoints"}
    config = with_randomization(run.config, environment)
    named, anything = parameters(plugins.get("trainer", run.trainer))
    taken = {name: value for name, value in own.items() if anything or name in named}
    taken |= {"run_dir": folder} if "run_dir" in named else {}
    try:
        with progress if loggers else contextlib.nullcontext():
            outputs.train(run.trainer, environment, **{**config, **taken, **more})
    except (KeyboardInterrupt, SystemExit):
        click.echo(f"interrupted; go on with: brax resume {folder}", err=True)
        raise
    finally:
        if loggers:
            loggers.close()
    if loggers:
        click.echo(f"run: {folder}")


def _render(ctx: click.Context, folder: Path) -> None:
    """Calls `brax render`, which another package brings."""
    if "render" not in plugins.names("command"):
        raise ConfigError("there is no command 'render': pip install brax-io, then brax render")
    ctx.invoke(plugins.get("command", "render"), run=folder)


def make_environment(name: str, settings: Any) -> Any:
    """Makes an environment by name.

    Raises:
        ConfigError: if it does not take these settings.
        PluginError: if what another package registered is none, or its states are wrong.
    """
    return env_outputs.checked(name, _construct(name, settings))


def _construct(name: str, settings: Any) -> Any:
    """Makes an environment by name; its reset and step are not traced yet.

    Raises:
        ConfigError: if it does not take these settings.
        PluginError: if what another package registered is none.
    """
    try:
        return env_outputs.make(name, **settings)
    except TypeError as error:
        raise ConfigError(f"environment '{name}': {error}") from error


def parse_changes(changes: Iterable[str]) -> dict[str, Any]:
    """Reads `key=value` and `table.key=value` as TOML; a value that is none is text.

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
            value = text
        for part in reversed(key.split(".")):
            value = {part: value}
        settings = merge(settings, value)
    return settings


def merge(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Both, the second where they differ, table by table."""
    merged = {**first, **second}
    for key in first.keys() & second.keys():
        if isinstance(first[key], dict) and isinstance(second[key], dict):
            merged[key] = merge(first[key], second[key])
    return merged
