"""A whole `System` as JSON, exact to the last bit. MuJoCo is not needed.

The text follows the fields of `System`. An array is written as type, shape and numbers. A joint
type, a collider and other registered objects are written as names, so those of a plugin can be read
where the plugin is installed.
"""

import dataclasses
import json
import math
import os
import types
import typing
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax import plugins
from brax.base import System
from brax.colliders import CollisionGroup, GeometryType
from brax.colliders.dispatch import DERIVED, is_derived
from brax.errors import BraxError, ModelError, closest
from brax.io import _arguments
from brax.io._json_check import inconsistent, model_kinds

SYSTEM_FORMAT_VERSION = 1
"""Version of the layout; a reader rejects newer ones."""

_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_DTYPES = ("bool", *_INTEGERS, "float16", "float32", "float64")
_ALLOWED = {"b": (bool,), "i": (int,), "u": (int,), "f": (float, int)}
"""The types of values of an array, by the kind of its dtype."""
_INFINITE = {"inf": math.inf, "-inf": -math.inf}


def dumps(sys: System) -> str:
    """Return a system as JSON.

    Args:
        sys: the system of one environment.

    Raises:
        ModelError: if a number is NaN, or a type is not registered.
    """
    _arguments.system(sys, ModelError)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(sys)):
        raise ModelError("sys has no numbers within a compiled function: write it outside")
    if np.ndim(sys.opt.timestep) > 0:
        raise ModelError(
            f"sys.opt.timestep has shape {np.shape(sys.opt.timestep)}: give the system of one "
            "environment"
        )
    fields = ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in _encode(sys, "system").items())
    return f'{{"brax": {SYSTEM_FORMAT_VERSION}, "system": {{\n{fields}\n}}}}\n'


def save(path: str | os.PathLike[str], sys: System) -> None:
    """Write a system to a file.

    Raises:
        ModelError: as `dumps`, or if the file cannot be written.
    """
    target = _arguments.path(path, error=ModelError)
    _arguments.write(target, dumps(sys), ModelError)


def loads(text: str | bytes, name: str = "model.json") -> System:
    """Return the system that a JSON text describes.

    Args:
        text: what `dumps` returned.
        name: the name of the text in messages.

    Raises:
        ModelError: listing everything that is wrong.
    """
    _arguments.text(text, f"{name}: a system's text", ModelError)
    try:
        document = json.loads(
            # NaN and Infinity are not JSON; as texts they are reported with their place.
            text.removeprefix("\ufeff") if isinstance(text, str) else text,
            parse_constant=str,
        )
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{name}: not JSON: {error}") from None
    version = document.get("brax") if isinstance(document, dict) else None
    if type(version) is not int or "system" not in document:
        raise ModelError(
            f'{name}: not a system: expected {{"brax": {SYSTEM_FORMAT_VERSION}, "system": ...}}'
        )
    if version > SYSTEM_FORMAT_VERSION:
        raise ModelError(
            f"{name}: has format {version}, this version reads up to {SYSTEM_FORMAT_VERSION}: "
            "upgrade brax-io"
        )
    problems: list[str] = []
    system: System = _Reader(problems).read(document["system"], System, "system")
    if not problems:
        problems += inconsistent(system)
    if problems:
        raise ModelError.of([f"{name}: {problem}" for problem in problems])
    return system


def load(path: str | os.PathLike[str]) -> System:
    """Read a file that `save` wrote.

    Raises:
        ModelError: if there is no such file, or listing everything that is wrong with it.
    """
    source = _arguments.path(path, error=ModelError)
    return loads(_arguments.read(source, ModelError), source.name)


READER = SimpleNamespace(suffixes=(".json",), load=load)
"""The reader, as the plugin registry uses it."""


def _encode(value: object, place: str) -> Any:
    """Return a part of a system as JSON values."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, jax.Array | np.ndarray):
        return _numbers(np.asarray(value), place)
    if isinstance(value, tuple):
        return [_encode(part, f"{place}[{i}]") for i, part in enumerate(value)]
    if dataclasses.is_dataclass(value):
        names = _saved(type(value))
        return {name: _encode(getattr(value, name), f"{place}.{name}") for name in names}
    # Objects are written by name: their code is not data, and the same name gives the same object.
    for kind, interface in model_kinds().items():
        if isinstance(value, interface) and (name := plugins.name_of(kind, value)):
            return {kind: name}
    raise ModelError(
        f"{place}: {value!r} cannot be written: it is of no registered type. Register its plugin"
    )


def _saved(cls: Any) -> list[str]:
    """Return the names of the fields that are written: MuJoCo's model of a file has no JSON."""
    return [field.name for field in dataclasses.fields(cls) if field.name != "file_model"]


def _numbers(array: np.ndarray, place: str) -> dict[str, Any]:
    if np.isnan(array).any():
        raise ModelError(f"{place}: contains NaN")
    return {
        "dtype": array.dtype.name,
        "shape": array.shape,
        "values": [_number(x) for x in array.ravel()],
    }


def _number(x: Any) -> Any:
    """Return the shortest decimal that reads back as the same number."""
    if not np.issubdtype(x.dtype, np.floating):
        return x.item()
    if np.isinf(x):
        return str(x)
    # NumPy prints the shortest decimal for the type; float(x) of a float32 would have 17 digits.
    short = float(str(x))
    return short if x.dtype.type(short) == x else float(x)


