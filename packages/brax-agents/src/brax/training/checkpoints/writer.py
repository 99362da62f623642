"""Writes checkpoints, in a thread beside the training; `checkpoint` says what they are."""

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


class Writer:
    """Saves checkpoints to one folder, which it holds a lock on; one at a time, in a thread."""

    def __init__(self, folder: Path | str, keep: int = 3) -> None:
        """Makes the folder, takes its lock and removes what interrupted saves left.

        Args:
            folder: the folder.
            keep: newest checkpoints that are kept, besides the best one.

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
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise CheckpointError(
                f"another process is writing checkpoints to '{folder}'. Stop it, or choose "
                "another folder."
            ) from error
        for leftover in self.folder.glob(_TEMPORARY_PREFIX + "*"):
            shutil.rmtree(leftover)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None

    def start(self, steps: int, overwrite: bool) -> None:
        """Takes the environment steps that are behind the first state.

        Args:
            steps: those.
            overwrite: remove checkpoints of later ones, the latest first.

        Raises:
            CheckpointError: if there are any and they may not be removed, or cannot.
        """
        later = [s for s in checkpoint.available(self.folder) if s > steps]
        if later and not overwrite:
            raise CheckpointError(
                f"'{self.folder}' holds checkpoints of steps {', '.join(map(str, later))}, but "
                f"this run starts at {steps}. Choose another folder, go on from them with "
                "restore_checkpoint_path, or have them removed with overwrite_checkpoints=True."
            )
        try:
            for each in reversed(later):
                self._remove(each)
        except OSError as error:
            raise CheckpointError(
                f"cannot remove checkpoints from '{self.folder}': {error.strerror}."
            ) from error

    def close(self) -> None:
        """Waits for the save that is under way, warns if it fails, and gives the lock back."""
        try:
            self.finish()
        except CheckpointError as error:
            warnings.warn(str(error), stacklevel=2)
        self._thread.shutdown()
        self._lock.close()

    def save(self, steps: int, tree: Any, record: Mapping[str, Any]) -> Path:
        """Saves a tree of arrays; returns when it is on disk.

        Args:
            steps: environment steps behind it: its name.
            tree: tree of arrays and keys.
            record: what else to know about it, as JSON can say it; `score`, if there, decides
                which checkpoint is the best.

        Raises:
            CheckpointError: if it cannot be written, or what was begun before could not.
        """
        self.begin(steps, tree, record)
        self.finish()
        return self._path(steps)

    def begin(self, steps: int, tree: Any, record: Mapping[str, Any]) -> None:
        """Copies a tree of arrays to the host and returns; it is written meanwhile.

        The arrays may be donated or changed at once. Arguments as `save`.

        Raises:
            CheckpointError: if what was begun before, and is waited for, could not be written.
        """
        self.finish()
        leaves = jax.tree_util.tree_leaves_with_path(tree)
        arrays = {checkpoint.leaf_name("", path): _to_host(leaf) for path, leaf in leaves}
        self._pending = self._thread.submit(self._commit, steps, arrays, dict(record))

    def check(self) -> None:
        """Tells whether the save that was begun last has failed; does not wait for it.

        Raises:
            CheckpointError: if so, once.
        """
        if self._pending is not None and self._pending.done():
            self.finish()

    def finish(self) -> None:
        """Waits until the save that is under way, if any, is on disk.

        Raises:
            CheckpointError: if it could not be written, once.
        """
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _path(self, steps: int) -> Path:
        return self.folder / f"{steps:012d}"

    def _commit(
        self, steps: int, arrays: Mapping[str, np.ndarray], record: Mapping[str, Any]
    ) -> None:
        """Writes a checkpoint and gives it its name."""
        target = self._path(steps)
        temporary = self.folder / f"{_TEMPORARY_PREFIX}{target.name}"
        try:
            _write(temporary, arrays, {**record, "steps": steps})
            if target.exists():
                self._remove(steps)
            temporary.rename(target)
            manifest.sync(self.folder)
        except Exception as error:  # of every kind: orbax passes on those of its stores
            shutil.rmtree(temporary, ignore_errors=True)  # a full disk needs its room
            cause = " ".join(str(error).split())
            there = "The ones before it are whole." if checkpoint.available(self.folder) else ""
            raise CheckpointError(
                f"cannot write checkpoint '{target}': {cause}. {there}".rstrip()
            ) from error
        try:
            self._retain()
        except OSError as error:
            warnings.warn(
                f"old checkpoints stay in '{self.folder}': {error.strerror}.", stacklevel=2
            )

    def _retain(self) -> None:
        """Removes all but the newest checkpoints and the best."""
        steps = checkpoint.available(self.folder)
        scores = {s: checkpoint.read_record(self._path(s)).get("score") for s in steps}
        known = {s: score for s, score in scores.items() if score is not None}
        best = [max(known, key=lambda s: known[s])] if known else []
        for old in set(steps) - {*steps[-self._keep :], *best}:
            self._remove(old)

    def _remove(self, steps: int) -> None:
        """Removes a checkpoint; renamed first, so that no half of it can be taken for it."""
        target = self._path(steps)
        doomed = self.folder / f"{_TEMPORARY_PREFIX}old-{target.name}"
        target.rename(doomed)
        shutil.rmtree(doomed)


def _write(folder: Path, arrays: Mapping[str, np.ndarray], record: Mapping[str, Any]) -> None:
    """Writes a checkpoint's files and waits for the disk."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    # Orbax refuses empty arrays and reads dots in names as nesting: they get plain numbers.
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
    """A copy of a leaf on the host; of keys, the numbers they are made of."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.array(leaf)
