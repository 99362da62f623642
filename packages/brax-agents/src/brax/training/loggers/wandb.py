"""Metrics for Weights & Biases, offline unless its own variable says otherwise."""

import importlib
import importlib.util
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def wanted() -> bool:
    """Return whether wandb is installed and not switched off by `WANDB_MODE=disabled`."""
    found = importlib.util.find_spec("wandb")  # without an origin it is a folder of runs
    installed = found is not None and found.origin is not None
    return installed and os.environ.get("WANDB_MODE") != "disabled"


class WeightsAndBiases:
    """A run of wandb in `wandb/` of a run's directory.

    Nothing leaves the computer by default: `wandb sync` uploads the run later, and
    `WANDB_MODE=online` uploads it at once.
    """

    def __init__(self, run_dir: Path) -> None:
        """Begin a run of wandb, with the settings of `run.json`."""
        wandb: Any = importlib.import_module("wandb")
        record = run_dir / "run.json"
        self._run: Any = wandb.init(
            project="brax",
            name=run_dir.name,
            dir=str(run_dir),
            config=json.loads(record.read_text("utf-8")) if record.exists() else None,
            mode=os.environ.get("WANDB_MODE", "offline"),
            # A sweep has several runs in one process.
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off"),
        )

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write the metrics of one report."""
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        """End wandb's run."""
        self._run.finish()
