"""Checkpoints: whole training states on disk, each complete and verified, or absent.

A checkpoint is a folder `<steps:012d>/` with `arrays/` (orbax), `record.json` (their names, shapes
and settings) and `manifest.json` (size and SHA-256 of every file). It is written under another name
and renamed once (`Writer._commit`), so that earlier checkpoints stay whole whatever happens.
"""

import contextlib
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from brax.errors import CheckpointError
from brax.training.checkpoints import manifest, migrations

T = TypeVar("T")

FORMAT_VERSION = 4
"""Version of the layout. Newer ones are rejected, older ones are migrated."""

RECORD_FILE = "record.json"
"""File name of a checkpoint's record."""
_STEP_FOLDER = re.compile(r"\d{12,}")
"""Names of complete checkpoints; those that are being written have others."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read and verified."""

    path: Path
    """Its folder."""
    steps: int
    """Environment steps of training behind it."""
    arrays: Mapping[str, np.ndarray]
    """Leaves of the saved tree, of any shape, by their path in it, such as `params/policy/...`."""
    record: Mapping[str, Any]
    """The record that was saved with it."""


def available(folder: Path) -> list[int]:
    """Return the steps of the complete checkpoints in a folder, in ascending order."""
    found = folder.iterdir() if folder.is_dir() else []
    return sorted(int(path.name) for path in found if _STEP_FOLDER.fullmatch(path.name))


def load(path: Path | str) -> Checkpoint:
    """Read and verify a checkpoint.

    Args:
        path: its folder, or a folder of checkpoints, of which the newest is read.

    Raises:
        CheckpointError: if there is none, or it is damaged: names the file, and the newest
            earlier checkpoint that is whole.
    """
    folder = find_folder(Path(path))
    # First: nothing of a damaged checkpoint is read.
    written = _verify(folder)
    record = migrations.migrate(read_record(folder), written, folder)
    return Checkpoint(folder, record["steps"], _read_arrays(folder, record["leaves"]), record)


def restore(checkpoint: Checkpoint, like: T, part: str = "") -> T:
    """Put a checkpoint's arrays into a tree.

    Args:
        checkpoint: result of `load`.
        like: tree of the same structure, of arrays or of their shapes.
        part: path of the part of the saved tree to restore, such as `params`.

    Returns:
        The tree with the saved values.

    Raises:
        CheckpointError: if a leaf is missing, or has another shape or type.
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    wanted = {leaf_name(part, path): leaf for path, leaf in leaves}
    saved = {n for n in checkpoint.arrays if not part or n == part or n.startswith(part + "/")}
    # Both directions: a leaf that is missing and one that is left over show another kind of tree.
    unlike = sorted(set(wanted) ^ saved)
    if unlike:
        where = "is not in it" if unlike[0] in wanted else "is only in it"
        raise CheckpointError(
            f"checkpoint '{checkpoint.path}' is of another kind: {unlike[0]} {where}. "
            "Restore it with the environment and the networks that it was saved with."
        )
    values = [_restore_leaf(checkpoint, name, leaf) for name, leaf in wanted.items()]
    return jax.tree.unflatten(structure, values)


def _restore_leaf(checkpoint: Checkpoint, name: str, like: Any) -> Any:
    """Return a saved leaf, checked against the leaf of the tree."""
    value = checkpoint.arrays[name]
    # Keys are saved as the numbers that they are made of.
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.asarray(value))
    if value.shape != like.shape or value.dtype != like.dtype:
        raise CheckpointError(
            f"checkpoint '{checkpoint.path}': {name} was saved as {value.dtype}{value.shape}; "
            f"{like.dtype}{like.shape} is needed. Did the observation, the networks or the number "
            "of environments change?"
        )
    return value


def leaf_name(part: str, path: Any) -> str:
    """Return the name of a leaf: its path in the tree, below `part`."""
    inner = jax.tree_util.keystr(path, simple=True, separator="/")
    return "/".join(filter(None, (part, inner)))


@contextlib.contextmanager
def local_checkpointer(folder: Path) -> Iterator[tuple[Any, Path]]:
    """Yield an orbax checkpointer for this process alone, and the path of a checkpoint's arrays.

    The path leads through a link, because orbax takes brackets in a path for a pattern.
    """
    import orbax.checkpoint as ocp

    me = jax.process_index()
    # By default orbax waits for all processes of JAX; only the first one writes, and each may read.
    alone = ocp.options.MultiprocessingOptions(
        primary_host=me, active_processes={me}, barrier_sync_key_prefix=f"process{me}"
    )
    handler = ocp.PyTreeCheckpointHandler(multiprocessing_options=alone)
    with (
        tempfile.TemporaryDirectory() as place,
        ocp.Checkpointer(handler, multiprocessing_options=alone) as checkpointer,
    ):
        link = Path(place) / "checkpoint"
        link.symlink_to(folder)
        yield checkpointer, link / "arrays"


def _read_arrays(folder: Path, leaves: list[Any]) -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint by name."""
    with local_checkpointer(folder) as (checkpointer, place):
        kept = checkpointer.restore(place)
    arrays = {}
    for i, (name, dtype, shape) in enumerate(leaves):
        # Arrays without elements are recorded but not stored; see `writer._write`.
        value = kept.get(f"{i:05d}", np.zeros(shape))
        arrays[name] = np.asarray(value).astype(dtype).reshape(shape)
    return arrays


