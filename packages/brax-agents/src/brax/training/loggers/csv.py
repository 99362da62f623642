"""Metrics as a table, one line per report."""

import csv
from collections.abc import Mapping
from pathlib import Path

from brax.training.loggers import without_half_a_line


class CsvTable:
    """The table `metrics.csv` in a run's directory. A new metric gets a new column."""

    def __init__(self, run_dir: Path) -> None:
        """Open the table, and continue it if it exists."""
        self._path = without_half_a_line(run_dir / "metrics.csv")
        self._columns: list[str] = []
        if self._path.exists():
            self._columns = list(self._read()[0])
        self._file = self._path.open("a", encoding="utf-8", newline="")

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write one line; metrics that were not reported are left empty."""
        row = {"step": step, **metrics}
        if new := [name for name in row if name not in self._columns]:
            self._widen(new)
        csv.writer(self._file).writerow([row.get(name, "") for name in self._columns])
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self) -> list[list[str]]:
        """Return the header and the lines so far."""
        with self._path.open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file)) or [[]]

    def _widen(self, names: list[str]) -> None:
        """Write the table again with more columns, by one rename."""
        self._file.close()
        _, *lines = self._read()
        self._columns += names
        part = self._path.with_suffix(".tmp")
        with part.open("w", encoding="utf-8", newline="") as file:
            missing = [""] * len(names)
            csv.writer(file).writerows([self._columns, *(line + missing for line in lines)])
        # Whatever happens before this line, the old table is whole.
        part.replace(self._path)
        self._file = self._path.open("a", encoding="utf-8", newline="")
