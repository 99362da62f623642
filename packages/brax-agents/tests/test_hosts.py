"""Several processes on one machine that train one model, have different settings, or die."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from agent_toys import SMALL, STEP, Point

from brax.errors import ConfigError, TrainingError
from brax.training.agents.ppo import train as ppo
from brax.training.checkpoints import checkpoint
from brax.training.checkpoints.writer import Writer
from brax.training.config import Runtime
from brax.training.distributed import devices, hosts
from brax.training.runner import consistency
from brax.training.runner.program import Program

WORKER = """
import json, sys
from brax.training.distributed import hosts

tests, port, process, folder, settings = sys.argv[1:]
sys.path.insert(0, tests)
hosts.HEARTBEAT_TIMEOUT_SECONDS = 10
hosts.join(f"127.0.0.1:{port}", 2, int(process))
from agent_toys import SMALL, Point
from brax.training.agents.ppo import train as ppo

_, _, metrics = ppo.train(
    Point(),
    **{**SMALL, **json.loads(settings)},
    save_checkpoint_path=folder,
    progress_fn=lambda steps, metrics: print(steps, flush=True),
)
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def start(port, process, folder, **settings):
    where = os.path.dirname(__file__)
    return run(WORKER, where, port, str(process), str(folder), json.dumps(settings))


