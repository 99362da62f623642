"""Parameters on disk: arrays and JSON in one file, without pickle.

A file is an uncompressed zip. Its member `params.json` describes the tree, and every array is a
member `PATH.npy` named after its path in the tree, so `numpy.load` opens it too.
"""

import dataclasses
import importlib
import json
import os
import sys
import zipfile
from collections.abc import Callable, Mapping
from typing import IO, Any

import jax
import jax.numpy as jnp
import numpy as np

from brax.errors import CheckpointError
from brax.io import _arguments

PARAMS_FORMAT_VERSION = 1
"""Version of the layout; a reader rejects newer ones."""

_TREE = "params.json"


def save_params(path: str | os.PathLike[str], params: object) -> None:
    """Write a tree of parameters to one file, atomically.

    Args:
        path: the file.
        params: tree of arrays and plain numbers in dictionaries with text as keys, lists, tuples,
            named tuples and dataclasses, as training returns it.

    Raises:
        CheckpointError: if the tree contains anything else, or the file cannot be written.
    """
    target = _arguments.path(path, error=CheckpointError)
    if not target.name:
        raise CheckpointError(f"path must be the path of a file, got '{path!s}'")
    arrays: dict[str, np.ndarray] = {}
    text = json.dumps({"format": PARAMS_FORMAT_VERSION, "tree": _encode(params, "", arrays)})
    # The file appears under its name only when it is complete.
    part = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with zipfile.ZipFile(part, "w") as file:
            file.writestr(_TREE, text)
            for name, array in arrays.items():
                with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise CheckpointError(f"cannot write '{path}': {error.strerror}") from error


def load_params(path: str | os.PathLike[str]) -> Any:
    """Read what `save_params` wrote; the arrays are NumPy's.

    No code in the file is executed. A named tuple or dataclass is restored as its own class if that
    belongs to Brax or to a module that is already imported.

    Raises:
        CheckpointError: if the file has another format, is damaged, or names an unknown class.
    """
    path = _arguments.path(path, error=CheckpointError)
    try:
        with open(path, "rb") as file:
            return _read(path, file)
    except OSError as error:
        raise CheckpointError(f"cannot read '{path}': {error.strerror}") from error


def _read(path: str | os.PathLike[str], file: IO[bytes]) -> Any:
    # The first byte of every pickle since protocol 2.
    if file.read(1) == b"\x80":
        raise CheckpointError(
            f"'{path}' is a pickle, which can run any code when it is read, so it is not read. "
            "If you trust it, convert it where the program that wrote it is installed: "
            "brax.io.model.save_params(new_path, pickle.load(open(old_path, 'rb')))"
        )
    try:
        with zipfile.ZipFile(file) as archive:
            _check_sizes(archive, os.fstat(file.fileno()).st_size)
            description = json.loads(archive.read(_TREE))
            if description["format"] > PARAMS_FORMAT_VERSION:
                raise CheckpointError(
                    f"'{path}' has format {description['format']}, this version reads up to "
                    f"{PARAMS_FORMAT_VERSION}: upgrade brax-io"
                )
            unread = set(archive.namelist())
            return _decode(description["tree"], lambda entry: _array(archive, entry, unread))
    except CheckpointError as error:
        raise CheckpointError(f"'{path}': {error}") from None
    except OSError:
        raise
    except Exception as error:  # a damaged part can make its reader raise anything
        raise CheckpointError(
            f"'{path}' is damaged, or was not written by brax.io.model.save_params: {error}"
        ) from error


def _encode(value: Any, place: str, arrays: dict[str, np.ndarray]) -> Any:
    """Return a part of a tree as JSON values; its arrays go to `arrays`, by path."""

    def inner(parts: Mapping[str, object]) -> dict[str, Any]:
        return {k: _encode(v, f"{place}/{k}".lstrip("/"), arrays) for k, v in parts.items()}

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return _put(value, place or "params", arrays)
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"dict": inner(value)}
    if fields := _fields(type(value)):
        parts = {name: getattr(value, name) for name in fields}
        return {"class": _name(type(value), place), "fields": inner(parts)}
    if type(value) in (list, tuple):
        parts = {str(i): part for i, part in enumerate(value)}
        return {type(value).__name__: list(inner(parts).values())}
    raise CheckpointError(
        f"cannot save '{place}', a {type(value).__name__}: allowed are arrays, numbers and text in "
        "dictionaries with text as keys, lists, tuples, named tuples and dataclasses"
    )