class _Reader:
    """Reads values as the fields of a system require, and collects what does not fit."""

    def __init__(self, problems: list[str]) -> None:
        self._problems = problems

    def read(self, value: object, wanted: object, place: str) -> Any:
        """Return the value as `wanted`; return None and note the problem if it does not fit."""
        if typing.get_origin(wanted) is types.UnionType:
            (wanted,) = (part for part in typing.get_args(wanted) if part is not types.NoneType)
            return None if value is None else self.read(value, wanted, place)
        if wanted is jax.Array:
            return self._array(value, place)
        if typing.get_origin(wanted) is tuple:
            return self._tuple(value, typing.get_args(wanted), place)
        if dataclasses.is_dataclass(wanted):
            return self._dataclass(value, wanted, place)
        if wanted is Any or wanted not in (bool, int, str):
            return self._object(value, place)
        if type(value) is wanted:
            return value
        return self._reject(f"{place}: expected {wanted.__name__}, got {value!r:.60}")

    def _reject(self, problem: str) -> None:
        self._problems.append(problem)

    def _array(self, value: object, place: str) -> Any:
        if not isinstance(value, dict) or set(value) != {"dtype", "shape", "values"}:
            return self._reject(f"{place}: expected an array with dtype, shape and values")
        values, dtype = value["values"], value["dtype"]
        # Checked before there is an array, because one of long texts would fill the memory.
        if dtype not in _DTYPES:
            return self._reject(
                f"{place}: contains something else than numbers: dtype {dtype!r:.60}; "
                f"allowed are {', '.join(_DTYPES)}"
            )
        if not isinstance(values, list):
            return self._reject(f"{place}: values must be a list of numbers, got {values!r:.60}")
        # NumPy would read texts as numbers, and cut fractions off.
        kind = np.dtype(dtype).kind
        numbers = [_INFINITE.get(x, x) if kind == "f" and type(x) is str else x for x in values]
        if odd := [x for x in numbers if type(x) not in _ALLOWED[kind]]:
            return self._reject(f"{place}: not an array of numbers: {odd[0]!r:.60} is no {dtype}")
        try:
            with np.errstate(over="ignore"):
                array = jnp.asarray(np.array(numbers, dtype).reshape(value["shape"]))
        except (TypeError, ValueError, OverflowError) as error:
            return self._reject(f"{place}: not an array of numbers: {error}")
        # Without `jax_enable_x64`, an array of float64 becomes one of float32.
        if np.isinf(array).sum() > sum(isinstance(x, str) for x in values):
            return self._reject(f"{place}: contains numbers that are too large for {array.dtype}")
        return array

    def _tuple(self, value: object, kinds: tuple[object, ...], place: str) -> Any:
        if not isinstance(value, list):
            return self._reject(f"{place}: expected a list, got {value!r:.60}")
        if kinds[-1] is Ellipsis:
            kinds = kinds[:1] * len(value)
        if len(kinds) != len(value):
            return self._reject(f"{place}: expected {len(kinds)} entries, got {len(value)}")
        pairs = zip(value, kinds, strict=True)
        return tuple(self.read(x, kind, f"{place}[{i}]") for i, (x, kind) in enumerate(pairs))

    def _dataclass(self, value: object, cls: Any, place: str) -> Any:
        if not isinstance(value, dict):
            return self._reject(f"{place}: expected an object, got {value!r:.60}")
        hints = typing.get_type_hints(cls)
        names = _saved(cls)
        for name in value.keys() - set(names):
            self._reject(f"{place}: has no field '{name}'.{closest(name, names)}")
        for name in names:
            if name not in value:
                self._reject(f"{place}: field '{name}' is missing")
        known = [name for name in names if name in value]
        parts = {name: self.read(value[name], hints[name], f"{place}.{name}") for name in known}
        return cls(**parts) if len(known) == len(names) else None

    def _object(self, value: Any, place: str) -> Any:
        """Return a registered object, a collision group, or a derived collider."""
        if isinstance(value, dict) and "geom1" in value:
            return self._dataclass(value, CollisionGroup, place)
        # Colliders that the dispatch derives from geometry types have no registered name.
        for cls in DERIVED if isinstance(value, dict) else ():
            if set(value) == {field.name for field in dataclasses.fields(cls)}:
                return self._derived(value, cls, place)
        kinds = model_kinds().keys()
        if not isinstance(value, dict) or len(value) != 1 or not set(value) <= set(kinds):
            return self._reject(
                f"{place}: expected one of {', '.join(kinds)} with a name, got {value!r:.60}"
            )
        ((kind, name),) = value.items()
        if not isinstance(name, str):
            return self._reject(f"{place}: expected the name of a {kind}, got {name!r:.60}")
        try:
            return plugins.get(kind, name)
        except BraxError as error:
            return self._reject(f"{place}: {error}")

    def _derived(self, value: dict[str, Any], cls: Any, place: str) -> Any:
        """Return a collider that is not registered but follows from geometry types."""
        hints = typing.get_type_hints(cls)
        parts = {name: self.read(value[name], hints[name], f"{place}.{name}") for name in value}
        for name, part in parts.items():
            if hints[name] is GeometryType and not isinstance(part, GeometryType | None):
                return self._reject(f"{place}.{name}: expected a geometry type, got {part!r:.60}")
        if None in parts.values():
            return None  # noted
        # The file could combine types for which the dispatch has no such collider.
        if not is_derived(cls(**parts)):
            self._reject(f"{place}: no such collider follows from its geometry types")
        return cls(**parts)