def run(program, *args):
    return subprocess.Popen(
        [sys.executable, "-c", program, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "1"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_lost_process_ends_the_other_and_leaves_a_checkpoint(tmp_path, victim):
    port = free_port()
    settings: dict[str, Any] = {
        "num_timesteps": 10**9,
        "run_evals": False,
        "save_interval_steps": STEP,
    }
    reports: dict[str, Any] = {"log_training_metrics": True, "training_metrics_steps": STEP}
    both = [start(port, i, tmp_path, **settings, **reports) for i in range(2)]
    # Before this report three saves are begun, each after the one before it is on disk.
    while (line := both[0].stdout.readline()) != f"{4 * STEP}\n":
        assert line, both[0].stderr.read()[-2000:]
    os.kill(both[victim].pid, signal.SIGKILL)
    both[victim].communicate()
    _, err = both[1 - victim].communicate(timeout=120)
    assert both[1 - victim].returncode != 0
    assert f"process {1 - victim} of 2 lost another one" in err, err[-3000:]
    assert "The newest checkpoint is whole" in err
    found = checkpoint.load(tmp_path)
    assert found.steps >= 2 * STEP
    more: dict[str, Any] = {**SMALL, "num_timesteps": found.steps + STEP, "run_evals": False}
    _, params, _ = ppo.train(Point(), **more, restore_checkpoint_path=tmp_path)
    assert int(params.normalizer.count) == found.steps + STEP


ORDEAL = """
import sys, time
from brax.training.checkpoints import manifest
from brax.training.distributed import hosts

tests, port, process, folder = sys.argv[1:]
sys.path.insert(0, tests)
process = int(process)
hosts.HEARTBEAT_TIMEOUT_SECONDS = 5
hosts.join(f"127.0.0.1:{port}", 2, process)
from agent_toys import SMALL, STEP, Point
from brax.training.agents.ppo import train as ppo

class Paid(Point):
    def step(self, state, action):
        state = super().step(state, action)
        return state.replace(reward=(1 + process) * state.reward)

def attempt(environment=Point(), **settings):
    try:
        given = {**SMALL, "num_timesteps": 2 * STEP, "run_evals": False, **settings}
        ppo.train(environment, **given)
        print("trained", flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)

def draw(steps, metrics):
    if process == 0:
        raise ValueError("cannot draw")

def write_slowly(*args):
    time.sleep(12)
    write(*args)

reached = []

attempt(Paid())
attempt(learning_rate=(1e-3, 2e-3)[process])
attempt(save_checkpoint_path=folder if process == 0 else None)
attempt(save_checkpoint_path=folder + "/held")
attempt(progress_fn=draw)
attempt(
    save_checkpoint_path=folder, num_evals=3, run_evals=True,
    progress_fn=lambda steps, metrics: reached.append(steps),
)
print(reached, flush=True)
attempt(restore_checkpoint_path=f"{folder}/{(2 - process) * STEP:012d}", num_timesteps=4 * STEP)
write, manifest.write = manifest.write, write_slowly
attempt(save_checkpoint_path=folder + "/slow")
"""


@pytest.fixture(scope="module")
def ordeal(tmp_path_factory):
    """Return the folder of two processes' checkpoints, and the lines that each printed."""
    folder, told = tmp_path_factory.mktemp("ordeal"), []
    port, where = free_port(), os.path.dirname(__file__)
    with contextlib.closing(Writer(folder / "held")):
        both = [run(ORDEAL, where, port, str(i), str(folder)) for i in range(2)]
        ended = [process.communicate(timeout=300) for process in both]
    for process, (out, err) in zip(both, ended, strict=True):
        assert process.returncode == 0, err[-3000:]
        told.append([line for line in out.splitlines() if not line.startswith("[Gloo]")])
    return folder, told


@pytest.mark.slow
def test_what_goes_wrong_in_one_process_is_told_by_all(ordeal):
    """And one whose last save takes longer than the others' patience at the end is waited for."""
    folder, told = ordeal
    for i, lines in enumerate(told):
        pay, rate, saves, held, draws, trained, _, start, slow = lines
        different = "ConfigError the processes have different settings: "
        assert pay.startswith(different + f"environment or a function. Process {i} has ")
        assert rate.startswith(different + "learning_rate. Process ")
        assert f"learning_rate={(1e-3, 2e-3)[i]}" in rate
        assert saves.startswith(different + "save_checkpoint_path is given. Process ")
        assert saves.endswith(f"save_checkpoint_path is given={i == 0}.")
        assert start.startswith(different + "restore_checkpoint_path. Process ")
        assert f"'training step {2 - i}, parameters of checksum " in start
        assert "another process is writing checkpoints to" in held
        assert held.startswith("CheckpointError process 0 of 2 failed: ") == (i == 1)
        another = "TrainingError process 0 of 2 failed: ValueError: cannot draw"
        assert draws == ("ValueError cannot draw", another)[i]
        assert (trained, slow) == ("trained", "trained")
    assert checkpoint.load(folder / "slow").steps == 2 * STEP


@pytest.mark.slow
def test_two_processes_train_what_one_trains(ordeal, tmp_path):
    """And the checkpoint of two, of which each had half of the environments, goes on with one."""
    folder, told = ordeal
    assert [lines[6] for lines in told] == [str([0, STEP, 2 * STEP])] * 2
    settings: dict[str, Any] = {**SMALL, "num_timesteps": 2 * STEP, "num_evals": 3}
    ppo.train(Point(), **settings, save_checkpoint_path=tmp_path)
    two, one = checkpoint.load(folder), checkpoint.load(tmp_path)
    assert two.arrays.keys() == one.arrays.keys()
    for name, value in one.arrays.items():
        np.testing.assert_allclose(two.arrays[name], value, rtol=1e-5, atol=1e-5, err_msg=name)
    assert two.record["score"] == pytest.approx(one.record["score"], rel=1e-3)
    more: dict[str, Any] = {**SMALL, "num_timesteps": 4 * STEP, "num_evals": 2}
    _, params, _ = ppo.train(Point(), **more, restore_checkpoint_path=folder)
    assert int(params.normalizer.count) == 4 * STEP


COMMAND = """
import sys
from brax.cli import main

sys.argv[0] = "brax"
sys.exit(main())
"""


def commands(*settings):
    """Run the same command in two processes."""
    others = ["--coordinator", f"127.0.0.1:{free_port()}", "--num-processes", "2", "--process-id"]
    return [run(COMMAND, *settings, *others, str(i)) for i in range(2)]


@pytest.mark.slow
@pytest.mark.long
def test_two_commands_train_with_physics(tmp_path):
    """Whose training step names objects of the process by their addresses."""
    pytest.importorskip("brax.envs")
    small: dict[str, Any] = {
        "num_envs": 16,
        "batch_size": 16,
        "num_minibatches": 2,
        "run_evals": "false",
    }
    changes = [part for name, value in small.items() for part in ("--set", f"{name}={value}")]
    where = ["--name", "here", "--runs", str(tmp_path), "--steps", "1"]
    for process in commands("train", "inverted_pendulum", *where, *changes):
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err[-2000:]
    assert checkpoint.load(tmp_path / "here").steps > 0


@pytest.mark.slow
def test_a_run_that_is_there_already_is_told_by_all(tmp_path):
    """All processes report a run that exists, also if only the first one sees it."""
    (tmp_path / "there").mkdir()
    both = commands("train", "fast", "--name", "there", "--runs", str(tmp_path))
    for i, process in enumerate(both):
        _, err = process.communicate(timeout=120)
        assert process.returncode == 2, err[-2000:]
        assert ("process 0 of 2 failed: run '" in err) == (i == 1)
        assert f"run '{tmp_path / 'there'}' exists already" in err


@pytest.fixture
def one_of_two(monkeypatch):
    """Make this process the first of two; the other one says what the first says."""
    monkeypatch.setattr(hosts, "is_single_process", lambda: False)
    monkeypatch.setattr(hosts, "_all_gather", lambda values: np.stack([values, values]))


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a list has 3 elements, 4 are needed"),
        jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory in an operation of gloo"),
        jax.errors.JaxRuntimeError("INTERNAL: cuSolver failed"),
        ConfigError("coordination service"),
    ],
)
def test_an_error_is_no_loss_of_a_process(one_of_two, error):
    with pytest.raises(type(error)) as told, hosts.explain_lost_process():
        raise error
    assert told.value is error


