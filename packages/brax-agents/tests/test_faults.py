"""Runs that are killed, saved at intervals, on a full disk, or resumed on other devices."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from agent_toys import SMALL, STEP, Point

from brax.errors import CheckpointError
from brax.training.agents.ppo import train as ppo
from brax.training.checkpoints import checkpoint
from brax.training.checkpoints.writer import Writer

QUIET: dict[str, Any] = {**SMALL, "run_evals": False}
SLOW = [pytest.mark.slow]


def child(code, *args, **environ):
    """Start a Python process that can import the toys."""
    return subprocess.Popen(
        [sys.executable, "-c", code, os.path.dirname(__file__), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", **environ},
    )


ENDLESS = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from agent_toys import SMALL, STEP, Point
from brax.training import checkpoint
from brax.training.agents.ppo import train as ppo

folder = sys.argv[2]
more = {"restore_checkpoint_path": folder} if checkpoint.available(Path(folder)) else {}
ppo.train(
    Point(), 10**9, **SMALL, run_evals=False, save_checkpoint_path=folder, save_interval_steps=STEP,
    log_training_metrics=True, training_metrics_steps=STEP,
    progress_fn=lambda steps, metrics: print(steps, flush=True), **more,
)
"""


@pytest.mark.parametrize(
    "kills", [pytest.param(2, marks=SLOW), pytest.param(200, marks=[*SLOW, pytest.mark.long])]
)
def test_killed_again_and_again_it_ends_where_an_undisturbed_run_does(tmp_path, kills):
    """A run killed by SIGKILL at random moments ends like an undisturbed run.

    It saves after every training step, so kills hit training and saving.
    """
    rng = np.random.default_rng(1)
    for _ in range(kills):
        process = child(ENDLESS, tmp_path / "killed")
        # A report comes before the save after its step is begun, which waits for the one before.
        for _ in range(int(rng.integers(3, 6))):
            assert process.stdout.readline(), process.stderr.read()[-2000:]
        try:
            process.wait(rng.uniform(0, 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        checkpoint.load(tmp_path / "killed")
    found = checkpoint.load(tmp_path / "killed")
    assert found.steps >= kills * STEP
    ppo.train(Point(), found.steps, **QUIET, save_checkpoint_path=tmp_path / "whole")
    whole = checkpoint.load(tmp_path / "whole")
    assert whole.steps == found.steps
    for name, value in whole.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], value, err_msg=name)


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """Return the steps of the checkpoints at each report of a run that saves every 320."""
    folder, seen, begin = tmp_path_factory.mktemp("run"), [], Writer.begin

    def begin_and_wait(writer, *args):
        begin(writer, *args)
        writer.finish()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Writer, "begin", begin_and_wait)
        ppo.train(
            Point(),
            7 * STEP,
            **QUIET,
            save_checkpoint_path=folder,
            save_interval_steps=2 * STEP,
            keep_checkpoints=2,
            log_training_metrics=True,
            training_metrics_steps=STEP,
            progress_fn=lambda steps, metrics: seen.append(checkpoint.available(folder)),
        )
    return folder, seen


@pytest.mark.slow
def test_saves_come_in_steps_and_as_many_stay_as_asked(watched):
    folder, seen = watched
    # each report comes before the save after its step
    assert [len(steps) for steps in seen[:7]] == [0, 0, 1, 1, 2, 2, 2]
    assert checkpoint.available(folder) == [6 * STEP, 7 * STEP]


@pytest.mark.slow
def test_saves_come_in_seconds(tmp_path, monkeypatch):
    """A clock that goes on by half a second with every look, and so by half in a training step."""
    from brax.training.runner import loop

    ticks = iter(np.arange(0, 1e6, 0.5))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))
    monkeypatch.setattr(loop, "CHUNK_SECONDS", 0.5)
    settings: dict[str, Any] = {**QUIET, "save_checkpoint_path": tmp_path, "keep_checkpoints": 99}
    ppo.train(Point(), 7 * STEP, **settings, save_interval_seconds=1.0)
    assert checkpoint.available(tmp_path) == [2 * STEP, 4 * STEP, 6 * STEP, 7 * STEP]


