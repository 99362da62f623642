"""Run directories: what was asked for, and what came of it."""

import importlib.metadata
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from brax.errors import ConfigError

RECORD = "run.json"
"""Name of the file that makes a folder a run."""


def package_versions() -> dict[str, str]:
    """Versions of what decides a run's numbers."""
    names = [d.metadata["Name"] for d in importlib.metadata.distributions()]
    relevant = {n for n in names if n.startswith("brax-")} | {"jax", "jaxlib", "flax", "optax"}
    return {name: importlib.metadata.version(name) for name in sorted(relevant)}


@dataclass(frozen=True)
class Run:
    """What a run was asked to do, as its `run.json` says it."""

    environment: str
    """Name of the environment."""
    environment_kwargs: Mapping[str, Any]
    """Its settings."""
    trainer: str
    """Name of the trainer."""
    config: Mapping[str, Any]
    """The trainer's settings."""
    versions: Mapping[str, str] = field(default_factory=package_versions)
    """Versions of the packages."""

    def create(self, runs: Path, name: str) -> Path:
        """Makes the run's directory; without a name it is called after environment and time.

        Raises:
            ConfigError: if it is there already, or cannot be made.
        """
        name = name or time.strftime(f"{self.environment}-%Y%m%d-%H%M%S")
        if Path(name).name != name or name in (".", ".."):
            raise ConfigError(f"'{name}' is no name for a run: it must not be a path.")
        folder = runs / name
        try:
            folder.mkdir(parents=True)
            self.write(folder)
        except FileExistsError as error:
            raise ConfigError(
                f"run '{folder}' is there already. Go on with: brax resume {folder}; "
                "or choose another --name."
            ) from error
        except OSError as error:
            raise ConfigError(
                f"cannot make the run's folder '{folder}': {error.strerror}. Choose another --runs."
            ) from error
        return folder

    def write(self, folder: Path) -> None:
        """Writes `run.json`; replaced as one, so that it is never half there."""
        temporary = folder / f".{RECORD}"
        temporary.write_text(json.dumps(asdict(self), indent=2) + "\n", "utf-8")
        temporary.rename(folder / RECORD)

    def with_config(self, **changes: Any) -> "Run":
        """This run with some settings of the trainer changed, and today's versions."""
        return replace(self, config={**self.config, **changes}, versions=package_versions())


def read(folder: Path) -> Run:
    """Reads what a run was asked to do.

    Raises:
        ConfigError: if the folder holds no run, or its `run.json` cannot be read.
    """
    path = folder / RECORD
    if not path.is_file():
        raise ConfigError(f"'{folder}' is no run: it has no {RECORD}")
    try:
        return Run(**json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError) as error:
        raise ConfigError(f"'{path}' cannot be read: {error}") from error
