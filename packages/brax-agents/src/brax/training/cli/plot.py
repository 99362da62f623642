"""The command `brax plot`."""

from pathlib import Path

import click

from brax.errors import ConfigError, closest
from brax.training.analysis.curves import curves
from brax.training.analysis.plots import WRITERS


@click.command()
@click.argument(
    "runs",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option("--metric", default="eval/episode_reward", show_default=True, help="Metric to draw.")
@click.option(
    "--output",
    "outputs",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="FILE.png, FILE.svg or FILE.html; repeatable. By default curves.png and curves.html.",
)
def plot(runs: tuple[Path, ...], metric: str, outputs: tuple[Path, ...]) -> None:
    """Draw the learning curves of RUNS: the mean over seeds, one curve for each setting.

    Runs that differ only in their seed and length make one curve, with the 95 % interval of its
    mean.
    """
    targets = outputs or (Path("curves.png"), Path("curves.html"))
    for path in targets:
        # Before the runs are read, which may take long.
        if path.suffix not in WRITERS:
            raise ConfigError(
                f"'{path}': curves are written to {', '.join(WRITERS)}."
                f"{closest(path.suffix, WRITERS)}"
            )
    found = curves(runs, metric)
    for path in targets:
        content = WRITERS[path.suffix](found, metric)
        try:
            path.write_bytes(content)
        except OSError as error:
            raise ConfigError(f"cannot write '{path}': {error.strerror}") from error
        click.echo(path)
