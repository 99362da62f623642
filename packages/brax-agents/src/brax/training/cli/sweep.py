"""The command `brax sweep`: runs over seeds and settings, compared at the end."""

import contextlib
import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from brax import plugins
from brax.errors import ConfigError
from brax.training.checkpoints import run_directory
from brax.training.cli import compare, execution, options, run_settings

FINISHED_FILE = "finished"
"""Name of the empty file in the folder of a run of a sweep that has reached its end.

The steps of its last checkpoint do not say so: `stop_at_reward` and `max_seconds` end runs earlier,
and third-party trainers may save none.
"""

Variation = dict[str, Any]
"""Settings in which one group of runs differs from the others, by dotted key."""


@click.command()
@options.env_argument
@options.preset_option
@options.trainer_option
@options.steps_option
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Number of seeds: 0, 1, ...",
)
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY=VALUES",
    help="Vary a setting of the trainer: KEY=[1e-4, 1e-3] or, with --samples, "
    "KEY={low=1e-4, high=1e-2, log=true}. Repeatable.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    help="Number of settings to draw instead of trying all.",
)
@click.option(
    "--together/--one-by-one",
    default=True,
    help="Train all seeds in one program where possible, or one after the other.",
)
@click.option("--name", default="", help="Name of the sweep; by default environment and time.")
@options.runs_option
@options.set_option
def sweep(
    env: str,
    preset: str,
    trainer: str | None,
    steps: int | None,
    seeds: int,
    vary: tuple[str, ...],
    samples: int | None,
    together: bool,
    name: str,
    runs_dir: Path,
    changes: tuple[str, ...],
) -> None:
    """Train an agent in the environment ENV over seeds 0, 1, ... and over settings that vary.

    A run is stored in RUNS/NAME/SETTINGS/seedN. The same command again continues the sweep where it
    stopped. At the end the settings are compared as by brax compare.
    """
    run, environment = run_settings.prepare_run(env, trainer, preset, changes, num_timesteps=steps)
    agent = plugins.get("trainer", run.trainer)
    varied = run_settings.by_own_names(agent, run_settings.parse_changes(vary))
    if "seed" in varied or "seed" in run_settings.parse_changes(changes):
        raise ConfigError(
            "seed: a sweep trains every group with the seeds 0, 1, ...; say how many with --seeds."
        )
    cells = variations(varied, samples)
    folder = runs_dir / run_directory.folder_name(name, f"sweep-{env}")
    asked = {folder / label(cell): _varied_run(run, cell) for cell in cells}
    # All groups are checked before the first one trains.
    for each in asked.values():
        run_settings.check(run.trainer, run_settings.with_randomization(each.config, environment))
        if not each.config.get("num_evals", 1) or not each.config.get("run_evals", True):
            raise ConfigError("a sweep compares evaluations: num_evals must be at least 1.")
        if seeds > 1 and each.config.get("restore_checkpoint_path") is not None:
            raise ConfigError(
                "restore_checkpoint_path: all seeds would continue with the random numbers of one "
                "checkpoint, and learn the same. Leave it out, or set --seeds 1."
            )
    for place, each in asked.items():
        _check_existing_runs(place, each, seeds)
    try:
        for place, each in asked.items():
            _train_group(place, each, environment, seeds, together)
    except (KeyboardInterrupt, SystemExit):
        click.echo("interrupted; the same command continues the sweep", err=True)
        raise
    metric = "eval/episode_reward"
    compare.print_table(compare.comparison_rows(list(asked), metric), metric)


def variations(vary: Mapping[str, object], samples: int | None) -> list[Variation]:
    """Return every combination of the settings that vary, or a number of random ones.

    More samples begin with the same ones.

    Raises:
        ConfigError: if a value is neither a list nor a range, or only the other is allowed.
    """
    varied = dict(_flatten(vary))
    for key, values in varied.items():
        if key.split(".")[0] == "env":
            raise ConfigError(f"--vary {key}: only runs of one environment can be compared.")
        if isinstance(values, list) and values:
            continue
        if not isinstance(values, Range):
            raise ConfigError(
                f"--vary {key}={values}: expected a list such as [1e-4, 1e-3], or a range such as "
                "{low=1e-4, high=1e-2, log=true}."
            )
        if samples is None:
            raise ConfigError(f"--vary {key}: a range is drawn from; say how often with --samples.")
    if samples is None:
        return [
            dict(zip(varied, values, strict=True)) for values in itertools.product(*varied.values())
        ]
    # A fixed seed: the same command again finds the same groups.
    draw = random.Random(0)
    found: dict[str, Variation] = {}
    # Draws repeat where there are few combinations; the bound ends the search for new ones.
    for _ in range(1000 * samples):
        cell = {key: _draw(values, draw) for key, values in varied.items()}
        found.setdefault(label(cell), cell)
        if len(found) == samples:
            return list(found.values())
    raise ConfigError(
        f"--samples {samples}: there are only {len(found)} combinations; leave it out to try all."
    )


class Range(dict[str, Any]):
    """A range to draw from: `low`, `high`, and `log` for a uniform logarithm."""


