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
"""The types of values that are told apart, by the names that error messages use."""


def number(
    default: object, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False
) -> Any:
    """Declare a numeric field with its allowed range; `open_low` excludes the lower bound."""
    return dataclasses.field(default=default, metadata={"range": (low, high, open_low)})


def choice(default: str | None, *others: str) -> Any:
    """Declare a field that is one of some words; the default may be None."""
    return dataclasses.field(default=default, metadata={"words": (default, *others)})


def build(cls: type[T], settings: Mapping[str, object]) -> T:
    """Make a settings dataclass and check every value against its declaration.

    Args:
        cls: dataclass whose numeric fields are declared with `number`.
        settings: values by field name; the fields must exist. NumPy's numbers become Python's, and
            paths become text.

    Raises:
        ConfigError: if a number is out of its range or not finite, or a value has a wrong type.
    """
    config = cls(**{name: _plain(value) for name, value in settings.items()})
    # All problems are reported at once.
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    problems = [_problem(field, getattr(config, field.name)) for field in fields]
    if any(problems):
        raise ConfigError(" ".join(filter(None, problems)))
    return config


def split(
    settings: Mapping[str, object], *classes: type, unsupported: Mapping[str, tuple[object, ...]]
) -> list[dict[str, Any]]:
    """Distribute keyword arguments to the dataclasses that have a field of that name.

    Args:
        settings: keyword arguments, as the user gave them.
        classes: dataclasses.
        unsupported: names that are known but do nothing here, with the values that are accepted.

    Returns:
        One dictionary for each class.

    Raises:
        ConfigError: if a name is unknown or not supported.
    """
    names = [{field.name for field in dataclasses.fields(cls)} for cls in classes]
    known = set().union(*names)
    for name, value in settings.items():
        if name in known or (name in unsupported and value in unsupported[name]):
            continue
        if name in unsupported:
            raise ConfigError(
                f"{name}={value!r} is not supported yet; leave it out or use "
                f"{' or '.join(map(repr, unsupported[name]))}."
            )
        raise ConfigError(
            f"unknown setting '{name}'.{closest(name, known)} Settings: {', '.join(sorted(known))}."
        )
    return [{k: v for k, v in settings.items() if k in part} for part in names]


def check_divides(name: str, number: int, product: str, whole: int) -> None:
    """Reject a number that does not divide another.

    Args:
        name: name of the number's setting.
        number: the number.
        product: how the other number comes about, such as `a=2 * b=3`.
        whole: the other number.

    Raises:
        ConfigError: naming the numbers and the nearest that fits.
    """
    if whole % number == 0:
        return
    legal = [n for n in range(1, whole + 1) if whole % n == 0]
    nearest = min(legal, key=lambda n: abs(n - number))
    raise ConfigError(
        f"{product} = {whole} must be a multiple of {name}={number}; the nearest that fits is "
        f"{name}={nearest}."
    )


def _plain(value: object) -> Any:
    """Return a setting as JSON can represent it, if that is the same value."""
    if isinstance(value, np.generic):
        return value.item()
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _kinds(annotation: object) -> tuple[Any, ...]:
    """Return the classes of the values that a field may hold, such as `Callable` and `NoneType`."""
    union = typing.get_origin(annotation) in (types.UnionType, typing.Union)
    parts = typing.get_args(annotation) if union else (annotation,)
    return tuple(typing.get_origin(part) or part for part in parts)


def _problem(field: dataclasses.Field[Any], value: object) -> str:
    """Return a description of what is wrong with a field's value, or an empty string."""
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
    # In Python True is the number 1, but a user who writes it means something else.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{field.name}={value!r} must be a number."
    whole = int in kinds
    if whole and not isinstance(value, int):
        return f"{field.name}={value!r} must be a whole number."
    inside = low < value <= high if open_low else low <= value <= high
    # JAX and JSON readers hold 64 bits; a larger number would fail far from here.
    largest = 2**63 - 1 if whole else sys.float_info.max
    if inside and abs(value) <= largest:
        return ""
    if inside or (low, high) == (-math.inf, math.inf):
        return f"{field.name}={value!r} must be a finite number of 64 bits."
    if high == math.inf:
        return f"{field.name}={value!r} must be {'above' if open_low else 'at least'} {low}."
    return f"{field.name}={value!r} must be in {'(' if open_low else '['}{low}, {high}]."
