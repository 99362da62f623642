"""Coordination of processes before JAX connects them: all are present, each with its own number.

An error that JAX's own service finds ends the program, without an exception that could be reported.
"""

import contextlib
import errno
import os
import socket
import time

JOIN_TIMEOUT_SECONDS = 60.0
"""Time to wait for a missing process [s]."""

_ACCEPTED = "welcome"
_HELLO_TIMEOUT_SECONDS = 5.0
"""Time that a process which has connected may take to say its number [s]."""


def wait_for_all(host: str, port: int, number: int, process: int) -> None:
    """Wait until all processes are present.

    Args:
        host: address at which the first process listens.
        port: its port; it is free again afterwards.
        number: number of processes.
        process: number of this process.

    Raises:
        OSError: saying what is wrong.
    """
    if process == 0:
        _accept_all(host, port, number)
    else:
        _connect(host, port, number, process)


def _accept_all(host: str, port: int, number: int) -> None:
    """Listen until all other processes have connected; report success or the problem to them."""
    end = time.monotonic() + JOIN_TIMEOUT_SECONDS
    problem, missing = "", set(range(1, number))
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(_server(host, port))
        clients: list[socket.socket] = []
        while missing and not problem:
            # At least a millisecond: a timeout of zero would mean not to wait at all.
            server.settimeout(max(end - time.monotonic(), 1e-3))
            try:
                client = stack.enter_context(server.accept()[0])
            except TimeoutError:
                problem = (
                    f"--process-id {_listed(missing)} missing after {JOIN_TIMEOUT_SECONDS:.0f} s"
                )
                break
            client.settimeout(_HELLO_TIMEOUT_SECONDS)
            said = _read_line(client).split()
            if len(said) != 2 or not all(word.isdecimal() for word in said):
                # Port scanners and other programs connect too.
                continue  # none of ours
            clients.append(client)
            process, its_number = map(int, said)
            if its_number != number:
                problem = f"process {process} has --num-processes {its_number}, process 0 {number}"
            elif process not in missing:
                problem = f"two processes have --process-id {process}"
            # Even after a problem: every process that has connected gets an answer.
            missing.discard(process)
        for client in clients:
            with contextlib.suppress(OSError):
                client.sendall(f"{problem or _ACCEPTED}\n".encode())
    if problem:
        raise OSError(problem)


def _connect(host: str, port: int, number: int, process: int) -> None:
    """Connect to the first process, as soon as it listens, and wait for its answer."""
    end = time.monotonic() + JOIN_TIMEOUT_SECONDS
    while True:
        try:
            with socket.create_connection(
                (host.strip("[]"), port), timeout=_HELLO_TIMEOUT_SECONDS
            ) as connection:
                # The first process waits no longer than this for the others.
                connection.settimeout(JOIN_TIMEOUT_SECONDS + _HELLO_TIMEOUT_SECONDS)
                connection.sendall(f"{process} {number}\n".encode())
                answer = _read_line(connection)
            cause = "the program that listens there is no process of this run"
        except OSError as error:
            answer, cause = "", f"nobody listens there ({error})"
        if answer == _ACCEPTED:
            return
        if answer:
            raise OSError(answer)
        if time.monotonic() > end:
            raise OSError(f"after {JOIN_TIMEOUT_SECONDS:.0f} s {cause}")
        # The first process may start later than this one.
        time.sleep(0.2)


def _server(host: str, port: int) -> socket.socket:
    """Listen at a port, at the given address if it is this machine's own, else at all addresses."""
    try:
        with contextlib.suppress(socket.gaierror):
            found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
            family, *_, address = found[0]
            try:
                return socket.create_server(address[:2], family=family)
            except OSError as error:
                # Behind address translation the coordinator's address is not one of this machine's.
                if error.errno != errno.EADDRNOTAVAIL:
                    raise
        if socket.has_dualstack_ipv6():
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        return socket.create_server(("", port))
    except OSError as error:
        cause = os.strerror(error.errno or 0)
        raise OSError(
            f"it cannot listen at port {port} ({cause}); another process has --process-id 0, or "
            "another program listens there"
        ) from error


def _read_line(connection: socket.socket) -> str:
    """Return a line from a connection, or an empty string if no whole line arrives."""
    with contextlib.suppress(OSError), connection.makefile("rb") as stream:
        # A bound, since anybody may connect.
        line = stream.readline(1000)
        if line.endswith(b"\n"):
            return line.decode("utf-8", "replace").strip()
    return ""


def _listed(numbers: set[int]) -> str:
    """Return numbers as text, with the verb that follows."""
    listed = ", ".join(map(str, sorted(numbers)))
    return f"{listed} is" if len(numbers) == 1 else f"{listed} are"
