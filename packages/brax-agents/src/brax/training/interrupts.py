"""Ctrl-C and SIGTERM: noted at once, obeyed where the loop can save first."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn


@dataclass
class Interrupt:
    """The signal that asked the run to stop, if any did."""

    signal: int | None = None

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Notes the first signal while the block runs; the second acts as it always does.

        Only a program's main thread gets signals; elsewhere this does nothing.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def note(number: int, frame: Any) -> None:
            self.signal = number
            signal.signal(number, before[signal.Signals(number)])

        for number in before:
            signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self) -> NoReturn:
        """Ends the run as the signal would have ended it.

        Raises:
            KeyboardInterrupt: for Ctrl-C.
            SystemExit: for SIGTERM, with exit status 143.
        """
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + signal.SIGTERM)
