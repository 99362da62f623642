"""`brax view --live`: frames that come while they are computed, for this computer alone."""

import gc
import http.client
import itertools
import re
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from scenes import glide, walker
from test_page import Visit, ball_columns

from brax import cli
from brax.errors import ConfigError
from brax.io import live
from brax.io.viewer import motion

PENDULUM = """<mujoco><worldbody><body name="arm"><joint axis="0 1 0"/>
<geom type="capsule" size=".05" fromto="0 0 0 .5 0 0"/></body></worldbody></mujoco>"""


def gliding():
    """Yield the walker moving along x at 1 m/s without end; the reward counts the frames."""
    return ((glide(0.05 * i), {"reward": float(i)}) for i in itertools.count())


@pytest.fixture(scope="module")
def address():
    """Return the address at which `serve` shows the moving walker."""
    ready, told = threading.Event(), []

    def tell(url):
        told.append(url)
        ready.set()

    source = live.Source(walker(), 0.05, "live", gliding())
    threading.Thread(target=live.serve, args=(source, 0, tell), daemon=True).start()
    assert ready.wait(60)
    return told[0]


def ask(address, path="/", method="GET", **headers):
    port = int(re.findall(r":(\d+)/", address)[0])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer


def test_only_this_computer_is_answered(address):
    """A foreign page that resolves its own name to 127.0.0.1 still sends that name."""
    port = address.split(":")[-1].strip("/")
    assert address.startswith("http://127.0.0.1:")
    assert ask(address)[0] == ask(address, Host=f"localhost:{port}")[0] == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "", f"127.0.0.1:{port}0"):
        for path in ("/", "/frames"):
            status, answer = ask(address, path, Host=host)
            assert status == 403 and b"answers only to 127.0.0.1" in answer.read()


def test_there_is_nothing_but_the_page_and_its_frames(address):
    for path in ("/etc/passwd", "//etc/passwd", "/../../etc/passwd", "/?a=/", "/frames/", "*"):
        assert ask(address, path)[0] == 404
    assert ask(address, method="POST")[0] == ask(address, method="PUT")[0] == 501
    assert "connect-src 'self'" in ask(address)[1].read(1000).decode()


def test_a_late_page_gets_what_it_missed_and_no_more():
    """A page takes nothing while 600 frames come, and is then sent the last 500."""
    server = live.Server()
    with server:
        frames: Any = server.follow()
        next(frames)
        for i in range(600):
            server.publish({"pos": np.full((1, 1), i)})
        rows = next(frames)
        assert len(rows) == live.MAX_QUEUED_FRAMES == 500
        server.publish({"pos": np.zeros((1, 1))})
        assert len(next(frames)) == 1
        frames.close()


def test_an_open_page_is_let_go_when_the_simulation_ends():
    """A page that is open gets all twenty frames after the first one, and then its stream ends."""
    told: list[Any] = []
    quick = live.Source(walker(), 0.02, "short", itertools.islice(gliding(), 21))
    served = threading.Thread(target=live.serve, args=(quick, 0, told.append), daemon=True)
    served.start()
    until(lambda: told)
    status, answer = ask(told[0], "/frames")
    content, deadline = b"", time.monotonic() + 20
    while chunk := answer.read1():
        assert time.monotonic() < deadline, "the stream has no end"
        content += chunk
    assert (status, content.count(b"data: ")) == (200, 20)
    served.join(20)
    assert not served.is_alive()


def test_browsers_leave_out_the_default_port():
    with live.Server() as server:
        assert "127.0.0.1" not in server.hosts
        server.server_port = 80
        assert server.hosts == ("127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost")


def test_a_port_in_use_is_refused(address):
    port = int(address.split(":")[-1].strip("/"))
    with pytest.raises(ConfigError, match=f"cannot listen at port {port}: .*0 for any"):
        live.Server(port)


@pytest.mark.parametrize("port", [70000, -1, "8000", 1.5])
def test_a_port_is_a_number_of_sixteen_bits(port):
    with pytest.raises(ConfigError, match="port must be a whole number from 0 to 65535, got "):
        live.Server(port)


def test_a_simulation_has_a_state():
    source = live.Source(walker(), 0.05, "nothing", iter(()))
    with pytest.raises(ConfigError, match=r"source.moments is empty: give at least one state"):
        live.serve(source)


def test_a_moment_has_a_row_for_every_contact_that_may_come():
    """The walker's plane can touch a ball, a capsule (at both ends) and a ball; they may touch."""
    apart = motion.moment(walker(), glide(0.0))
    whole = motion.arrays(walker(), [glide(0.0)])
    assert whole["contacts"].shape == (1, 1, 7)
    assert apart["contacts"].shape[1] >= 4
    assert (apart["contacts"][..., 0].sum(), apart["pos"].shape) == (1, (1, 3, 3))


