"""The commands of brax-io: from a run or a model to a page, a film, a policy or a report."""

import math
import os
from pathlib import Path
from typing import Any

import click

from brax import plugins
from brax.errors import ConfigError

_output = click.option(
    "--output", type=click.Path(path_type=Path), help="The file to write.", metavar="FILE"
)
_run = click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
_open = click.option("--open", "show", is_flag=True, help="Open the page in the browser.")


def _is_number(_context: click.Context, _option: click.Parameter, value: float | None) -> Any:
    """Refuses NaN, which is in every range to click, and infinity."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not finite.")
    return value


@click.command()
@_run
@_output
@click.option("--steps", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--beside",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="RUN",
    help="Another run to show beside it, by the same clock; repeatable.",
)
@_open
def render(
    run: Path,
    output: Path | None,
    steps: int,
    seed: int,
    show: bool,
    beside: tuple[Path, ...] = (),
) -> None:
    """Shows what a trained agent does, from its RUN or one of its checkpoints.

    The page holds one episode, of at most --steps steps of the environment. It is written to the
    run's rollout.html unless --output names a file; FILE.mp4 and FILE.gif are films.
    """
    from brax.io.viewer import rollout

    record = rollout.find_run(run)
    target = _writable(output or record.folder / "rollout.html")
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
    help="How long; 5 if not.",
)
@click.option("--pipeline", default="spring", show_default=True, help="What computes the steps.")
@click.option("--keyframe", default="", metavar="NAME", help="The model's state to start from.")
@click.option("--forces", is_flag=True, help="Show the forces at the contacts too.")
@click.option("--live", is_flag=True, help="Serve a page on this computer that shows it go on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of --live; 0 is any.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Of --live: of all chance.")
@_open
def view(
    target: str,
    output: Path | None,
    seconds: float | None,
    pipeline: str,
    keyframe: str,
    forces: bool,
    live: bool,
    port: int,
    seed: int,
    show: bool,
) -> None:
    """Shows a model file, TARGET: how it moves when all of its actuators are off.

    With --keyframe it starts at the state of that name, under its controls.

    The page is written beside where you are, named after the model, unless --output names a file;
    FILE.mp4 and FILE.gif are films.

    With --live nothing is written: a page at 127.0.0.1 shows TARGET move, in real time, until
    Ctrl-C. TARGET may then also be an environment's name, which acts at random, or a run or one of
    its checkpoints, whose agent acts.
    """
    from brax.io.viewer import rollout

    if live:
        _refuse_with_live(output=output, seconds=seconds, forces=forces or None)
        _serve(target, pipeline, keyframe, port, seed, show)
        return
    model = Path(target)
    if not model.is_file():
        raise ConfigError(f"there is no file '{target}'; runs and environments need --live")
    path = _writable(output or Path(model.stem + ".html"))
    rollout.passive(model, seconds or 5.0, pipeline, keyframe, forces).save(path)
    _finish(path, show)


def _refuse_with_live(**options: object) -> None:
    given = [f"--{name}" for name, value in options.items() if value is not None]
    if given:
        raise ConfigError(f"{' and '.join(given)} cannot go with --live, which writes no file")


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
@click.option("--pipeline", default="spring", show_default=True, help="What computes the steps.")
def report(model: Path, pipeline: str) -> int:
    """Says what becomes of a MODEL file: what is approximated, ignored or refused, and why.

    What is supported is counted. The exit code is 1 if anything is refused.
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
    for element, name, status, reason in findings:
        if status != "supported":
            click.echo(f"{status:13}{element}{f' {name}' * bool(name)}: {reason}")
    return int("refused" in statuses)


@click.command()
@_run
@_output
def export(run: Path, output: Path | None) -> None:
    """Writes the policy of a trained agent, from its RUN or one of its checkpoints.

    The file needs neither Brax nor JAX: FILE.py is a Python module with one function of NumPy,
    FILE.onnx a model for any ONNX runtime. It is the run's policy.py unless --output names a file.
    """
    from brax.io import export as files
    from brax.io.viewer import rollout

    record = rollout.find_run(run)
    target = _writable(output or record.folder / "policy.py")
    files.writer(target)  # refuses another suffix before any long work
    env, policy = rollout.trained(record, run)
    files.save(target, policy, env.observation_size)
    click.echo(target)


def _writable(path: Path) -> Path:
    """Refuses, before any long work, a file that cannot be written."""
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
