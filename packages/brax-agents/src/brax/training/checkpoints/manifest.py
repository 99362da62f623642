"""Manifests: the files that a folder must hold, with their sizes and checksums."""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MANIFEST_FILE = "manifest.json"
"""File name of a manifest."""


def write(folder: Path, extra: Mapping[str, object]) -> None:
    """Write the manifest of all files in a folder, and wait until everything is on the disk.

    Args:
        folder: the folder, complete but for the manifest.
        extra: other entries of the manifest.
    """
    files = {
        path.relative_to(folder).as_posix(): {"size": path.stat().st_size, "sha256": _digest(path)}
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    body = {**extra, "files": files}
    # The manifest has a checksum of itself too, since it is what everything else is checked by.
    (folder / MANIFEST_FILE).write_text(
        json.dumps({**body, "sha256": _checksum(body)}, indent=1), "utf-8"
    )
    # Folders are synced as well: a file's name is part of its folder.
    for path in [*folder.rglob("*"), folder]:
        sync(path)


def check(folder: Path) -> tuple[dict[str, Any], str]:
    """Compare a folder with its manifest.

    Returns:
        The manifest, and a description of the first problem, or an empty string.
    """
    try:
        text = (folder / MANIFEST_FILE).read_bytes()
        found = json.loads(text)
        stated = found.pop("sha256")
        files = found["files"].items()
    except FileNotFoundError:
        return {}, f"file {MANIFEST_FILE} is missing"
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return {}, f"file {MANIFEST_FILE} cannot be read"
    if stated != _checksum(found):
        return found, f"file {MANIFEST_FILE} was changed"
    # A generator: after the first problem no further file is read.
    problems = (_problem(folder / name, entry) for name, entry in files)
    return found, next(filter(None, problems), "")


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _problem(path: Path, entry: Mapping[str, object]) -> str:
    """Return a description of what is wrong with a file, or an empty string."""
    if not path.is_file():
        return f"file {path.name} is missing"
    # The size first: it is cheap, and shows a file that was cut off.
    if path.stat().st_size != entry["size"]:
        return f"file {path.name} is {path.stat().st_size} B, expected {entry['size']}"
    if _digest(path) != entry["sha256"]:
        return f"file {path.name} was changed (its checksum differs)"
    return ""


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum(body: Mapping[str, object]) -> str:
    """Return the SHA-256 of a manifest's content, whatever the order of its entries."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