@pytest.mark.slow
def test_a_save_that_fails_stops_or_warns(tmp_path, monkeypatch):
    real = Path.rename

    def fail(self, *args):
        raise OSError("disk is full")

    settings: dict[str, Any] = {**QUIET, "num_evals": 2, "save_checkpoint_path": tmp_path}
    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(CheckpointError, match="disk is full"):
        ppo.train(Point(), 2 * STEP, **settings)
    with pytest.warns(UserWarning, match=r"disk is full.* Training continues without it"):
        _, params, _ = ppo.train(Point(), 2 * STEP, **settings, failed_save="warn")
    monkeypatch.setattr(Path, "rename", real)
    assert int(params.normalizer.count) == 2 * STEP and checkpoint.available(tmp_path) == []


ON_DEVICES = """
import json, sys
sys.path.insert(0, sys.argv[1])
import jax
import numpy as np
from agent_toys import SMALL, STEP, Point
from brax.training.agents.ppo import train as ppo

folder, counts = sys.argv[2], map(int, sys.argv[3].split())

def train(total, count, **more):
    settings = {**SMALL, "run_evals": False, "max_devices_per_host": count, **more}
    _, params, _ = ppo.train(Point(), total, **settings)
    return [np.asarray(x).ravel().tolist() for x in jax.tree.leaves(params)]

out = {"saved": train(STEP, 8, save_checkpoint_path=folder)}
for count in counts:
    for total in (STEP, 3 * STEP):
        out[f"{count} {total}"] = train(total, count, restore_checkpoint_path=folder)
print(json.dumps(out))
"""


@pytest.mark.slow
@pytest.mark.parametrize("fewer", [(1,), (4, 2)])
@pytest.mark.long
def test_saved_on_eight_devices_it_goes_on_with_fewer(tmp_path, fewer):
    """Restored values have the same bits; two steps later they agree up to the order of sums."""
    counts = (8, *fewer)
    given = tmp_path / "run", " ".join(map(str, counts))
    process = child(ON_DEVICES, *given, JAX_NUM_CPU_DEVICES="8")
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err[-2000:]
    found = json.loads(out.splitlines()[-1])
    for count in counts:
        assert found[f"{count} {STEP}"] == found["saved"]
        for ours, of_eight in zip(
            found[f"{count} {3 * STEP}"], found[f"8 {3 * STEP}"], strict=True
        ):
            np.testing.assert_allclose(ours, of_eight, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_broken_environment_among_2048_changes_nothing_for_the_others():
    """The same steps with and without it: all other environments have the same bits."""
    from brax.env import wrap

    class Fragile(Point):
        """Breaks where it starts at a negative second coordinate and is asked to."""

        def step(self, state, action):
            state = super().step(state, action)
            x = jax.numpy.where(action[1] > 0, jax.numpy.nan, state.pipeline_state)
            return state.replace(pipeline_state=x, obs=x, reward=state.reward + 0 * x[0])

    env = wrap(Fragile(), episode_length=20)
    step = jax.jit(env.step)
    keys = jax.random.split(jax.random.key(0), 2048)
    actions = np.zeros((2048, 2), np.float32)
    actions[:, 0] = np.linspace(-1, 1, 2048)
    broken = actions.copy()
    broken[77, 1] = 1.0
    one = other = jax.jit(env.reset)(keys)
    for i in range(30):
        one, other = step(one, actions), step(other, broken if i == 5 else actions)
        if i == 5:
            assert float(other.info["nan"].sum()) == 1.0 and float(other.info["nan"][77]) == 1.0
    others = np.arange(2048) != 77
    for mine, theirs in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        if mine.ndim and mine.shape[0] == 2048:
            np.testing.assert_array_equal(_bits(mine)[others], _bits(theirs)[others])
    assert all(np.isfinite(x).all() for x in (other.obs, other.reward))


def _bits(x):
    if jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    return np.asarray(x)
