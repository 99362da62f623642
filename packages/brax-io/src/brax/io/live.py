"""A movement shown while it happens: a page, and a server on this computer that sends it frames.

The frames go as server-sent events (WHATWG HTML, section 9.2): the newest state of the simulation
as float32 in base64, in the order of the page's arrays.
"""

import base64
import collections
import contextlib
import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import numpy as np

from brax.base import State, System
from brax.errors import ConfigError
from brax.io import _arguments, html
from brax.io.viewer import motion

HOST = "127.0.0.1"
MAX_QUEUED_FRAMES = 500
"""Frames that a slow page may be behind."""
IDLE_POLL_SECONDS = 0.2
"""How long nothing is looked at while no page is open [s]."""


class Source(NamedTuple):
    """What is shown."""

    sys: System
    dt: float
    """Time between two states [s]."""
    title: str
    moments: Iterator[tuple[State, Mapping[str, Any]]]
    """States in order of time, each with numbers to show beside it, always the same names: a
    number or (n,)."""


class Server(ThreadingHTTPServer):
    """Serves one page and its frames, to this computer alone; it has no files."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        """Listens at a port; 0 is any that is free.

        Raises:
            ConfigError: if it cannot listen there.
        """
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise ConfigError(
                f"cannot listen at port {port}: {error.strerror}. Choose another, or 0 for any "
                "that is free"
            ) from error
        self.page = b""
        self._news = threading.Condition()
        self._rows: collections.deque[bytes] = collections.deque(maxlen=MAX_QUEUED_FRAMES)
        self._count = 0
        self._watching = 0

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names that a browser on this computer may call it by."""
        return tuple(f"{name}:{self.server_port}" for name in (HOST, "localhost"))

    def publish(self, numbers: Mapping[str, np.ndarray]) -> None:
        """Sends a frame to every page that is open."""
        row = base64.b64encode(_flat(numbers))
        with self._news:
            self._rows.append(row)
            self._count += 1
            self._news.notify_all()

    def wait_for_page(self) -> bool:
        """Return whether a page is open, after waiting a moment for one.

        Without a page nothing is computed.
        """
        with self._news:
            return self._news.wait_for(lambda: self._watching > 0, timeout=IDLE_POLL_SECONDS)

    def follow(self) -> Iterator[list[bytes]]:
        """Yields the frames that come, as long as the page takes them; none in a quiet second."""
        with self._news:
            self._watching += 1
            self._news.notify_all()
            sent = self._count
        try:
            while True:
                with self._news:
                    self._news.wait_for(lambda: self._count > sent, timeout=1)  # noqa: B023
                    late = min(self._count - sent, len(self._rows))
                    rows = [self._rows[-i] for i in range(late, 0, -1)]
                    sent = self._count
                yield rows
        finally:
            with self._news:
                self._watching -= 1


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    timeout = 30

    def do_GET(self) -> None:
        """The page, or its frames."""
        host = self.headers.get("Host", "")
        if (
            host not in self.server.hosts
        ):  # another name that resolves to this computer: DNS rebinding
            told = f"this server answers to {self.server.hosts[0]} only, not to {host!r}"
            self._answer(HTTPStatus.FORBIDDEN, "text/plain; charset=utf-8", told.encode())
        elif self.path == "/":
            self._answer(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page)
        elif self.path == "/frames":
            self._stream()
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"there is only /")

    def _answer(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self._head(status, kind)
        self.wfile.write(content)

    def _head(self, status: HTTPStatus, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()

    def _stream(self) -> None:
        self._head(HTTPStatus.OK, "text/event-stream")
        try:
            for rows in self.server.follow():
                self.wfile.write(b"".join(b"data: %b\n\n" % row for row in rows) or b":\n\n")
        except OSError:
            pass  # the page was closed

    def log_message(self, format: str, *args: Any) -> None:
        """Keeps the terminal quiet."""


def serve(source: Source, port: int = 0, ready: Callable[[str], None] = print) -> None:
    """Shows a movement in real time until it ends or Ctrl-C; it rests while no page is open.

    Args:
        source: what is shown.
        port: where to listen; 0 is any that is free.
        ready: is told the page's address.

    Raises:
        ConfigError: if it cannot listen at the port.
        ModelError: if a geom cannot be drawn, or a state is not finite.
    """
    if not isinstance(source, Source):
        raise ConfigError(f"source must be a brax.io.live.Source, got {_arguments.kind(source)}")
    with Server(port) as server:
        frames = (_numbers(source.sys, *moment) for moment in source.moments)
        first, *second = itertools.islice(frames, 2)  # what compiles does so before a page is open
        page = html.live_page(source.sys, first, dt=source.dt, title=source.title)
        server.page = page.encode()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with _ctrl_c() as interrupted:
                ready(f"http://{server.hosts[0]}/")
                _publish(server, itertools.chain(second, frames), source.dt, interrupted)
        finally:
            server.shutdown()


@contextlib.contextmanager
def _ctrl_c() -> Iterator[Callable[[], bool]]:
    """Tells whether Ctrl-C was pressed; pressed twice, it acts as it always does.

    The exception that it raises by itself is lost where it meets a callback of the garbage
    collector, and JAX has one.
    """
    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        yield lambda: False
        return
    pressed: list[int] = []

    def note(number: int, frame: Any) -> None:
        pressed.append(number)
        signal.signal(number, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


def _publish(
    server: Server,
    frames: Iterator[Mapping[str, np.ndarray]],
    dt: float,
    interrupted: Callable[[], bool],
) -> None:
    """One frame after another, `dt` apart, or as fast as they are computed."""
    due = time.monotonic()
    while not interrupted():
        if not server.wait_for_page():
            continue
        frame = next(frames, None)
        if frame is None:
            return
        time.sleep(max(0.0, due - time.monotonic()))
        due = max(due, time.monotonic() - dt) + dt
        server.publish(frame)


def _numbers(sys: System, state: State, series: Mapping[str, Any]) -> dict[str, np.ndarray]:
    shown = {f"series/{name}": np.asarray(value)[None] for name, value in series.items()}
    return motion.moment(sys, state) | shown


def _flat(numbers: Mapping[str, np.ndarray]) -> bytes:
    return np.concatenate([np.ravel(row).astype("<f4") for row in numbers.values()]).tobytes()
