"""Validation of an environment's parameters from keyword arguments."""

import dataclasses
import math
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from brax.errors import ConfigError, closest

P = TypeVar("P")

NOT_NEGATIVE = ("_scale", "_radius", "_distance", "_spread", "_angle")
"""Ends of the names of parameters that cannot be negative."""


def make_parameters(kind: type[P], given: dict[str, Any], environment: str) -> P:
    """Return a dataclass of parameters after checking names and values.

    Raises:
        ConfigError: if a name is not a field of `kind`, a value has another type than its default
            or is NaN, a size is negative, or the ends of a range are swapped.
    """
    fields = {f.name: f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name, value in given.items():
        if name not in fields:
            allowed = ["backend", "n_frames", "debug", "hide_velocities", *fields]
            raise ConfigError(
                f"environment '{environment}' has no parameter '{name}'. "
                f"Parameters: {', '.join(allowed)}.{closest(name, allowed)}"
            )
        if requirement := _requirement(name, value, fields[name].default):
            raise ConfigError(
                f"environment '{environment}': {name}={value!r} must be {requirement}."
            )
    return kind(**given)


def _requirement(name: str, value: Any, default: object) -> str:
    """Return what a value should be, or an empty text if it is valid."""
    if isinstance(default, bool):
        return "" if isinstance(value, bool | np.bool_) else "True or False"
    if isinstance(default, tuple):
        pair = isinstance(value, tuple | list) and len(value) == 2 and all(map(_number, value))
        return "" if pair and value[0] <= value[1] else "two numbers, the lower first"
    if getattr(value, "shape", None) == () and not isinstance(value, np.generic):
        return ""  # a JAX scalar, which may be traced and then has no value yet
    if not _number(value):
        return "a number"
    return "a number, at least 0" if name.endswith(NOT_NEGATIVE) and value < 0 else ""


def _number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)
