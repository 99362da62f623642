"""Metrics as a table, one line a report."""

import csv
from pathlib import Path


class CsvLogger:
    """Writes `metrics.csv`; its columns are those of the first report."""

    def __init__(self, run_dir: Path) -> None:
        self._file = (run_dir / "metrics.csv").open("w", newline="")
        self._writer: csv.DictWriter[str] | None = None

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Adds a line.

        Args:
            step: environment steps so far.
            metrics: names and values.
        """
        row = {"step": step, **metrics}
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, list(row), restval="", extrasaction="ignore")
            self._writer.writeheader()
        self._writer.writerow(row)
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
