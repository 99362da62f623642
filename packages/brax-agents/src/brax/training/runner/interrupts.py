"""Ctrl-C, SIGTERM and SIGHUP: noted at once, obeyed when the loop has saved."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Interrupt:
    """The signal that asked the run to stop, if any."""

    signal: int | None = None

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Note the first signal while the block runs; a second one acts as it did before the block.

        Only the main thread of a program receives signals; in other threads this does nothing. A
        signal that is ignored, as SIGHUP is by `nohup`, stays ignored.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        found = {number: signal.getsignal(number) for number in SIGNALS}
        before = {number: found[number] for number in found if found[number] != signal.SIG_IGN}

        def note(number: int, frame: object) -> None:
            self.signal = number
            # The old handler is back at once, so that a second Ctrl-C ends a run that hangs.
            signal.signal(number, before[signal.Signals(number)])

        for number in before:
            signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop(self) -> NoReturn:
        """End the run as the signal would have ended it.

        Raises:
            KeyboardInterrupt: for Ctrl-C.
            SystemExit: for other signals, with 128 plus the signal's number as exit status.
        """
        assert self.signal is not None
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        # The exit status that shells report of a process which a signal has ended.
        raise SystemExit(128 + self.signal)
