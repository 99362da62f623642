"""Metric loggers: each file writes metrics in one form.

They are registered through the hook `brax_metric_loggers`.
"""

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from brax import plugins
from brax.errors import PluginError, describe_error


class MetricLogger(Protocol):
    """A writer of metrics."""

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write the metrics of one report, made after `step` environment steps."""

    def close(self) -> None:
        """Finish writing."""


class MetricLoggers:
    """All installed loggers. One that fails is left out; training continues."""

    def __init__(self, run_dir: Path) -> None:
        """Open a logger of every kind for a run's directory."""
        self._loggers: dict[str, MetricLogger] = {}
        for name in plugins.names("metric_logger"):
            self._try(name, lambda name=name: self._open(name, run_dir))  # type: ignore[misc]

    def write(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Write to every logger."""
        numbers = {name: float(value) for name, value in metrics.items()}
        for name, logger in list(self._loggers.items()):
            self._try(name, lambda logger=logger: logger.write(step, numbers))  # type: ignore[misc]

    def close(self) -> None:
        """Close every logger."""
        for name, logger in list(self._loggers.items()):
            self._try(name, logger.close)

    def _open(self, name: str, run_dir: Path) -> None:
        """Make a logger and check that it has the functions of one."""
        logger = plugins.get("metric_logger", name)(run_dir)
        for function in ("write", "close"):
            if not callable(getattr(logger, function, None)):
                raise PluginError(
                    f"{plugins.specs('metric_logger')[name]} must return an object with write and "
                    f"close, but {type(logger).__name__} has no {function}"
                )
        self._loggers[name] = logger

    def _try(self, name: str, action: Callable[[], None]) -> None:
        """Call a function of a logger; if it fails, warn and leave the logger out."""
        try:
            action()
        # Any error of a third party: a full disk or a lost connection must not end a run.
        except Exception as error:
            self._loggers.pop(name, None)
            warnings.warn(
                f"metric logger '{name}' is left out: {describe_error(error)}",
                stacklevel=3,
            )


def without_half_a_line(path: Path) -> Path:
    """Cut off an unfinished last line, which a full disk leaves; the next line would continue it.

    Returns:
        The file, which need not exist.
    """
    if path.exists():
        whole, _, half = path.read_bytes().rpartition(b"\n")
        if half:
            os.truncate(path, len(whole) + 1 if whole else 0)
    return path
