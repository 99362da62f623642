"""Checks of users' arguments: each failure is one sentence, raised before any work."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from brax.base import System
from brax.errors import BraxError, ConfigError


def kind(value: object) -> str:
    """Return the type of a value for messages, with its module.

    The module tells apart classes of the same name: an environment's state is called State too.
    """
    if value is None:
        return "None"
    cls = value if isinstance(value, type) else type(value)
    name = f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins.")
    return f"the class {name}" if cls is value else name


def path(value: object, name: str = "path", error: type[BraxError] = ConfigError) -> Path:
    """Return an argument as a path.

    Raises:
        BraxError: of type `error`, if it is not a path.
    """
    if not isinstance(value, str | bytes | os.PathLike):
        raise error(f"{name} must be the path of a file, got {kind(value)}")
    found = os.fsdecode(value)
    # The operating system would raise a ValueError that names no argument.
    if "\0" in found:
        raise error(f"{name} must be the path of a file, got {found[:60]!r} with a NUL character")
    # The most common mistake is to pass a model's text where its path is expected.
    if "\n" in found or found.lstrip().startswith("<"):
        raise error(
            f"{name} must be the path of a file, got a text that begins with {found[:40]!r}; "
            "loads(text) reads one"
        )
    return Path(found)


def text(value: object, name: str, error: type[BraxError]) -> None:
    """Check that an argument is text.

    Raises:
        BraxError: of type `error`, if it is not.
    """
    if not isinstance(value, str | bytes):
        raise error(f"{name} must be str or bytes, got {kind(value)}; a file is read by load(path)")


def system(value: object, error: type[BraxError] = ConfigError) -> None:
    """Check that an argument is a system.

    Raises:
        BraxError: of type `error`, if it is not.
    """
    if not isinstance(value, System):
        advice = "give the system first, such as brax.io.mjcf.load(path) returns it"
        raise error(f"sys must be a System, got {kind(value)}: {advice}")


def mapping(value: object, name: str, of: str) -> None:
    """Check that an argument is a dictionary whose keys are text.

    Raises:
        ConfigError: if it is not.
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ConfigError(f"{name} must be a dictionary from names to {of}, got {kind(value)}")


def number(value: Any, name: str) -> float:
    """Return an argument as a float.

    Raises:
        ConfigError: if it is not one.
    """
    try:
        # float("1") succeeds, but a text here is a mistake.
        if not isinstance(value, str | bytes):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise ConfigError(f"{name} must be a number, got {value!r:.60}")


def numbers(value: object, name: str, dtype: Any = np.float32) -> np.ndarray:
    """Return an argument as an array of numbers.

    Raises:
        ConfigError: if it is not one.
    """
    try:
        return np.asarray(value, dtype)
    except (TypeError, ValueError):
        raise ConfigError(f"{name} must be an array of numbers, got {kind(value)}") from None


def write(target: Path, content: str | bytes, error: type[BraxError] = ConfigError) -> None:
    """Write a file.

    Raises:
        BraxError: of type `error`, if it cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        target.write_bytes(data)
    except OSError as problem:
        raise error(f"cannot write '{target}': {problem.strerror}") from problem


def read(source: Path, error: type[BraxError]) -> bytes:
    """Read a file.

    Raises:
        BraxError: of type `error`, if it cannot be read.
    """
    try:
        return source.read_bytes()
    except OSError as problem:
        raise error(f"cannot read '{source}': {problem.strerror}") from None
