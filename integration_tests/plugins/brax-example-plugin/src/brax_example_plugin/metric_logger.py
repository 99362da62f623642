"""The newest metrics alone, to be watched: `watch cat runs/NAME/latest.txt`."""

from pathlib import Path


class Latest:
    """Writes `latest.txt`: one line a metric, of the last report."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / "latest.txt"

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Replace the contents of the file.

        Args:
            step: environment steps so far.
            metrics: names and values.
        """
        lines = [f"{name} {value:g}\n" for name, value in {"step": step, **metrics}.items()]
        self._path.write_text("".join(lines), "utf-8")

    def close(self) -> None:
        """Nothing is open between two reports."""
