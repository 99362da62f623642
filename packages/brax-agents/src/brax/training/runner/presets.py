"""Presets: named settings of agents as data, by environment."""

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from brax.errors import ConfigError, closest

Presets = Mapping[str, Mapping[str, Mapping[str, Any]]]

ANY = "any"
"""Key of the presets for environments that have none of their own."""


@functools.cache
def read(path: Path) -> Presets:
    """Read presets from TOML: a table for each environment, with a table for each preset in it."""
    return tomllib.loads(path.read_text("utf-8"))


def choose(trainer: Any, environment: Any, environment_name: str, preset: str) -> dict[str, Any]:
    """Return the settings of a preset.

    Args:
        trainer: trainer; its `presets`, if any, are by environment and preset.
        environment: environment; its `presets`, if any, are by trainer and preset, and come first.
        environment_name: name of the environment.
        preset: name of the preset.

    Raises:
        ConfigError: if there is no such preset.
    """
    table: Presets = getattr(trainer, "presets", {})
    # Later entries win: the environment's own presets, then the trainer's for it, then those for
    # any.
    found = {
        **table.get(ANY, {}),
        **table.get(environment_name, {}),
        **getattr(environment, "presets", {}).get(trainer.name, {}),
    }
    if preset in found:
        return dict(found[preset])
    # Every environment has a default preset, that of the settings' own defaults.
    if preset == "default":
        return {}
    raise ConfigError(
        f"'{environment_name}' has no preset '{preset}' for {trainer.name}. "
        f"Presets: {', '.join(sorted(found)) or 'none'}.{closest(preset, found)}"
    )
