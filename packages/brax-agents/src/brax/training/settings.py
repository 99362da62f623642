"""Settings of agents: from keyword arguments to checked dataclasses."""

import dataclasses
import math
import os
import sys
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from brax.errors import ConfigError, closest

T = TypeVar("T")

_KINDS: dict[Any, str] = {
    bool: "true or false",
    str: "text",
    Path: "a path",
    Callable: "a function",
    Mapping: "a dictionary",
    types.NoneType: "None",
}
"""Kinds of values that are told from others, as users are told of them."""


def number(
    default: Any, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False
) -> Any:
    """Declares a numeric field with its allowed range; `open_low` excludes the lower bound."""
    return dataclasses.field(default=default, metadata={"range": (low, high, open_low)})


def choice(default: str | None, *others: str) -> Any:
    """Declares a field that is one of some words; the default may be None."""
    return dataclasses.field(default=default, metadata={"words": (default, *others)})


def build(cls: type[T], settings: Mapping[str, Any]) -> T:
    """Makes a settings dataclass and checks every value against its declaration.

    Args:
        cls: dataclass whose numeric fields are declared with `number`.
        settings: its fields; they must exist. Numbers of NumPy become Python's, paths text.

    Raises:
        ConfigError: if a number is outside its range, not finite, or anything of the wrong type.
    """
    config = cls(**{name: _plain(value) for name, value in settings.items()})
    problems = [_problem(field, getattr(config, field.name)) for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    if any(problems):
        raise ConfigError(" ".join(filter(None, problems)))
    return config


def split(
    settings: Mapping[str, Any], *classes: type, unsupported: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Deals keyword arguments out to the dataclasses that have a field of that name.

    Args:
        settings: keyword arguments as a user gave them.
        classes: dataclasses.
        unsupported: names that are known but do nothing here, with the value that is harmless.

    Returns:
        One dictionary for each class.

    Raises:
        ConfigError: if a name is unknown or not supported.
    """
    names = [{field.name for field in dataclasses.fields(cls)} for cls in classes]
    known = set().union(*names)
    for name, value in settings.items():
        if name in known or (name in unsupported and value == unsupported[name]):
            continue
        if name in unsupported:
            raise ConfigError(
                f"{name}={value!r} is not supported yet; leave it out or use {unsupported[name]!r}."
            )
        raise ConfigError(
            f"unknown setting '{name}'.{closest(name, known)} Settings: {', '.join(sorted(known))}."
        )
    return [{k: v for k, v in settings.items() if k in part} for part in names]


def _plain(value: Any) -> Any:
    """A setting as JSON can say it, where that is the same."""
    if isinstance(value, np.generic):
        return value.item()
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """The classes of what a field may hold, such as `Callable` and `NoneType`."""
    union = typing.get_origin(annotation) in (types.UnionType, typing.Union)
    parts = typing.get_args(annotation) if union else (annotation,)
    return tuple(typing.get_origin(part) or part for part in parts)


def _problem(field: dataclasses.Field[Any], value: Any) -> str:
    """What is wrong with a field's value, or an empty string."""
    words = field.metadata.get("words", (value,))
    if value not in words:
        named = [str(word) for word in words]
        return (
            f"{field.name}={value!r} must be one of {', '.join(named)}.{closest(str(value), named)}"
        )
    kinds = _kinds(field.type)
    if _KINDS.keys() >= set(kinds) and not isinstance(value, kinds):
        return f"{field.name}={value!r} must be {' or '.join(_KINDS[kind] for kind in kinds)}."
    if "range" not in field.metadata or (value is None and field.default is None):
        return ""
    low, high, open_low = field.metadata["range"]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{field.name}={value!r} must be a number."
    whole = int in kinds
    if whole and not isinstance(value, int):
        return f"{field.name}={value!r} must be a whole number."
    inside = low < value <= high if open_low else low <= value <= high
    largest = 2**63 - 1 if whole else sys.float_info.max
    if inside and abs(value) <= largest:
        return ""
    if inside or (low, high) == (-math.inf, math.inf):
        return f"{field.name}={value!r} must be a finite number of 64 bits."
    if high == math.inf:
        return f"{field.name}={value!r} must be {'above' if open_low else 'at least'} {low}."
    return f"{field.name}={value!r} must be in {'(' if open_low else '['}{low}, {high}]."
