"""Ctrl-C, SIGTERM and SIGHUP: noted at once, obeyed where the loop can save first."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Interrupt:
    """The signal that asked the run to stop, if any did."""

    signal: int | None = None

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Notes the first signal while the block runs; the second acts as it always does.

        Only a program's main thread gets signals; elsewhere this does nothing. What is ignored, as
        SIGHUP is by `nohup`, stays so.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        found = {number: signal.getsignal(number) for number in SIGNALS}
        before = {number: found[number] for number in found if found[number] != signal.SIG_IGN}

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
            SystemExit: for another, with exit status 128 more than its number.
        """
        assert self.signal is not None
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + self.signal)
