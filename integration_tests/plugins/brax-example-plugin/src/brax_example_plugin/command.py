"""`brax weigh MODEL`: the mass of a model."""

from pathlib import Path

import click

from brax import plugins
from brax.errors import unknown_name


@click.command()
@click.argument("model", type=click.Path(exists=True, path_type=Path))
def weigh(model: Path) -> None:
    """Print the mass of MODEL, a file of any registered format."""
    reader = plugins.find("model_format", model.suffix)
    if reader is None:
        raise unknown_name("suffix", model.suffix, plugins.keys("model_format"))
    system = reader.load(model)
    click.echo(f"{float(system.link.inertia.mass.sum()):g} kg")