@pytest.mark.parametrize(
    "args, complaint",
    [
        (["antt", "--live"], "'antt' is not a model file, a run or an environment. Environments: "),
        (["antt"], "there is no file 'antt'; runs and environments need --live"),
        (["x", "--seconds", "nan"], "nan is not finite"),
        (
            ["x", "--live", "--seconds", "2", "--output", "a"],
            "--output and --seconds cannot be used",
        ),
        (
            ["ant", "--live", "--pipeline", "spring"],
            "--pipeline can be used only with a model file",
        ),
        (
            [__file__, "--port", "0", "--seed", "3"],
            "--port and --seed can be used only with --live",
        ),
        (
            [__file__, "--live", "--seed", "0"],
            f"--seed has no effect on '{__file__}': nothing in its motion is random",
        ),
        (
            [__file__, "--forces", "--output", "a.MP4"],
            "--forces needs a page: let --output name a file that ends in .html, not '.MP4'",
        ),
    ],
)
def test_what_cannot_be_shown_is_refused(args, complaint, capsys):
    assert cli.main(["view", *args]) == 2
    assert complaint in capsys.readouterr().err


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_the_page_goes_on_as_frames_come(browser, address):
    """The walker glides on; paused, the page stays where it is and can look back."""
    context = browser.new_context(viewport={"width": 640, "height": 420})
    visit = Visit(context, address)
    number = lambda: int(visit.readout("frame").split()[0])  # noqa: E731
    until(lambda: number() > 10)
    assert abs(ball_columns(visit.picture()).mean() - 320) < 40  # followed from the start
    visit.page.get_by_role("button", name="Pause").click()
    visit.page.wait_for_timeout(300)
    stays, reward = number(), float(visit.readout("reward"))
    visit.page.wait_for_timeout(500)
    assert (number(), float(visit.readout("reward"))) == (stays, reward)
    visit.page.locator(".brax-viewer").press("ArrowLeft")
    until(lambda: number() == stays - 1)
    assert float(visit.readout("reward")) == reward - 1
    visit.page.get_by_role("button", name="Play").click()
    until(lambda: number() > stays + 10)
    assert visit.requests == [address, f"{address}frames"]
    assert visit.complaints == []
    context.close()


@pytest.mark.slow
def test_the_oldest_frames_go(browser):
    """The page keeps 500 of 700 frames; the walker's reward identifies them.

    The walker rests at every 100th frame until the page says so: the server keeps no more for a
    page that is held up than it does, and what rests must be told to its last frame.
    """
    seen = threading.Semaphore(0)

    def moments():
        for i, moment in enumerate(itertools.islice(gliding(), 701)):
            assert i % 100 or i == 0 or seen.acquire(timeout=60)
            yield moment

    quick = live.Source(walker(), 0.001, "quick", moments())
    told: list[Any] = []
    threading.Thread(target=live.serve, args=(quick, 0, told.append), daemon=True).start()
    until(lambda: told)
    context = browser.new_context(viewport={"width": 640, "height": 420})
    visit = Visit(context, told[0])
    for count in range(100, 701, 100):
        until(lambda c=count: visit.readout("frame").endswith(f"of {c}"))
        seen.release()
    until(lambda: visit.readout("frame").endswith("of 701"))
    visit.page.get_by_label("Frame").fill("0")
    until(lambda: visit.readout("frame") == "202 of 701")
    assert float(visit.readout("reward")) == 201
    context.close()


def test_ctrl_c_is_not_lost_where_an_exception_would_be():
    """Python prints and forgets what is raised while it collects garbage, and goes on."""

    def press(phase, info):
        gc.callbacks.remove(press)
        signal.raise_signal(signal.SIGINT)

    def moments():
        for i, moment in enumerate(itertools.islice(gliding(), 50)):
            if i == 3:
                gc.callbacks.append(press)
                gc.collect()
            shown.append(i)
            yield moment

    def look(url):
        threading.Thread(target=lambda: ask(url, "/frames")[1].read(), daemon=True).start()

    shown: list[Any] = []
    live.serve(live.Source(walker(), 0.001, "pressed", moments()), 0, look)
    assert shown == [0, 1, 2, 3]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.slow
def test_ctrl_c_ends_it(tmp_path):
    model = tmp_path / "arm.xml"
    model.write_text(PENDULUM)
    program = "import sys; from brax.cli import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", program, "view", str(model), "--live"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout
    line = process.stdout.readline().decode()
    (url,) = re.findall(r"http://127\.0\.0\.1:\d+/", line)
    status, answer = ask(url, "/frames")
    assert status == 200
    assert any(answer.readline().startswith(b"data: ") for _ in range(100))  # others are pauses
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, b"", b"")
