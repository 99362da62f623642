"""Shows a simulation while it runs: a page, and a server on this computer that sends it frames.

The frames are server-sent events (WHATWG HTML, section 9.2). Each is the newest state as float32 in
base64, in the order of the page's arrays.
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
from http.client import HTTP_PORT
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import numpy as np

from brax.base import State, System
from brax.errors import ConfigError
from brax.io import _arguments, html
from brax.io.viewer import motion

HOST = "127.0.0.1"
_MAX_PORT = 65535
MAX_QUEUED_FRAMES = 500
"""Number of frames that a slow page can fall behind."""
IDLE_POLL_SECONDS = 0.2
"""Time between two checks for an open page [s]."""


class Source(NamedTuple):
    """A simulation to show."""

    sys: System
    dt: float
    """Time between two states [s]."""
    title: str
    moments: Iterator[tuple[State, Mapping[str, Any]]]
    """States in order of time, each with the same names of numbers or (n,) arrays to plot."""


class Server(ThreadingHTTPServer):
    """Serves one page and its frames, only to this computer, and no files."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        """Listen at a port; 0 takes a free one.

        Raises:
            ConfigError: if it cannot listen there.
        """
        if type(port) is not int or not 0 <= port <= _MAX_PORT:
            raise ConfigError(f"port must be a whole number from 0 to {_MAX_PORT}, got {port!r}")
        self.page = b""
        self._news = threading.Condition()
        self._rows: collections.deque[bytes] = collections.deque(maxlen=MAX_QUEUED_FRAMES)
        self._count = 0
        self._watching = 0
        self._closed = False
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise ConfigError(
                f"cannot listen at port {port}: {error.strerror}. Choose another, or 0 for any "
                "that is free"
            ) from error

    def server_close(self) -> None:
        """Close the socket, and end the streams of the open pages."""
        with self._news:
            self._closed = True
            self._news.notify_all()
        super().server_close()

    @property
    def hosts(self) -> tuple[str, ...]:
        """The values of the `Host` header that are accepted."""
        names = (HOST, "localhost")
        # Browsers leave out the default port of HTTP.
        bare = names if self.server_port == HTTP_PORT else ()
        return (*(f"{name}:{self.server_port}" for name in names), *bare)

    def publish(self, numbers: Mapping[str, np.ndarray]) -> None:
        """Send a frame, arrays of the same shape as those of `live_page`, to every open page."""
        # An event is text, so the numbers are in base64.
        row = base64.b64encode(_flat(numbers))
        with self._news:
            self._rows.append(row)
            self._count += 1
            self._news.notify_all()

    def wait_for_page(self) -> bool:
        """Return whether a page is open, after waiting a short time for one.

        The simulation pauses while no page is open.
        """
        with self._news:
            return self._news.wait_for(lambda: self._watching > 0, timeout=IDLE_POLL_SECONDS)

    def follow(self) -> Iterator[list[bytes]]:
        """Yield new frames as they arrive, until the server closes.

        It yields an empty list after a second without any.

        A page that falls behind by more than `MAX_QUEUED_FRAMES` loses the oldest of them.
        """
        with self._news:
            self._watching += 1
            self._news.notify_all()
            sent = self._count
        try:
            while True:
                with self._news:
                    self._news.wait_for(
                        lambda: self._closed or self._count > sent,  # noqa: B023
                        timeout=1,
                    )
                    late = min(self._count - sent, len(self._rows))
                    rows = [self._rows[-i] for i in range(late, 0, -1)]
                    sent, closed = self._count, self._closed
                yield rows
                if closed:
                    return
        finally:
            with self._news:
                self._watching -= 1


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    timeout = 30

    def do_GET(self) -> None:
        """Send the page, or its frames."""
        host = self.headers.get("Host", "")
        # DNS rebinding: a web page can make its own host name resolve to 127.0.0.1 and read from
        # this server, but its requests still carry that name.
        if host not in self.server.hosts:
            message = f"this server answers only to {self.server.hosts[0]}, not to {host!r}"
            self._answer(HTTPStatus.FORBIDDEN, "text/plain; charset=utf-8", message.encode())
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

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def serve(source: Source, port: int = 0, ready: Callable[[str], None] = print) -> None:
    """Show a simulation in real time until it ends or Ctrl-C is pressed.

    Args:
        source: the simulation.
        port: port to listen at; 0 takes a free one.
        ready: called with the page's address.

    Raises:
        ConfigError: if the port is not available, or there is no state.
        ModelError: if a geom cannot be drawn, or a state is not finite.
    """
    if not isinstance(source, Source):
        raise ConfigError(f"source must be a brax.io.live.Source, got {_arguments.kind(source)}")
    with Server(port) as server:
        frames = (_numbers(source.sys, *moment) for moment in source.moments)
        begin = list(itertools.islice(frames, 2))  # compiles before a page is open
        if not begin:
            raise ConfigError("source.moments is empty: give at least one state")
        first, *second = begin
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
    """Give a function that returns whether Ctrl-C was pressed.

    A second press raises `KeyboardInterrupt` as usual. Python's own handler is not enough: the
    exception is lost when it is raised within a callback of the garbage collector, and JAX has one.
    """
    if threading.current_thread() is not threading.main_thread():  # signals arrive only there
        yield lambda: False
        return
    pressed: list[int] = []

    def note(number: int, frame: object) -> None:
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
    """Send frames `dt` apart, or as fast as they are computed."""
    due = time.monotonic()
    while not interrupted():
        if not server.wait_for_page():
            continue
        frame = next(frames, None)
        if frame is None:
            return
        time.sleep(max(0.0, due - time.monotonic()))
        # A delay is not caught up: frames after a pause are `dt` apart again.
        due = max(due, time.monotonic() - dt) + dt
        server.publish(frame)


def _numbers(sys: System, state: State, series: Mapping[str, object]) -> dict[str, np.ndarray]:
    shown = {f"series/{name}": np.asarray(value)[None] for name, value in series.items()}
    return motion.moment(sys, state) | shown


def _flat(numbers: Mapping[str, np.ndarray]) -> bytes:
    return np.concatenate([np.ravel(row).astype("<f4") for row in numbers.values()]).tobytes()
