"""A writer of metrics for TensorBoard, as Google's brax has it; `tensorboardX` must be installed.

Runs of agents write their metrics themselves, by `brax.training.loggers`.
"""

from collections.abc import Mapping
from typing import Any, Self


class Writer:
    """Writes scalars to event files, as a context manager or until the program ends."""

    def __init__(self, logdir: str = "") -> None:
        """Open a file in the folder `logdir`; by default tensorboardX chooses one."""
        from tensorboardX import SummaryWriter

        self._writer: Any = SummaryWriter(logdir=logdir)

    def write_scalars(self, step: int, scalars: Mapping[str, object]) -> None:
        """Write numbers by name at a step."""
        for name, value in scalars.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def write_hparams(self, hparams: Mapping[str, object]) -> None:
        """Write settings by name."""
        self._writer.add_hparams(dict(hparams), {})

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self._writer.close()
