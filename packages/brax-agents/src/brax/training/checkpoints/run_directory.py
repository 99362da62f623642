"""Run directories: `run.json` with the settings of a run, next to its results."""

import contextlib
import importlib.metadata
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from brax.errors import ConfigError
from brax.training.checkpoints import checkpoint

RUN_FILE = "run.json"
"""Name of the file that makes a folder a run."""


def package_versions() -> dict[str, str]:
    """Return the versions of the packages that determine a run's numbers."""
    # MuJoCo reads models, and llvmlite compiles the kernels of a CPU. MuJoCo may be missing.
    others = {"flax", "jax", "jaxlib", "llvmlite", "mujoco", "optax"}
    versions: dict[str, str] = {}
    for found in importlib.metadata.distributions():
        # An interrupted installation can leave a folder without metadata, which has no name. To ask
        # for it as if it were there is deprecated.
        name = found.metadata.get_all("Name", [""])[0]
        if name.startswith("brax-") or name in others:
            # The first one on the path is the one that is imported.
            versions.setdefault(name, found.version)
    return dict(sorted(versions.items()))


@dataclass(frozen=True)
class Run:
    """The settings of a run, as stored in `run.json`."""

    environment: str
    """Name of the environment."""
    environment_kwargs: Mapping[str, Any]
    """Settings of the environment."""
    trainer: str
    """Name of the trainer."""
    config: Mapping[str, Any]
    """Settings of the trainer."""
    versions: Mapping[str, str] = field(default_factory=package_versions)
    """Versions of the packages."""

    def create(self, runs: Path, name: str) -> Path:
        """Make the run's directory. Without a name it is named after environment and time.

        Raises:
            ConfigError: if it exists already, or cannot be made.
        """
        folder = runs / folder_name(name, self.environment)
        try:
            # Fails if the folder exists, so that two runs never share one.
            folder.mkdir(parents=True)
            self.write(folder)
        except FileExistsError as error:
            raise ConfigError(
                f"run '{folder}' exists already. Continue it with: brax resume {folder}; "
                "or choose another --name."
            ) from error
        except OSError as error:
            raise ConfigError(
                f"cannot make the run's folder '{folder}': {error.strerror}. Choose another --runs."
            ) from error
        return folder

    def write(self, folder: Path) -> None:
        """Write `run.json` by a rename, so that it is never half written."""
        temporary = folder / f".{RUN_FILE}"
        temporary.write_text(json.dumps(asdict(self), indent=2) + "\n", "utf-8")
        temporary.rename(folder / RUN_FILE)

    def with_config(self, **changes: object) -> "Run":
        """Return this run with some settings of the trainer changed, and today's versions."""
        return replace(self, config={**self.config, **changes}, versions=package_versions())


def folder_name(name: str, otherwise: str) -> str:
    """Return the name of a run's folder: `name`, or by default `otherwise` and the time.

    Raises:
        ConfigError: if the name is a path.
    """
    if Path(name).name != name or name in (".", ".."):
        raise ConfigError(f"'{name}' is not allowed as a run's name: it must not be a path.")
    return name or time.strftime(f"{otherwise}-%Y%m%d-%H%M%S")


@contextlib.contextmanager
def removed_unless_started(folders: Sequence[Path]) -> Iterator[None]:
    """Remove the folders of runs that fail before they report anything, which frees their names."""
    try:
        yield
    except Exception:
        for folder in folders:
            metrics, saved = folder / "metrics.jsonl", folder / "checkpoints"
            reported = metrics.exists() and metrics.stat().st_size > 0
            begun = reported or checkpoint.available(saved)
            # A folder without `run.json` is none that a run has made: it is never removed.
            if (folder / RUN_FILE).is_file() and not begun:
                shutil.rmtree(folder, ignore_errors=True)
        raise


def read(folder: Path) -> Run:
    """Read the settings of a run.

    Raises:
        ConfigError: if the folder holds no run, or its `run.json` cannot be read.
    """
    path = folder / RUN_FILE
    if not path.is_file():
        raise ConfigError(f"'{folder}' is not a run: it has no {RUN_FILE}")
    try:
        run = Run(**json.loads(path.read_text("utf-8")))
    except (ValueError, TypeError) as error:
        raise ConfigError(f"'{path}' cannot be read: {error}") from error
    for name in ("environment_kwargs", "config"):
        if not isinstance(getattr(run, name), dict):
            raise ConfigError(f"'{path}': {name} must be a table of settings.")
    return run
