"""Consistency check: processes that train one model must agree, or all of them refuse to train.

Processes that differ would wait for each other for ever, or learn from different environments
without notice.
"""

import zlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from brax.training.checkpoints import run_directory
from brax.training.checkpoints.resumption import StartingPoint
from brax.training.config import Runtime
from brax.training.distributed import hosts
from brax.training.runner.program import Program


def check_settings(record: Mapping[str, Any], runtime: Runtime) -> None:
    """Compare settings, versions of packages, and whether checkpoints are saved.

    Args:
        record: the record of a checkpoint.
        runtime: the settings that are not numbers.

    Raises:
        ConfigError: on every process, naming what differs.
    """
    if hosts.is_single_process():
        return
    # One level deep, so that an error names the setting and not `config`.
    settings = {**record, **record["config"], "config": None}
    settings["save_checkpoint_path is given"] = runtime.save_checkpoint_path is not None
    # First the names, since the second call compares values in the order of the names.
    hosts.check_consistent(
        {"versions": run_directory.package_versions(), "names of settings": list(settings)}
    )
    hosts.check_consistent(settings)


def check_start(program: Program, runtime: Runtime, saved: StartingPoint | None) -> None:
    """Compare the program that will run, and the state that it starts from.

    Args:
        program: the agent's program, not yet compiled.
        runtime: the settings that are not numbers.
        saved: the saved state to continue from, if any.

    Raises:
        ConfigError: on every process, naming what differs.
    """
    if hosts.is_single_process():
        return
    with hosts.together():
        # Environments and functions have no value to compare; the program that they make has.
        computed = {"environment or a function": f"checksum of training {program.checksum():08x}"}
        if saved is not None:
            params = _checksum(saved.state.params)
            found = f"training step {saved.step}, parameters of checksum {params:08x}"
            computed["restore_checkpoint_path"] = found
        if runtime.restore_params is not None:
            found = f"parameters of checksum {_checksum(runtime.first_params):08x}"
            computed["restore_params"] = found
    hosts.check_consistent({"restore_checkpoint_path": None, "restore_params": None, **computed})


def _checksum(tree: object) -> int:
    """Return a checksum of all bits of a tree on the host."""
    found = 0
    for leaf in jax.tree.leaves(tree):
        found = zlib.crc32(np.asarray(leaf).tobytes(), found)
    return found
