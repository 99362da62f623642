"""Metrics for TensorBoard, by tensorboardX or torch, whichever is installed."""

import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def writer_module() -> str:
    """Return the name of an installed module with a `SummaryWriter`, or an empty string."""
    if importlib.util.find_spec("tensorboardX"):
        return "tensorboardX"
    if importlib.util.find_spec("torch") and importlib.util.find_spec("tensorboard"):
        return "torch.utils.tensorboard"
    return ""


class TensorBoard:
    """Event files in `tensorboard/` of a run's directory."""

    def __init__(self, run_dir: Path) -> None:
        """Open an event file."""
        module = importlib.import_module(writer_module())
        self._writer: Any = module.SummaryWriter(str(run_dir / "tensorboard"))

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write every metric as a scalar."""
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()
