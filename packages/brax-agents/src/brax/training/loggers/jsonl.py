"""Metrics as JSON, one line per report."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

from brax.training.loggers import without_half_a_line


class JsonLines:
    """The file `metrics.jsonl` in a run's directory, with one object per report."""

    def __init__(self, run_dir: Path) -> None:
        """Open the file, and continue it if it exists."""
        self._file = without_half_a_line(run_dir / "metrics.jsonl").open("a", encoding="utf-8")

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write one line; numbers that are not finite become null, since JSON has no others."""
        numbers = {name: x if math.isfinite(x) else None for name, x in metrics.items()}
        self._file.write(json.dumps({"step": step, **numbers}) + "\n")
        # A run that is killed has lost nothing that it reported.
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
