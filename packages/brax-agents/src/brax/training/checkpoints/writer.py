"""Writes checkpoints in a background thread; `Writer._commit` makes them atomic.

`checkpoint.py` describes their content.
"""

import fcntl
import json
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.errors import CheckpointError
from brax.training.checkpoints import checkpoint, manifest

_TEMPORARY_PREFIX = ".tmp-"
"""Prefix of folders that are being written or removed."""


class Writer:
    """A writer of checkpoints to one folder, on which it holds a lock; it saves one at a time.

    If the file system has no locks, there is a warning in place of one.
    """

    def __init__(self, folder: Path | str, keep: int = 3) -> None:
        """Make the folder, take its lock, and remove the remains of interrupted saves.

        Args:
            folder: the folder.
            keep: number of newest checkpoints to keep, besides the best one.

        Raises:
            CheckpointError: if it cannot be written to, or another process writes there.
        """
        self.folder = Path(folder).absolute()
        self._keep = keep
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=_TEMPORARY_PREFIX, dir=self.folder):
                pass  # the lock may be left from when the folder could be written to
            self._lock = open(self.folder / ".lock", "a+")  # noqa: SIM115  held until close()
        except OSError as error:
            raise CheckpointError(
                f"cannot write checkpoints to '{folder}': {error.strerror}. Choose another folder."
            ) from error
        try:
            # The system releases the lock when the process ends, however it ends.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise CheckpointError(
                f"another process is writing checkpoints to '{folder}'. Stop it, or choose "
                "another folder."
            ) from error
        except OSError as error:
            # Such as Lustre without the option `flock`, and some network file systems.
            warnings.warn(
                f"the file system of '{folder}' cannot lock files ({error.strerror}): make sure "
                "that no other process writes checkpoints there.",
                stacklevel=2,
            )
        # With the lock held nobody else writes: what has a temporary name was interrupted.
        for leftover in self.folder.glob(_TEMPORARY_PREFIX + "*"):
            shutil.rmtree(leftover)
        # One thread, so that checkpoints are written in order.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None

    def start(self, steps: int, overwrite: bool) -> None:
        """Prepare the folder for a run that starts after a number of environment steps.

        Args:
            steps: environment steps behind the first state.
            overwrite: remove checkpoints of later steps, the latest first.

        Raises:
            CheckpointError: if there are any and they must not or cannot be removed.
        """
        later = [s for s in checkpoint.available(self.folder) if s > steps]
        if later and not overwrite:
            raise CheckpointError(
                f"'{self.folder}' holds checkpoints of steps {', '.join(map(str, later))}, but "
                f"this run starts at {steps}. Choose another folder, continue from them with "
                "restore_checkpoint_path, or remove them with overwrite_checkpoints=True."
            )
        try:
            # The latest first: if this is interrupted, what is left is a run that ended earlier.
            for each in reversed(later):
                self._remove(each)
        except OSError as error:
            raise CheckpointError(
                f"cannot remove checkpoints from '{self.folder}': {error.strerror}."
            ) from error

    def close(self) -> None:
        """Wait for the save in progress, warn if it fails, and release the lock."""
        try:
            self.finish()
        except CheckpointError as error:
            warnings.warn(str(error), stacklevel=2)
        self._thread.shutdown()
        self._lock.close()

    def save(self, steps: int, tree: object, record: Mapping[str, object]) -> Path:
        """Save a tree of arrays; return when it is on disk.

        Args:
            steps: environment steps behind it: its name.
            tree: tree of arrays and keys.
            record: further information that JSON can represent; `score`, if present, determines
                the best checkpoint.

        Raises:
            CheckpointError: if it cannot be written, or the one before it could not.
        """
        self.begin(steps, tree, record)
        self.finish()
        return self._path(steps)

    def begin(self, steps: int, tree: object, record: Mapping[str, object]) -> None:
        """Copy a tree of arrays to the host and return; a thread writes it.

        The arrays may be donated or changed at once. Arguments as `save`.

        Raises:
            CheckpointError: if the save before it, which this waits for, has failed.
        """
        # At most one copy of a training state waits on the host.
        self.finish()
        leaves = jax.tree_util.tree_leaves_with_path(tree)
        arrays = {checkpoint.leaf_name("", path): _to_host(leaf) for path, leaf in leaves}
        self._pending = self._thread.submit(self._commit, steps, arrays, dict(record))

    def check(self) -> None:
        """Raise the error of the last save if it has failed; do not wait for it.

        Raises:
            CheckpointError: if so, once.
        """
        if self._pending is not None and self._pending.done():
            self.finish()

    def finish(self) -> None:
        """Wait until the save in progress, if any, is on disk.

        Raises:
            CheckpointError: if it could not be written, once.
        """
        # Forgotten before its result is read, so that an error is raised once.
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _path(self, steps: int) -> Path:
        """Return the folder of a checkpoint."""
        return self.folder / f"{steps:012d}"

    def _commit(
        self, steps: int, arrays: Mapping[str, np.ndarray], record: Mapping[str, object]
    ) -> None:
        """Write a checkpoint under a temporary name, then rename it: it appears whole or not."""
        target = self._path(steps)
        temporary = self.folder / f"{_TEMPORARY_PREFIX}{target.name}"
        replaced: Path | None = None
        try:
            # Everything is on the disk, manifest included, before the checkpoint gets its name.
            _write(temporary, arrays, {**record, "steps": steps})
            # A folder cannot be renamed over one that is not empty, so an earlier checkpoint of
            # this step is set aside. Only a crash between the two renames loses both.
            replaced = self._set_aside(steps) if target.exists() else None
            # The atomic step: POSIX renames a folder within a file system as one operation.
            temporary.rename(target)
            # The new name is an entry of this folder.
            manifest.sync(self.folder)
        except Exception as error:  # of every kind: orbax passes on those of its stores
            if replaced and not target.exists():
                replaced.rename(target)
            shutil.rmtree(temporary, ignore_errors=True)  # a full disk needs its room
            cause = " ".join(str(error).split())
            there = "The ones before it are whole." if checkpoint.available(self.folder) else ""
            raise CheckpointError(
                f"cannot write checkpoint '{target}': {cause}. {there}".rstrip()
            ) from error
        try:
            # Only after the new checkpoint is on disk, so that there is always a whole one.
            if replaced:
                shutil.rmtree(replaced)
            self._remove_old()
        except OSError as error:
            warnings.warn(
                f"old checkpoints stay in '{self.folder}': {error.strerror}.", stacklevel=2
            )

    def _remove_old(self) -> None:
        """Remove all checkpoints but the newest and the best."""
        steps = checkpoint.available(self.folder)
        scores = {s: checkpoint.read_record(self._path(s)).get("score") for s in steps}
        known = {s: score for s, score in scores.items() if score is not None}
        best = [max(known, key=lambda s: known[s])] if known else []
        for old in set(steps) - {*steps[-self._keep :], *best}:
            self._remove(old)

    def _remove(self, steps: int) -> None:
        """Remove a checkpoint; rename it first, so that its remains are not taken for one."""
        shutil.rmtree(self._set_aside(steps))

    def _set_aside(self, steps: int) -> Path:
        """Rename a checkpoint to a temporary name, and return its new path."""
        target = self._path(steps)
        return target.rename(self.folder / f"{_TEMPORARY_PREFIX}old-{target.name}")


def _write(folder: Path, arrays: Mapping[str, np.ndarray], record: Mapping[str, object]) -> None:
    """Write the files of a checkpoint and wait for the disk."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    # Orbax rejects empty arrays and reads dots in names as nesting: they get plain numbers.
    kept = {f"{i:05d}": x for i, x in enumerate(arrays.values()) if x.size}
    if not kept:
        raise ValueError("there is nothing in it.")
    with checkpoint.local_checkpointer(folder) as (checkpointer, place):
        checkpointer.save(place, kept)
    described = [[name, str(x.dtype), x.shape] for name, x in arrays.items()]
    text = json.dumps({**record, "leaves": described}, indent=1)
    (folder / checkpoint.RECORD_FILE).write_text(text, "utf-8")
    manifest.write(folder, {"format": checkpoint.FORMAT_VERSION})


def _to_host(leaf: Any) -> np.ndarray:
    """Return a copy of a leaf on the host; keys are copied as the numbers they are made of."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    # A copy even on a CPU, where `asarray` would share memory that is about to be donated.
    return np.array(leaf)
