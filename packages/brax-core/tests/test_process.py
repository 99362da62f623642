"""A process that imports brax remains the user's: its state, and the programs compiled in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent


def run(*command):
    """Run a program of this folder; programs are compiled anew, not taken from a cache."""
    environ = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "0"}
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
@pytest.mark.parametrize("programs", [(), ("mjx",)], ids=["programs", "mjx"])
def test_programs_of_others_compile_and_compute_as_without_brax(tmp_path, programs):
    """On a CPU some options of XLA end the process while it compiles such programs."""
    if programs:
        pytest.importorskip("mujoco.mjx")
    alone, beside = tmp_path / "alone.npz", tmp_path / "beside.npz"
    run(HERE / "zoo.py", alone, *programs)
    run(HERE / "zoo.py", beside, "brax", *programs)
    with np.load(alone) as want, np.load(beside) as got:
        assert want.files == got.files
        for name in want.files:
            np.testing.assert_array_equal(got[name], want[name], err_msg=name)