def _name(cls: type, place: str) -> str:
    """Return the name by which a class is found again."""
    if getattr(sys.modules[cls.__module__], cls.__name__, None) is not cls:
        raise CheckpointError(
            f"cannot save '{place}', a {cls.__name__}: its class is not at the top of its module"
        )
    return f"{cls.__module__}:{cls.__name__}"


def _put(value: Any, place: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Store an array under a unique name, and return its description."""
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        raise CheckpointError(
            f"cannot save '{place}', a random key: save jax.random.key_data of it"
        )
    dtype = value.dtype
    if dtype.hasobject or dtype.kind in "SUT" or issubclass(dtype.type, np.void):
        raise CheckpointError(
            f"cannot save '{place}', an array of {dtype}: allowed are arrays of numbers; save text "
            "as a list, and an array with fields as a dictionary"
        )
    if "\0" in place:
        raise CheckpointError(f"cannot save {place!r}: take the NUL out of the name")
    array = np.asarray(value, dtype.newbyteorder("="), order="C")
    name = place
    while name in arrays:  # a key may hold the separator
        name += "_"
    arrays[name] = array
    return {"array": name, "dtype": array.dtype.name, "shape": array.shape}


def _decode(node: object, array: Callable[[Mapping[str, Any]], np.ndarray]) -> Any:
    """Return a part of a tree from its description."""
    if not isinstance(node, dict):
        return node
    if "array" in node:
        return array(node)
    if "dict" in node:
        return {key: _decode(part, array) for key, part in node["dict"].items()}
    for kind in (list, tuple):
        if kind.__name__ in node:
            return kind(_decode(part, array) for part in node[kind.__name__])
    cls = _class(node["class"])
    parts = {name: _decode(part, array) for name, part in node["fields"].items()}
    if set(parts) != set(_fields(cls)):
        raise CheckpointError(
            f"{node['class']} was saved with {', '.join(parts)}; it has {', '.join(_fields(cls))}. "
            "Read it with the version that wrote it"
        )
    return cls(**parts)


def _class(name: str) -> Any:
    """Return a class of Brax, or of a module that is already imported.

    No other module is imported, because importing runs its code.
    """
    module, _, attribute = name.partition(":")
    if module.startswith("brax."):
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise CheckpointError(f"it contains a {attribute} of {module}: {error}") from error
    cls = getattr(sys.modules.get(module), attribute, None)
    if not isinstance(cls, type) or not _fields(cls):
        raise CheckpointError(
            f"it contains a {attribute} of {module}, which is not imported: import {module} first"
        )
    return cls


def _fields(cls: type) -> tuple[str, ...]:
    """Return the fields of a named tuple or dataclass; none for other classes."""
    if issubclass(cls, tuple):
        return getattr(cls, "_fields", ())
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return ()


def _check_sizes(archive: zipfile.ZipFile, total: int) -> None:
    """Reject a file whose contents would be larger in memory than on disk."""
    # A small compressed file (a zip bomb) could otherwise fill the memory.
    members = archive.infolist()
    if any(m.compress_type != zipfile.ZIP_STORED for m in members):
        raise CheckpointError("it is compressed, but parameters are stored uncompressed")
    if sum(m.file_size for m in members) > total:
        raise CheckpointError("its parts claim to be larger than the file")


def _array(archive: zipfile.ZipFile, entry: Mapping[str, Any], unread: set[str]) -> np.ndarray:
    """Read an array after checking its header against the tree, and remove it from `unread`.

    An array that the tree names twice is rejected, so that no more is read than the file contains.
    """
    dtype, shape, name = jnp.dtype(entry["dtype"]), tuple(entry["shape"]), f"{entry['array']}.npy"
    if name not in unread:
        raise CheckpointError(f"the array {entry['array']} is not in it, or is named twice")
    unread.remove(name)
    with archive.open(name) as member:
        # The header is compared with the tree before the data is read, so a false size allocates
        # nothing.
        np.lib.format.read_magic(member)
        stored, order, kind = np.lib.format.read_array_header_1_0(member)
        same = kind.itemsize == dtype.itemsize and kind.isnative
        if stored != shape or order or not same:
            raise CheckpointError(f"{entry['array']} is {kind}{stored}, expected {dtype}{shape}")
        return np.frombuffer(member.read(), dtype).reshape(shape)