def find_folder(path: Path) -> Path:
    """Return the folder of the checkpoint that a path means: itself, or the newest in it."""
    path = path.absolute()
    if not path.is_dir():
        raise CheckpointError(f"there is no checkpoint '{path}': no such folder")
    if (
        (path / manifest.MANIFEST_FILE).exists()
        or (path / RECORD_FILE).exists()
        or _STEP_FOLDER.fullmatch(path.name)
    ):
        if not any(path.iterdir()):
            raise CheckpointError(f"'{path}' is empty: not a checkpoint")
        return path
    if (path / "_METADATA").exists():  # the file of Orbax's trees
        raise CheckpointError(
            f"'{path}' is a tree that Orbax's own checkpointer wrote, not a checkpoint of a run. "
            "To start from the parameters in it, pass restore_params=orbax.checkpoint."
            "PyTreeCheckpointer().restore(path, item=params), where params are parameters of the "
            "same networks; to continue a run, save it with save_checkpoint_path"
        )
    # The folder of a run has its checkpoints there.
    below = path / "checkpoints"
    folder = below if below.is_dir() else path
    if steps := available(folder):
        return folder / f"{steps[-1]:012d}"
    raise CheckpointError(f"there is no checkpoint in '{folder}': nothing was saved there yet")


def _verify(folder: Path) -> int:
    """Return the format of a checkpoint.

    Raises:
        CheckpointError: if it is damaged, or was written by a newer version.
    """
    found, problem = manifest.check(folder)
    if problem:
        here = int(folder.name) if _STEP_FOLDER.fullmatch(folder.name) else 0
        earlier = [s for s in available(folder.parent) if s < here]
        # Every earlier checkpoint is read for this, which only happens after damage.
        good = [s for s in earlier if not manifest.check(folder.parent / f"{s:012d}")[1]]
        last = (
            f"The last good step is {good[-1]}: restore '{folder.parent / f'{good[-1]:012d}'}', or "
            f"brax resume RUN --step {good[-1]}."
            if good
            else "There is no good checkpoint before it."
        )
        step = f" (step {int(folder.name)})" if _STEP_FOLDER.fullmatch(folder.name) else ""
        raise CheckpointError(f"checkpoint '{folder}'{step} is damaged: {problem}. {last}")
    if found["format"] > FORMAT_VERSION:
        raise CheckpointError(
            f"checkpoint '{folder}' has format {found['format']}, this version reads up to "
            f"{FORMAT_VERSION}: upgrade brax-agents."
        )
    written: int = found["format"]
    return written


def read_record(folder: Path) -> dict[str, Any]:
    """Return the record of a checkpoint; empty if it cannot be read."""
    try:
        record: dict[str, Any] = json.loads((folder / RECORD_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return record
