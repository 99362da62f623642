"""Processes meet before JAX connects them; here each is a thread."""

import socket
import threading

import pytest

from brax.errors import ConfigError
from brax.training.distributed import coordination, hosts


@pytest.fixture
def port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def met(port, *processes):
    """Return the answer to each `(process, number)`: None if all is well."""
    told: list[str | None] = [None] * len(processes)

    def meet(i, process, number):
        try:
            coordination.wait_for_all("127.0.0.1", port, number, process)
        except OSError as error:
            told[i] = str(error)

    threads = [threading.Thread(target=meet, args=(i, *p)) for i, p in enumerate(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def test_all_are_there(port):
    assert met(port, (2, 3), (0, 3), (1, 3)) == [None] * 3
    assert met(port, (0, 1)) == [None]


def test_two_have_one_number(port):
    assert met(port, (1, 3), (0, 3), (1, 3)) == ["two processes have --process-id 1"] * 3


def test_two_are_the_first(port):
    with coordination._server("127.0.0.1", port), pytest.raises(ConfigError) as told:
        hosts.join(f"127.0.0.1:{port}", 2, 0)
    assert f"process 0 of 2 cannot join at 127.0.0.1:{port}: it cannot listen" in str(told.value)
    assert "(Address already in use); another process has --process-id 0" in str(told.value)


def test_numbers_of_processes_differ(port):
    told = "process 1 has --num-processes 2, process 0 3"
    assert met(port, (0, 3), (1, 2)) == [told] * 2


def test_some_are_missing(port, monkeypatch):
    monkeypatch.setattr(coordination, "JOIN_TIMEOUT_SECONDS", 1.0)
    told = "--process-id 1, 3 are missing after 1 s"
    assert met(port, (0, 4), (2, 4)) == [told] * 2


def test_the_first_is_missing(port, monkeypatch):
    monkeypatch.setattr(coordination, "JOIN_TIMEOUT_SECONDS", 0.5)
    [told] = met(port, (1, 2))
    assert "nobody listens there" in told


def test_another_program_listens(port, monkeypatch):
    monkeypatch.setattr(coordination, "JOIN_TIMEOUT_SECONDS", 0.5)
    with coordination._server("127.0.0.1", port):  # it takes connections and answers nothing
        monkeypatch.setattr(coordination, "_read_line", lambda connection: "")
        [told] = met(port, (1, 2))
    assert "the program that listens there is no process of this run" in told


@pytest.mark.parametrize("words", ["GET / HTTP/1.1\r\n\r\n", "\N{SUPERSCRIPT TWO} 2\n"])
def test_a_foreign_process_is_not_counted(port, words, monkeypatch):
    monkeypatch.setattr(coordination, "JOIN_TIMEOUT_SECONDS", 5.0)
    told: list[str | None] = []
    first = threading.Thread(target=lambda: told.extend(met(port, (0, 2))))
    first.start()
    foreign(port, words)
    assert met(port, (1, 2)) == [None]
    first.join()
    assert told == [None]


def foreign(port, words):
    for _ in range(100):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as there:
                there.sendall(words.encode())
                return
        except OSError:
            threading.Event().wait(0.005)
