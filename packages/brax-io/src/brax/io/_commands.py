"""The commands of brax-io, which write pages, films, policies and reports."""

import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from brax import plugins
from brax.errors import ConfigError

_output = click.option(
    "--output", type=click.Path(path_type=Path), help="The file to write.", metavar="FILE"
)
_run = click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
_PLACE = re.compile(r" \([^()]*:\d+\)$")
"""File and line at the end of a reason."""
_open = click.option("--open", "show", is_flag=True, help="Open the page in the browser.")


def _is_number(_context: click.Context, _option: click.Parameter, value: float | None) -> Any:
    """Reject NaN and infinity."""
    # click's ranges accept NaN, since every comparison with it is false.
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not finite.")
    return value


@click.command()
@_run
@_output
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    help="Maximum length of the episode.  [default: that of the run's episodes]",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Random seed."
)
@click.option(
    "--beside",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="RUN",
    help="Another run to show next to it, with the same clock; repeatable.",
)
@_open
def render(
    run: Path,
    output: Path | None,
    steps: int | None,
    seed: int,
    show: bool,
    beside: tuple[Path, ...] = (),
) -> None:
    """Show an episode of a trained agent, from its RUN or one of its checkpoints.

    The page contains one episode, of at most --steps steps. It is written to the run's rollout.html
    unless --output names a file; FILE.mp4, FILE.gif and FILE.png, which is large, are films.
    """
    from brax.io.viewer import rollout

    record = rollout.find_run(run)
    target = _writable(output or record.folder / "rollout.html")
    if beside:
        _reject_film(target, "--beside")
    # All runs are found before the first episode is computed, so that a wrong path fails at once.
    runs = {path: rollout.find_run(path) for path in (run, *beside)}
    episodes = [rollout.episode(each, path, steps, seed) for path, each in runs.items()]
    if beside:
        rollout.save_beside(target, dict(zip(map(str, runs), episodes, strict=True)))
    else:
        episodes[0].save(target)
    _finish(target, show)


@click.command()
@click.argument("target")
@_output
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    callback=_is_number,
    help="Duration of the motion [s].  [default: 5]",
)
@click.option("--pipeline", help="The physics pipeline of a model.  [default: generalized]")
@click.option("--keyframe", default="", metavar="NAME", help="The keyframe to start from.")
@click.option("--forces", is_flag=True, help="Also show the contact forces.")
@click.option("--live", is_flag=True, help="Serve a page that shows the motion in real time.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port of --live; 0 takes a free one.  [default: 0]",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    help="Random seed of an environment or a run with --live.  [default: 0]",
)
@_open
def view(
    target: str,
    output: Path | None,
    seconds: float | None,
    pipeline: str | None,
    keyframe: str,
    forces: bool,
    live: bool,
    port: int | None,
    seed: int | None,
    show: bool,
) -> None:
    """Show the motion of a model file, TARGET, with all of its actuators off.

    With --keyframe it starts at the keyframe of that name, under its controls.

    The page is written to the current directory, named after the model, unless --output names a
    file; FILE.mp4, FILE.gif and FILE.png, which is large, are films.

    With --live nothing is written: a page at 127.0.0.1 shows TARGET move in real time until Ctrl-C.
    TARGET can then also be the name of an environment, which gets random actions, or a run or one
    of its checkpoints, whose agent acts.
    """
    from brax.io.viewer import rollout

    model, engine = Path(target), pipeline or "generalized"
    if live:
        _reject(
            "cannot be used with --live, which writes no file",
            output=output,
            seconds=seconds,
            forces=forces or None,
        )
        if model.is_file():
            _reject(f"has no effect on '{target}': nothing in its motion is random", seed=seed)
        else:
            _reject(f"can be used only with a model file, not '{target}'", pipeline=pipeline)
        _serve(target, engine, keyframe, port or 0, seed or 0, show)
        return
    if not model.is_file():
        raise ConfigError(f"there is no file '{target}'; runs and environments need --live")
    _reject("can be used only with --live", port=port, seed=seed)
    path = _writable(output or Path(model.stem + ".html"))
    if forces:
        _reject_film(path, "--forces")
    rollout.reader(model)  # rejects an unknown suffix before anything is said
    seconds = seconds or 5.0
    click.echo(f"compiling {engine}, then simulating {seconds:g} s of {model.name}", err=True)
    rollout.passive(model, seconds, engine, keyframe, forces).save(path)
    _finish(path, show)


