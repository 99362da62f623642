"""A process that imports brax remains the user's: its state, and the programs compiled in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent


def run(*command, cached=False):
    """Run a program of this folder; its programs are compiled anew, or may come from the cache."""
    environ = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_COMPILATION_CACHE": str(int(cached)),
    }
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, env=environ
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_imports_change_nothing_for_other_code():
    found = json.loads(run(HERE / "process_state.py").splitlines()[-1])
    assert found["problems"] == []
    assert found["modules"] > 250  # all four distributions were walked


@pytest.mark.slow
@pytest.mark.parametrize(
    "programs",
    [pytest.param((), id="programs", marks=pytest.mark.long), pytest.param(("mjx",), id="mjx")],
)
def test_programs_of_others_compile_and_compute_as_without_brax(tmp_path, programs):
    """On a CPU some options of XLA end the process while it compiles such programs.

    No process with brax puts them into the cache, from which those without it may come.
    """
    if programs:
        pytest.importorskip("mujoco.mjx")
    alone, beside = tmp_path / "alone.npz", tmp_path / "beside.npz"
    run(HERE / "zoo.py", alone, *programs, cached=True)
    run(HERE / "zoo.py", beside, "brax", *programs)
    with np.load(alone) as want, np.load(beside) as got:
        assert want.files == got.files
        for name in want.files:
            np.testing.assert_array_equal(got[name], want[name], err_msg=name)
