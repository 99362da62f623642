"""`brax weigh MODEL`: the mass of a model."""

from pathlib import Path

import click

from brax import plugins
from brax.errors import unknown_name


@click.command()
@click.argument("model", type=click.Path(exists=True, path_type=Path))
def weigh(model: Path) -> None:
    """Prints the mass of MODEL, a file of any registered format."""
    formats = [plugins.get("model_format", name) for name in plugins.names("model_format")]
    readers = {suffix: reader for reader in formats for suffix in reader.suffixes}
    if model.suffix not in readers:
        raise unknown_name("suffix", model.suffix, readers)
    system = readers[model.suffix].load(model)
    click.echo(f"{float(system.link.inertia.mass.sum()):g} kg")
