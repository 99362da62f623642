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

USUAL_TRAINER = "ppo"
"""The trainer where the user names none and no other is known to be better."""


BEST_TRAINERS = Path(__file__).parents[1] / "agents" / "best.toml"
"""The file of the best trainers."""

STORED_RETURNS = Path(__file__).parents[1] / "agents" / "returns.toml"
"""The file of the returns that presets reached."""


@functools.cache
def read(path: Path) -> Mapping[str, Any]:
    """Read TOML.

    Presets have a table for each environment, with a table for each preset in it. The file of the
    best trainers has a table for each preset, with a name for each environment; that of the stored
    returns has a table for each environment in it, with a list for each trainer.
    """
    return tomllib.loads(path.read_text("utf-8"))


def best_trainer(environment_name: str, preset: str) -> str:
    """Return the name of the trainer that is known to be best for an environment and a preset."""
    return read(BEST_TRAINERS).get(preset, {}).get(environment_name, USUAL_TRAINER)


def stored_returns(trainer: str, environment_name: str, preset: str) -> list[float]:
    """Return the last evaluations' returns of the stored runs of a preset, one for each seed."""
    table = read(STORED_RETURNS).get(preset, {}).get(environment_name, {})
    return list(table.get(trainer, ()))


def choose(trainer: Any, environment: object, environment_name: str, preset: str) -> dict[str, Any]:
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
