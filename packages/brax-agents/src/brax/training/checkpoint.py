"""Checkpoints: whole training states on disk, each complete and verified or not there at all.

A checkpoint is a folder `<steps:012d>/` with `arrays/` (orbax), `record.json` (what they are) and
`manifest.json` (size and SHA-256 of every file). It is written beside under another name and
renamed once, so that whatever happens while it is written, earlier ones stay whole.
"""

import fcntl
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from brax.errors import CheckpointError
from brax.training import manifest, migrations

T = TypeVar("T")

FORMAT = 2
"""Version of the layout; a reader refuses newer ones, and migrates older ones."""

_TEMPORARY = ".tmp-"
_RECORD = "record.json"
_STEPS = re.compile(r"\d{12,}")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read and verified."""

    path: Path
    """Its folder."""
    steps: int
    """Environment steps behind it."""
    arrays: Mapping[str, np.ndarray]
    """Leaves of the saved tree by their path in it, such as `params/policy/...`."""
    record: Mapping[str, Any]
    """What was recorded with it."""


def available(folder: Path) -> list[int]:
    """Returns the steps of the complete checkpoints in a folder, ascending."""
    found = folder.iterdir() if folder.is_dir() else []
    return sorted(int(path.name) for path in found if _STEPS.fullmatch(path.name))


class Writer:
    """Saves checkpoints to one folder, which it holds a lock on."""

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
        for leftover in self.folder.glob(_TEMPORARY + "*"):
            shutil.rmtree(leftover)

    def close(self) -> None:
        """Gives the lock back."""
        self._lock.close()

    def save(self, steps: int, tree: Any, record: Mapping[str, Any]) -> Path:
        """Saves a tree of arrays; returns when it is on disk.

        Args:
            steps: environment steps behind it: its name.
            tree: tree of arrays and keys.
            record: what else to know about it, as JSON can say it; `score`, if there, decides
                which checkpoint is the best.

        Raises:
            CheckpointError: if it cannot be written.
        """
        target = self.folder / f"{steps:012d}"
        temporary = self.folder / f"{_TEMPORARY}{target.name}"
        try:
            _write(temporary, tree, {**record, "steps": steps})
            if target.exists():
                self._remove(steps)
            temporary.rename(target)
            manifest.sync(self.folder)
        except (OSError, ValueError, RuntimeError) as error:  # orbax passes on those of its stores
            cause = " ".join(str(error).split())
            raise CheckpointError(
                f"cannot write checkpoint '{target}': {cause}. The ones before it are whole."
            ) from error
        self._retain()
        return target

    def _retain(self) -> None:
        """Removes all but the newest checkpoints and the best."""
        steps = available(self.folder)
        scores = {s: _record(self.folder / f"{s:012d}").get("score") for s in steps}
        known = {s: score for s, score in scores.items() if score is not None}
        best = [max(known, key=lambda s: known[s])] if known else []
        for old in set(steps) - {*steps[-self._keep :], *best}:
            self._remove(old)

    def _remove(self, steps: int) -> None:
        """Removes a checkpoint; renamed first, so that no half of it can be taken for it."""
        target = self.folder / f"{steps:012d}"
        doomed = self.folder / f"{_TEMPORARY}old-{target.name}"
        target.rename(doomed)
        shutil.rmtree(doomed)


def load(path: Path | str) -> Checkpoint:
    """Reads and verifies a checkpoint.

    Args:
        path: its folder, or a folder of checkpoints, whose newest is taken.

    Raises:
        CheckpointError: if there is none, or it is damaged: names the file, and the newest
            checkpoint before it that is whole.
    """
    folder = _find(Path(path))
    written = _verify(folder)
    record = migrations.upgraded(_record(folder), written, folder)
    return Checkpoint(folder, record["steps"], _read(folder, record["leaves"]), record)


def restore(checkpoint: Checkpoint, like: T, part: str = "") -> T:
    """Puts a checkpoint's arrays into a tree.

    Args:
        checkpoint: what `load` returned.
        like: tree of the same structure, of arrays or of their shapes; says where they go.
        part: path of the part of the saved tree that is wanted, such as `params`.

    Returns:
        The tree with the saved values.

    Raises:
        CheckpointError: if a leaf is missing, or has another shape or type.
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    wanted = {_join(part, path): leaf for path, leaf in leaves}
    saved = {n for n in checkpoint.arrays if not part or n == part or n.startswith(part + "/")}
    unlike = sorted(set(wanted) ^ saved)
    if unlike:
        where = "is not in it" if unlike[0] in wanted else "is only in it"
        raise CheckpointError(
            f"checkpoint '{checkpoint.path}' is of another kind: {unlike[0]} {where}. "
            "Restore it with the environment and the networks that it was saved with."
        )
    values = [_fit(checkpoint, name, leaf) for name, leaf in wanted.items()]
    return jax.tree.unflatten(structure, values)


