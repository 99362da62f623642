"""The text of a model with everything that it includes, and the files that it names."""

import dataclasses
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

from brax.errors import ModelError
from brax.io import _arguments, _xml
from brax.io._nodes import Node, walk

_FORMATS = {"mujoco": "an MJCF <mujoco> document", "robot": "a URDF <robot> document"}
_READERS = {"mujoco": "brax.io.mjcf", "robot": "brax.io.urdf"}

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""Start of a URL, such as `package://`; a single letter is a Windows drive."""

_DRIVE = re.compile(r"[A-Za-z]:")


@dataclasses.dataclass
class ModelSource:
    """The elements of a model's text, with everything that it includes."""

    name: str
    """The file's name, for messages."""
    directory: Path | None
    """Directory that relative paths start from, if any."""
    root: Node
    included: set[str] = dataclasses.field(default_factory=set)
    """The included files, by the names in the text."""
    models: dict[str, "ModelSource"] = dataclasses.field(default_factory=dict)
    """The models that `<attach>` elements of the text may name."""
    files: dict[Path, "ModelSource"] = dataclasses.field(default_factory=dict)
    """All files that are models to attach, also those that such models attach in turn."""
    within: Path | None = None
    """Directory that files must be in: the first model's, which attaches this one; else None."""

    def elements(self) -> list[Node]:
        """Return all elements except those of `<default>`, in the order of the text."""
        return [n for n in walk(self.root) if n.section != "default"]


def read_file(path: str | os.PathLike[str], outside: bool, root: str = "mujoco") -> ModelSource:
    """Read a model's file and everything that it includes; see `read`."""
    path = _arguments.path(path, error=ModelError)
    if os.path.isdir(path):
        raise ModelError(f"{path.absolute()} is a folder: give the model file in it")
    if not _is_file(path):
        raise ModelError(
            f"no such model file: {path.absolute()} (cwd {Path.cwd()})"
            f"{_same_name_in_other_case(path)}"
        )
    chain = (path.resolve(),)
    return read(_read_bytes(path), path.parent, outside, path.name, root, chain=chain)


def read(
    text: str | bytes,
    directory: Path | None,
    outside: bool,
    name: str = "model.xml",
    root: str = "mujoco",
    attaching: "ModelSource | None" = None,
    chain: Sequence[Path] = (),
) -> ModelSource:
    """Read a model's text, everything that it includes, and the models that it attaches.

    Args:
        text: the XML.
        directory: directory that relative paths start from.
        outside: whether files outside the directory may be included.
        name: the file's name in messages.
        root: tag of the root element.
        attaching: the model that attaches this one.
        chain: the files of the models that attach this one, and its own.

    Returns:
        The elements of the text.

    Raises:
        ModelError: if it is not a model's text, or includes a file that is not allowed.
    """
    source = ModelSource(name, directory, document(_xml.decode(text, name), name, root))
    if attaching is not None:
        source.files, source.within = attaching.files, attaching.within or attaching.directory
    if root == "mujoco":
        _include(source, source.root, [name], None, outside)
    for child in source.root.children:
        for node in (child, *walk(child)):
            node.section = child.tag
    if root == "mujoco":
        _read_attached(source, outside, chain)
    return source


def directory_of(asset_path: str | os.PathLike[str] | None) -> Path | None:
    """Return the directory of the files that a text names; `asset_path` may be a file in it."""
    if asset_path is None:
        return None
    path = _arguments.path(asset_path, "asset_path", ModelError)
    return path.parent if _is_file(path) else path


def compiler_settings(compilers: Sequence[Node]) -> dict[str, str]:
    """Return the attributes of the `<compiler>` elements of a text, as MuJoCo merges them.

    Each `assetdir` sets `meshdir` and `texturedir`, but an element's own `meshdir` and `texturedir`
    win. MuJoCo is given `strippath="false"`, so that the paths that are found stay whole.
    """
    settings: dict[str, str] = {}
    for node in compilers:
        if "assetdir" in node.attributes:
            settings |= dict.fromkeys(("meshdir", "texturedir"), node.attributes["assetdir"])
        settings |= node.attributes
        if node.attributes.get("strippath") == "true":
            node.given["strippath"] = "false"
    return settings


def resolve(
    source: ModelSource, node: Node, folder: str, name: str, outside: bool
) -> tuple[Path, str]:
    """Return the path of a file that the text names, and what is wrong with it.

    Args:
        source: the text.
        node: the element that names the file.
        folder: directory of such files, as written in the text.
        name: the file, as written in the text. Backslashes are slashes, as in MuJoCo.
        outside: whether files outside the model's directory may be read.
    """
    where = f"{node.place}: {node}"
    name, folder = name.replace("\\", "/"), folder.replace("\\", "/")
    if scheme := SCHEME.match(name):
        return Path(), (
            f"{where}: file '{name}' is an address with the scheme '{scheme[1]}'; give a path "
            "relative to the model's file"
        )
    for part in (name, folder):
        if os.name != "nt" and _DRIVE.match(part):
            return Path(), (
                f"{where}: '{part}' is a path of a Windows computer, on its drive {part[:2]}; give "
                "a path relative to the model's file"
            )
    if source.directory is None:
        return Path(), f"{where}: file '{name}' needs a directory; pass asset_path, or use load"
    start = source.directory.resolve()

    path = Path(os.path.normpath(start / folder / name))
    # Symbolic links are resolved, so that one inside the directory cannot lead out of it. A model
    # from elsewhere could otherwise read any file of the user.
    allowed = (source.within or source.directory).resolve()
    if not outside and not path.resolve().is_relative_to(allowed):
        return path, (
            f"{where}: file '{name}' leaves the model directory {allowed}; "
            "pass allow_external_assets=True if you trust the model"
        )
    if not _is_file(path):
        return path, f"{where}: no such file: {path}{_same_name_in_other_case(path)}"
    try:
        str(path).encode()
    except UnicodeEncodeError:  # MuJoCo takes only paths in UTF-8
        return path, f"{where}: the path of the file, {str(path)!r}, is not in UTF-8: rename it"
    return path, ""


