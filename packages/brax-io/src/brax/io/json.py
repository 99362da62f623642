"""A whole `System` as JSON, to the last bit; neither writing nor reading needs MuJoCo.

The text follows the fields of `System`. An array is its type, its shape and its numbers; a joint
type, a collider and the like are the names that they are registered by, so a plugin's come back
where the plugin is installed.
"""

import dataclasses
import functools
import json
import math
import os
import types
import typing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from brax import plugins
from brax.base import System
from brax.builder import ModelBuilder
from brax.colliders import CollisionGroup
from brax.errors import BraxError, ModelError, closest
from brax.plugins.kinds import resolve

FORMAT = 1
"""Version of the layout; a reader refuses newer ones."""

_INFINITE = {"inf": math.inf, "-inf": -math.inf}

_KIND_OF = {
    "joint_types": "joint_type",
    "geom_types": "geometry_type",
    "actuator_types": "actuator",
    "integrator": "integrator",
}
"""What kind of plugin the objects in a field are."""


def dumps(sys: System) -> str:
    """Returns a system as JSON.

    Args:
        sys: the system of one environment.

    Raises:
        ModelError: if a number is not a number, or a type is not registered.
    """
    fields = ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in _encode(sys, "system").items())
    return f'{{"brax": {FORMAT}, "system": {{\n{fields}\n}}}}\n'


def save(path: str | os.PathLike[str], sys: System) -> None:
    """Writes a system to a file; errors as `dumps`, or if the file cannot be written."""
    text = dumps(sys)
    try:
        Path(path).write_text(text, "utf-8")
    except OSError as error:
        raise ModelError(f"cannot write '{path}': {error.strerror}") from error