def _fit(checkpoint: Checkpoint, name: str, like: Any) -> Any:
    """A saved leaf as the tree wants it."""
    value = checkpoint.arrays[name]
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.asarray(value))
    if value.shape != like.shape or value.dtype != like.dtype:
        raise CheckpointError(
            f"checkpoint '{checkpoint.path}': {name} was saved as {value.dtype}{value.shape}; "
            f"{like.dtype}{like.shape} is needed. Did the observation, the networks or the number "
            "of environments change?"
        )
    return value


def _join(part: str, path: Any) -> str:
    """Name of a leaf: its path in the tree, below `part`."""
    inner = jax.tree_util.keystr(path, simple=True, separator="/")
    return "/".join(filter(None, (part, inner)))


def _checkpointer() -> Any:
    """Orbax for this process alone, whatever others train with it."""
    import orbax.checkpoint as ocp

    me = jax.process_index()
    alone = ocp.options.MultiprocessingOptions(
        primary_host=me, active_processes={me}, barrier_sync_key_prefix=f"process{me}"
    )
    handler = ocp.PyTreeCheckpointHandler(multiprocessing_options=alone)
    return ocp.Checkpointer(handler, multiprocessing_options=alone)


def _write(folder: Path, tree: Any, record: Mapping[str, Any]) -> None:
    """Writes a checkpoint's files and waits for the disk."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    arrays = {_join("", path): _host(leaf) for path, leaf in leaves}
    # Orbax refuses empty arrays and reads dots in names as nesting: they get plain numbers.
    kept = {f"{i:05d}": x for i, x in enumerate(arrays.values()) if x.size}
    if not kept:
        raise ValueError("there is nothing in it.")
    with _checkpointer() as checkpointer:
        checkpointer.save(folder / "arrays", kept)
    described = [[name, str(x.dtype), x.shape] for name, x in arrays.items()]
    text = json.dumps({**record, "leaves": described}, indent=1)
    (folder / _RECORD).write_text(text, "utf-8")
    manifest.write(folder, {"format": FORMAT})


def _read(folder: Path, leaves: list[Any]) -> dict[str, np.ndarray]:
    """Reads the arrays by name."""
    with _checkpointer() as checkpointer:
        kept = checkpointer.restore(folder / "arrays")
    arrays = {}
    for i, (name, dtype, shape) in enumerate(leaves):
        value = kept.get(f"{i:05d}", np.zeros(shape))
        arrays[name] = np.asarray(value).astype(dtype).reshape(shape)
    return arrays


def _host(leaf: Any) -> np.ndarray:
    """A leaf as an array on the host; keys as the numbers they are made of."""
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def _find(path: Path) -> Path:
    """The checkpoint that a path means."""
    path = path.absolute()
    if not path.is_dir():
        raise CheckpointError(f"there is no checkpoint '{path}': no such folder")
    if (path / manifest.NAME).exists() or (path / _RECORD).exists() or _STEPS.fullmatch(path.name):
        if not any(path.iterdir()):
            raise CheckpointError(f"'{path}' is empty: not a checkpoint")
        return path
    below = path / "checkpoints"
    folder = below if below.is_dir() else path
    if steps := available(folder):
        return folder / f"{steps[-1]:012d}"
    raise CheckpointError(f"there is no checkpoint in '{folder}': nothing was saved there yet")


def _verify(folder: Path) -> int:
    """The format of a checkpoint; refuses one that is damaged or was written by a newer version."""
    found, problem = manifest.check(folder)
    if problem:
        here = int(folder.name) if _STEPS.fullmatch(folder.name) else 0
        earlier = [s for s in available(folder.parent) if s < here]
        good = [s for s in earlier if not manifest.check(folder.parent / f"{s:012d}")[1]]
        last = (
            f"The last good step is {good[-1]}: restore '{folder.parent / f'{good[-1]:012d}'}'."
            if good
            else "There is no good checkpoint before it."
        )
        step = f" (step {int(folder.name)})" if _STEPS.fullmatch(folder.name) else ""
        raise CheckpointError(f"checkpoint '{folder}'{step} is damaged: {problem}. {last}")
    if found["format"] > FORMAT:
        raise CheckpointError(
            f"checkpoint '{folder}' has format {found['format']}, this version reads up to "
            f"{FORMAT}: upgrade brax-agents."
        )
    written: int = found["format"]
    return written


def _record(folder: Path) -> dict[str, Any]:
    """What was recorded with a checkpoint; empty where it cannot be read."""
    try:
        record: dict[str, Any] = json.loads((folder / _RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return record