def _same_name_in_other_case(path: Path) -> str:
    """Return a hint at a file whose name differs only in capitals.

    The two names are the same file on Windows, so such models are common.
    """
    try:
        there = [entry.name for entry in os.scandir(path.parent)]
    except OSError:
        return ""
    same = [name for name in there if name.lower() == path.name.lower()]
    return f". Did you mean '{same[0]}'?" if same else ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # not a valid name of a file
        return False


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from None


def document(text: str, name: str, tag: str) -> Node:
    """Return the root of a whole model's text, after checking its tag."""
    if not text.strip():
        raise ModelError(f"{name}: model is empty: expected {_FORMATS[tag]}")
    roots = _xml.parse(text, name)
    if not roots:
        raise ModelError(_not_xml(text.strip(), name, tag))
    root, *others = roots
    if root.tag != tag:
        reader = _READERS.get(root.tag)
        other = f"; {_FORMATS[root.tag]} is read by {reader}" if reader else ""
        raise ModelError(f"{root.place}: root is <{root.tag}>; supported: <{tag}>{other}")
    if others:
        warnings.warn(
            f"{others[0].place}: {others[0]} comes after the end of <{tag}> and has no effect",
            stacklevel=5,
        )
    return root


def _not_xml(start: str, name: str, tag: str) -> str:
    if start.startswith("<"):
        return f"{name}:1: the model has no elements: expected {_FORMATS[tag]}"
    looks = start.lower().endswith((".xml", ".mjcf", ".urdf")) and "\n" not in start
    hint = " Did you mean load(path)?" if looks else ""
    return f"{name}:1: not XML (starts with {start[:40]!r}).{hint}"


def _include(
    source: ModelSource, root: Node, chain: list[str], folder: Path | None, outside: bool
) -> None:
    """Replace each `<include>` below `root`, whose file is in `folder`, by what it includes."""
    stack = [root]
    while stack:
        node = stack.pop()
        children: list[Node] = []
        mine: list[Node] = []
        for child in node.children:
            child.folder = folder
            if child.tag == "include" and "file" in child.attributes:
                children += _included(source, child, chain, folder, outside)
            else:
                children.append(child)
                mine.append(child)
        node.children = children
        stack += mine


def _included(
    source: ModelSource, node: Node, chain: list[str], folder: Path | None, outside: bool
) -> list[Node]:
    """Return the elements of an included file."""
    name = node.attributes["file"].replace("\\", "/")
    if name in chain:
        raise ModelError(f"{node.place}: include cycle: {' -> '.join([*chain, name])}")
    if name in source.included:
        raise ModelError(f"{node.place}: file '{name}' is already included; include it once")
    if node.children:
        raise ModelError(f"{node.place}: {node} must hold no elements")
    path, problem = resolve_beside_include(source, node, "", name, outside)
    if problem:
        raise ModelError(problem)
    source.included.add(name)
    roots = _xml.parse(_xml.decode(_read_bytes(path), name), name)
    if not roots or not roots[0].children:
        raise ModelError(f"{node.place}: {node}: file '{name}' has no elements to include")
    _include(source, roots[0], [*chain, name], path.parent, outside)
    return roots[0].children


def attached_name(number: int) -> str:
    """Return the name under which MuJoCo is given a file of `ModelSource.files`."""
    return f"attached_{number}.xml"


def _read_attached(source: ModelSource, outside: bool, chain: Sequence[Path]) -> None:
    """Read the models that a model may attach; MuJoCo is given other names for their files."""
    for node in walk(source.root):
        name = node.attributes.get("file", "")
        if node.tag != "model" or node.section != "asset" or not name:
            continue
        path, problem = resolve_beside_include(source, node, "", name, outside)
        path = path.resolve()
        if not problem and path in chain:
            cycle = " -> ".join(p.name for p in (*chain[chain.index(path) :], path))
            problem = f"{node.place}: {node}: a model attaches itself: {cycle}"
        if not problem and len(chain) >= _MAX_NESTED_MODELS:
            problem = f"{node.place}: {node}: more than {_MAX_NESTED_MODELS} models in one another"
        if problem:
            raise ModelError(problem)
        if path not in source.files:
            text, inner = _read_bytes(path), (*chain, path)
            read_model = read(text, path.parent, outside, path.name, "mujoco", source, inner)
            source.files[path] = read_model
        model = source.files[path]
        source.models[node.attributes.get("name") or model.root.attributes.get("model", "")] = model
        node.given["file"] = attached_name(list(source.files).index(path))


_MAX_NESTED_MODELS = 30
"""Number of models that may attach one another in a chain."""


def resolve_beside_include(
    source: ModelSource, node: Node, folder: str, name: str, outside: bool
) -> tuple[Path, str]:
    """Return what `resolve` does, also looking next to the file that includes `node`.

    MuJoCo looks for files in the same order: first from the model's directory, then from that of
    the including file.
    """
    path, problem = resolve(source, node, folder, name, outside)
    if problem and node.folder is not None:
        other, missing = resolve(source, node, str(node.folder), name, outside)
        if not missing:
            return other, ""
    return path, problem