def loads(text: str | bytes, name: str = "model.json") -> System:
    """Makes a system from its JSON.

    Args:
        text: what `dumps` returned.
        name: what messages call it.

    Raises:
        ModelError: naming everything that is wrong.
    """
    try:
        told = json.loads(text, parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{name}: not JSON: {error}") from None
    version = told.get("brax") if isinstance(told, dict) else None
    if type(version) is not int or "system" not in told:
        raise ModelError(f'{name}: not a system: expected {{"brax": {FORMAT}, "system": ...}}')
    if version > FORMAT:
        raise ModelError(
            f"{name}: has format {version}, this version reads up to {FORMAT}: upgrade brax-io"
        )
    problems: list[str] = []
    system: System = _Reader(problems).read(told["system"], System, "system")
    if not problems:
        problems += _inconsistent(system)
    if problems:
        raise ModelError.of([f"{name}: {problem}" for problem in problems])
    return system


def load(path: str | os.PathLike[str]) -> System:
    """Reads a file that `save` wrote.

    Raises:
        ModelError: if there is no such file, or naming everything that is wrong with it.
    """
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read '{path}': {error.strerror}") from None
    return loads(text, Path(path).name)


READER = SimpleNamespace(suffixes=(".json",), load=load)
"""The reader as the registry knows it."""


def _encode(value: Any, place: str) -> Any:
    """A part of a system as JSON can say it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, jax.Array | np.ndarray):
        return _numbers(np.asarray(value), place)
    if isinstance(value, tuple):
        return [_encode(part, f"{place}[{i}]") for i, part in enumerate(value)]
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {f.name: _encode(getattr(value, f.name), f"{place}.{f.name}") for f in fields}
    for kind, interface in _model_kinds().items():
        if isinstance(value, interface):
            for name in plugins.names(kind):
                if plugins.get(kind, name) is value:
                    return {kind: name}
    raise ModelError(
        f"{place}: {value!r} cannot be written: it is of no registered type. Register its plugin"
    )


@functools.cache
def _model_kinds() -> dict[str, Any]:
    """The kinds of plugin that a system is made of, and the classes of their objects."""
    ours = [kind for kind in plugins.KINDS.values() if kind.interface.startswith("brax.")]
    return {kind.name: resolve(kind.interface) for kind in ours}


def _numbers(array: np.ndarray, place: str) -> dict[str, Any]:
    if np.isnan(array).any():
        raise ModelError(f"{place}: holds what is not a number (NaN)")
    return {
        "dtype": array.dtype.name,
        "shape": array.shape,
        "values": [_number(x) for x in array.ravel()],
    }


def _number(x: Any) -> Any:
    """The shortest decimal that reads back as the same number."""
    if not np.issubdtype(x.dtype, np.floating):
        return x.item()
    if np.isinf(x):
        return str(x)
    short = float(str(x))
    return short if x.dtype.type(short) == x else float(x)


class _Reader:
    """Reads values as the fields of a system want them, and notes what does not fit."""

    def __init__(self, problems: list[str]) -> None:
        self._problems = problems

    def read(self, value: Any, wanted: Any, place: str) -> Any:
        """Returns the value; what is wrong is noted, and returned as None."""
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
        return self._refuse(f"{place}: expected {wanted.__name__}, got {value!r:.60}")

    def _refuse(self, problem: str) -> None:
        self._problems.append(problem)

    def _array(self, value: Any, place: str) -> Any:
        if not isinstance(value, dict) or set(value) != {"dtype", "shape", "values"}:
            return self._refuse(f"{place}: expected an array with dtype, shape and values")
        values = value["values"]
        try:
            numbers = [_INFINITE.get(x, x) if isinstance(x, str) else x for x in values]
            array = np.array(numbers, np.dtype(value["dtype"])).reshape(value["shape"])
        except (TypeError, ValueError, OverflowError) as error:
            return self._refuse(f"{place}: not an array of numbers: {error}")
        if array.dtype.kind not in "biuf" or np.isnan(array).any():
            return self._refuse(f"{place}: holds what is not a number")
        return jnp.asarray(array)

    def _tuple(self, value: Any, kinds: tuple[Any, ...], place: str) -> Any:
        if not isinstance(value, list):
            return self._refuse(f"{place}: expected a list, got {value!r:.60}")
        if kinds[-1] is Ellipsis:
            kinds = kinds[:1] * len(value)
        if len(kinds) != len(value):
            return self._refuse(f"{place}: expected {len(kinds)} entries, got {len(value)}")
        pairs = zip(value, kinds, strict=True)
        return tuple(self.read(x, kind, f"{place}[{i}]") for i, (x, kind) in enumerate(pairs))

    def _dataclass(self, value: Any, cls: Any, place: str) -> Any:
        if not isinstance(value, dict):
            return self._refuse(f"{place}: expected an object, got {value!r:.60}")
        hints = typing.get_type_hints(cls)
        names = [field.name for field in dataclasses.fields(cls)]
        for name in value.keys() - set(names):
            self._refuse(f"{place}: has no field '{name}'.{closest(name, names)}")
        for name in names:
            if name not in value:
                self._refuse(f"{place}: field '{name}' is missing")
        known = [name for name in names if name in value]
        parts = {name: self.read(value[name], hints[name], f"{place}.{name}") for name in known}
        return cls(**parts) if len(known) == len(names) else None

    def _object(self, value: Any, place: str) -> Any:
        """A registered object by kind and name, or a group of pairs that collide."""
        if isinstance(value, dict) and "geom1" in value:
            return self._dataclass(value, CollisionGroup, place)
        kinds = _model_kinds().keys()
        if not isinstance(value, dict) or len(value) != 1 or not set(value) <= set(kinds):
            return self._refuse(
                f"{place}: expected one of {', '.join(kinds)} with a name, got {value!r:.60}"
            )
        ((kind, name),) = value.items()
        if not isinstance(name, str):
            return self._refuse(f"{place}: expected the name of a {kind}, got {name!r:.60}")
        try:
            return plugins.get(kind, name)
        except BraxError as error:
            return self._refuse(f"{place}: {error}")


def _inconsistent(system: System) -> list[str]:
    """What does not fit together in a system, sentence by sentence."""
    return [*_mistyped(system), *_miscounted(system), *_dangling(system)] or _misshapen(system)


def _mistyped(system: System) -> list[str]:
    """Registered objects of another kind than their field wants."""
    return [
        f"system.{name}: expected {kind}, got {found!r:.60}"
        for name, kind in _KIND_OF.items()
        for found in np.atleast_1d(np.array(getattr(system, name), object))
        if not isinstance(found, _model_kinds()[kind])
    ]


def _count(system: System) -> dict[str, int]:
    """How many there are of each element."""
    return {
        k: len(getattr(system, f"{k}_names"))
        for k in ("link", "fixed", "joint", "geom", "actuator")
    }


def _miscounted(system: System) -> list[str]:
    """Lists that are not as long as the names of their elements."""
    lists = [field.name for field in dataclasses.fields(system) if field.metadata.get("static")]
    return [
        f"system.{name}: expected {number} entries, got {len(getattr(system, name))}"
        for kind, number in _count(system).items()
        for name in lists
        if name.startswith(f"{kind}_") and len(getattr(system, name)) != number
    ]


def _dangling(system: System) -> list[str]:
    """References to elements that are not there."""
    count = _count(system)
    groups = [geom for group in system.collisions for geom in (*group.geom1, *group.geom2)]
    references = {
        "joint_link": (system.joint_link, 0, count["link"]),
        "fixed_link": (system.fixed_link, -1, count["link"]),
        "geom_link": (system.geom_link, -1, count["link"]),
        "actuator_joint": (system.actuator_joint, 0, count["joint"]),
        "collisions": (groups, 0, count["geom"]),
    }
    found = [
        f"system.{name}: {index} is not among {low} to {end - 1}"
        for name, (indices, low, end) in references.items()
        for index in indices
        if not low <= index < end
    ]
    found += [
        f"system.link_parents[{i}]: {parent} is not a link before it, nor -1"
        for i, parent in enumerate(system.link_parents)
        if not -1 <= parent < i
    ]
    if sorted(system.joint_link) != list(system.joint_link):
        found.append("system.joint_link: joints must be in the order of their links")
    return found


def _misshapen(system: System) -> list[str]:
    """Arrays of another shape than the elements ask for."""
    rows = _count(system) | {
        "dof": system.qd_size(),
        "init_q": system.q_size(),
        "ref": system.q_size(),
    }
    patterns = dict(_leaves(_pattern()))
    problems = []
    for place, array in _leaves(system):
        wanted = patterns[place].shape
        if (group := place.split(".")[0]) in rows:
            wanted = (rows[group], *wanted[1:])
        if place == "joint.user":  # as wide as the widest joint type asks for
            wanted = (*wanted[:1], *array.shape[1:2])
        if array.shape != wanted:
            problems.append(f"system.{place}: expected shape {wanted}, got {array.shape}")
    return problems


def _leaves(system: System) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_leaves_with_path(system)
    return [(jax.tree_util.keystr(k, simple=True, separator="."), leaf) for k, leaf in leaves]


@functools.cache
def _pattern() -> System:
    """A small system: what arrays there are, and how wide they are."""
    builder = ModelBuilder()
    builder.add_body("link", mass=1.0, inertia=(1, 1, 1))
    builder.add_joint("link")
    return builder.build()