def _reject(why: str, **options: object) -> None:
    """Reject the options that are given."""
    given = [f"--{name}" for name, value in options.items() if value is not None]
    if given:
        raise ConfigError(f"{' and '.join(given)} {why}")


def _reject_film(path: Path, option: str) -> None:
    from brax.io.viewer import rollout

    if rollout.is_film(path):
        raise ConfigError(
            f"{option} needs a page: let --output name a file that ends in .html, not "
            f"'{path.suffix}'"
        )


def _serve(target: str, pipeline: str, keyframe: str, port: int, seed: int, show: bool) -> None:
    from brax.io import live
    from brax.io.viewer import live_source

    def ready(address: str) -> None:
        click.echo(f"{address} shows {target}; Ctrl-C ends it")
        if show:
            click.launch(address)

    live.serve(live_source.source(target, pipeline, seed, keyframe), port, ready)


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--pipeline", default="generalized", show_default=True, help="The physics pipeline.")
def report(model: Path, pipeline: str) -> int:
    """List how each element of a MODEL file is treated, and why.

    Supported elements are only counted. Those that are approximated, ignored or refused are listed.
    The exit code is 1 if anything is refused.
    """
    from brax.io.viewer import rollout
    from brax.plugins.outputs.model_format import load

    engine = plugins.get("pipeline", pipeline)
    reader = rollout.reader(model)
    if hasattr(reader, "report"):
        findings = reader.report(model, pipeline)
    else:
        rows = engine.report(load(reader, model)) if hasattr(engine, "report") else []
        findings = [("model", *row) for row in rows]
    statuses = [status for _, _, status, _ in findings]
    click.echo(f"{statuses.count('supported')} supported")
    for line in _lines(findings):
        click.echo(line)
    return int("refused" in statuses)


def _lines(findings: Sequence[tuple[str, str, str, str]]) -> list[str]:
    """Return a line for each finding, but one for all ignored ones of an element and a reason."""
    lines: dict[object, tuple[str, int]] = {}
    for number, (element, name, status, reason) in enumerate(findings):
        kind = (element, _PLACE.sub("", reason)) if status == "ignored" else number
        text = f"{status:13}{element}{f' {name}' * bool(name)}: {reason}"
        first, count = lines.get(kind, (text, 0))
        if status != "supported":
            lines[kind] = first, count + 1
    return [text + f", and {count - 1} more" * (count > 1) for text, count in lines.values()]


@click.command()
@_run
@_output
def export(run: Path, output: Path | None) -> None:
    """Write the policy of a trained agent, from its RUN or one of its checkpoints.

    The file needs neither Brax nor JAX: FILE.py is a Python module with one NumPy function,
    FILE.onnx is a model for any ONNX runtime. The default is policy.py in the run's folder.
    """
    from brax.io import export as files
    from brax.io.viewer import rollout

    record = rollout.find_run(run)
    target = _writable(output or record.folder / "policy.py")
    files.writer(target)  # rejects an unknown suffix before the policy is loaded
    env, policy = rollout.trained(record, run)
    files.save(target, policy, env.observation_size)
    click.echo(target)


def _writable(path: Path) -> Path:
    """Return `path` after checking, before any long work, that it can be written."""
    folder = path.parent
    if not folder.is_dir():
        raise ConfigError(f"cannot write '{path}': there is no folder '{folder}'")
    if path.is_dir() or not os.access(path if path.exists() else folder, os.W_OK):
        raise ConfigError(f"cannot write '{path}': it is a folder, or you may not write there")
    return path


def _finish(path: Path, show: bool) -> None:
    click.echo(path)
    if show:
        click.launch(path.resolve().as_uri())