@pytest.mark.parametrize("kind", [ValueError, jax.errors.JaxRuntimeError])
def test_a_loss_of_a_process_is_told(one_of_two, kind):
    error = kind("UNKNOWN: Gloo all-reduce failed: Connection closed by peer [10.0.0.2]:4711")
    with (
        pytest.raises(TrainingError, match="0 of 1 lost another one"),
        hosts.explain_lost_process(),
    ):
        raise error


def test_what_gathers_a_state_is_compiled_once(one_of_two, caplog):
    state = jax.device_put({"w": np.ones(3)}, devices.replicated(devices.env_mesh(1, 1)))
    with jax.log_compiles():
        hosts.gather(state)
        assert "Compiling" in caplog.text
        caplog.clear()
        hosts.gather(state)
        assert "Compiling" not in caplog.text


def test_processes_with_other_packages_or_settings(one_of_two, monkeypatch):
    record, runtime = {"agent": "ppo", "config": {"num_envs": 4}}, Runtime()
    consistency.check_settings(record, runtime)

    def first_differs(sums):
        others = sums.copy()
        others[0] ^= 1
        return np.stack([sums, others])

    monkeypatch.setattr(hosts, "_all_gather", first_differs)
    told = "have different settings: versions. Process 0 has versions={'brax-agents': "
    with pytest.raises(ConfigError, match=told):
        consistency.check_settings(record, runtime)


def test_a_checksum_knows_no_addresses_and_all_numbers():
    def checksum(text):
        lowered = SimpleNamespace(as_text=lambda: text)
        parts: Any = SimpleNamespace(_lower_init=lambda: lowered, _lower_advance=lambda: lowered)
        return Program.checksum(parts)

    call = 'custom_call @CustomSPMDPartitioning(%1) {{api_version = 1, backend_config = "{}"}} {}'
    here, there = 140365320805712, 140476860108624
    assert checksum(call.format(here, 1.0)) == checksum(call.format(there, 1.0))
    assert checksum(call.format(here, 1.0)) != checksum(call.format(here, 2.0))


def test_processes_with_different_numbers_of_devices(monkeypatch):
    found = [SimpleNamespace(process_index=i, platform="cpu") for i in (0, 1, 1)]
    monkeypatch.setattr(jax, "devices", lambda: found)
    with pytest.raises(ConfigError, match=r"numbers of devices: 1, 2\. .* at most 1"):
        devices.env_mesh(4)
    with pytest.raises(ConfigError, match="asked for 2 devices, have 1"):
        devices.env_mesh(4, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("127.0.0.1:1", None, 0), "--coordinator, --num-processes and --process-id go together"),
        (("here", 2, 0), "--coordinator here: expected HOST:PORT"),
        (("127.0.0.1:1", 2, 2), r"--process-id 2 must be in \[0, 1\], below --num-processes 2"),
    ],
)
def test_what_cannot_be_joined(given, message):
    with pytest.raises(ConfigError, match=message):
        hosts.join(*given)


def test_alone_nothing_is_asked_of_others():
    assert hosts.broadcast_from_first(3) == 3 and hosts.max_over_processes(2) == 2 and hosts.first()
    hosts.join(None, None, None)