def _flatten(tree: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Yield the settings that vary, by dotted key.

    Raises:
        ConfigError: if a range is not valid.
    """
    for key, value in tree.items():
        if isinstance(value, Mapping) and value.keys() & {"low", "high", "log"}:
            yield prefix + key, _range(prefix + key, value)
        elif isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _range(key: str, value: Mapping[str, object]) -> Range:
    """Return a range, checked.

    Raises:
        ConfigError: if it is not valid.
    """
    low, high = value.get("low"), value.get("high")
    if (
        value.keys() <= {"low", "high", "log"}
        and isinstance(low, int | float)
        and isinstance(high, int | float)
        and low < high
        and (low > 0 or not value.get("log"))
    ):
        return Range(value)
    raise ConfigError(
        f"--vary {key}={dict(value)}: expected numbers low < high, above 0 with log=true."
    )


def _draw(values: Any, draw: random.Random) -> Any:
    """Draw from a list or a range; the number is whole if both ends of the range are."""
    if not isinstance(values, Range):
        return draw.choice(values)
    low, high = values["low"], values["high"]
    if values.get("log"):
        found = math.exp(draw.uniform(math.log(low), math.log(high)))
        return round(found) if type(low) is type(high) is int else found
    return draw.randint(low, high) if type(low) is type(high) is int else draw.uniform(low, high)


def label(cell: Variation) -> str:
    """Return the name of a group's folder."""
    shown = (f"{k}={v}" for k, v in cell.items())
    # A slash would make a folder of its own.
    return ",".join(shown).replace("/", "|").replace(" ", "") or "default"


def _varied_run(run: run_directory.Run, cell: Variation) -> run_directory.Run:
    """Return a run with the settings of a group."""
    config = dict(run.config)
    for key, value in cell.items():
        for part in reversed(key.split(".")):
            value = {part: value}
        config = run_settings.merge(config, value)
    return run.with_config(**run_settings.recorded(config))


def _check_existing_runs(place: Path, run: run_directory.Run, seeds: int) -> None:
    """Reject a group whose folder has runs of an earlier sweep with other settings.

    Raises:
        ConfigError: naming the first such run.
    """
    for seed in range(seeds):
        folder, own = place / f"seed{seed}", run.with_config(seed=seed)
        # Newer versions of packages may continue a sweep.
        if folder.exists() and replace(run_directory.read(folder), versions=own.versions) != own:
            raise ConfigError(f"run '{folder}' exists with other settings: choose another --name.")


def _train_group(
    place: Path, run: run_directory.Run, environment: Any, seeds: int, together: bool
) -> None:
    """Train the runs of one group that have not been completed."""
    from brax.training.agent import Agent
    from brax.training.checkpoints import checkpoint
    from brax.training.runner.seeds import can_train_together

    new = []
    for seed in range(seeds):
        own, folder = run.with_config(seed=seed), place / f"seed{seed}"
        behind = checkpoint.available(folder / "checkpoints")
        if not folder.exists():
            new.append(seed)
        elif not (folder / FINISHED_FILE).exists() and not (
            # A third-party trainer may count its steps by another setting.
            behind and behind[-1] >= own.config.get("num_timesteps", math.inf)
        ):
            more = {"restore_checkpoint_path": folder / "checkpoints"} if behind else {}
            _train_run(own, folder, environment, **more)
    agent = plugins.get("trainer", run.trainer)
    if (
        together
        and len(new) > 1
        and isinstance(agent, Agent)
        and can_train_together(
            agent, environment, run_settings.with_randomization(run.config, environment)
        )
    ):
        _train_together(place, run, environment, new)
        return
    for seed in new:
        own = run.with_config(seed=seed)
        folder = own.create(place, f"seed{seed}")
        with run_directory.removed_unless_started([folder]):
            _train_run(own, folder, environment)


def _train_run(run: run_directory.Run, folder: Path, environment: Any, **more: object) -> None:
    """Train a run to its end, and note this in its folder. Arguments as `execution.train_run`."""
    execution.train_run(run, folder, environment, **more)
    (folder / FINISHED_FILE).touch()


def _train_together(
    place: Path, run: run_directory.Run, environment: Any, seeds: Sequence[int]
) -> None:
    """Train several seeds in one program, with loggers and a common display."""
    from brax.training.loggers import MetricLoggers
    from brax.training.runner.progress import Progress
    from brax.training.runner.seeds import train_seeds

    folders = [run.with_config(seed=seed).create(place, f"seed{seed}") for seed in seeds]
    config = run_settings.with_randomization(run.config, environment)
    settings = {name: value for name, value in config.items() if name != "seed"}
    title = f"{run.trainer} on {run.environment}, {place}, mean of {len(seeds)} seeds"
    reported: list[Mapping[str, Any]] = []
    with run_directory.removed_unless_started(folders), contextlib.ExitStack() as stack:
        loggers = [MetricLoggers(folder) for folder in folders]
        for each in loggers:
            stack.callback(each.close)
        progress = stack.enter_context(Progress(title, int(settings.get("num_timesteps", 0))))

        def report(i: int, step: int, metrics: Mapping[str, object]) -> None:
            loggers[i].write(step, metrics)
            reported.append(metrics)
            if i == len(seeds) - 1:
                # A seed without a finished episode reports fewer metrics: only common ones have a
                # mean.
                names = set.intersection(*map(set, reported))
                progress.update(
                    step, {n: sum(float(m[n]) for m in reported) / len(reported) for n in names}
                )
                reported.clear()

        train_seeds(
            plugins.get("trainer", run.trainer),
            environment,
            seeds,
            report,
            [folder / "checkpoints" for folder in folders],
            **settings,
        )
        for folder in folders:
            (folder / FINISHED_FILE).touch()
