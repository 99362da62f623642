"""The text of a model, read to know what it names and where things stand.

The text itself goes to MuJoCo as it is; nothing here rewrites it.
"""

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from brax.errors import ModelError

_DEEPEST = 500
_FORMATS = {"mujoco": "an MJCF <mujoco> document", "robot": "a URDF <robot> document"}
_READERS = {"mujoco": "brax.io.mjcf", "robot": "brax.io.urdf"}


@dataclasses.dataclass
class Node:
    """One element of the text."""

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    section: str = ""
    """The child of `<mujoco>` that it stands in."""
    children: list["Node"] = dataclasses.field(default_factory=list)

    @property
    def place(self) -> str:
        """File and line."""
        return f"{self.file}:{self.line}"

    @property
    def kind(self) -> str:
        """The kind of element that it makes."""
        if self.section in ("actuator", "equality", "tendon", "sensor"):
            return self.section
        return "joint" if self.tag == "freejoint" else self.tag

    def __str__(self) -> str:
        """How messages name it."""
        name = self.attributes.get("name")
        return f"<{self.tag} name='{name}'>" if name else f"<{self.tag}>"


@dataclasses.dataclass
class Source:
    """A model's text, with everything that it includes."""

    text: str
    name: str
    """The file's name, for messages."""
    path: Path | None
    """The file, or None if the text came without."""
    directory: Path | None
    """Where relative paths start, if anywhere."""
    root: Node
    included: dict[str, bytes]
    """Contents of the included files, by the names that the text uses."""

    def elements(self) -> list[Node]:
        """All elements but those of `<default>`, in the order of the text."""
        return [n for n in walk(self.root) if n.section != "default"]


def walk(root: Node) -> Iterator[Node]:
    """All elements below `root`, in the order of the text."""
    stack = root.children[::-1]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children[::-1])


def read_file(path: Path, outside: bool, root: str = "mujoco") -> Source:
    """Reads a model's file and everything that it includes; see `read`."""
    if os.path.isdir(path):
        raise ModelError(f"{path.absolute()} is a folder: give the model file in it")
    if not _is_file(path):
        raise ModelError(f"no such model file: {path.absolute()} (cwd {Path.cwd()})")
    source = read(_read_bytes(path), path.parent, outside, path.name, root)
    return dataclasses.replace(source, path=path)


def read(
    text: str | bytes,
    directory: Path | None,
    outside: bool,
    name: str = "model.xml",
    root: str = "mujoco",
) -> Source:
    """Reads a model's text and everything that it includes.

    Args:
        text: the XML.
        directory: where relative paths start.
        outside: whether files outside the directory may be included.
        name: what messages call the file.
        root: tag of the element that the text is.

    Returns:
        The text as elements.

    Raises:
        ModelError: if it is not a model's text, or includes what it must not.
    """
    decoded = _decode(text, name)
    top = _document(decoded, name, root)
    source = Source(decoded, name, None, directory, top, {})
    _include(source, top, [name], "", outside)
    for child in top.children:
        for node in (child, *walk(child)):
            node.section = child.tag
    return source


def resolve(source: Source, node: Node, folder: str, name: str, outside: bool) -> tuple[Path, str]:
    """The path of a file that the text names, and what is wrong with it."""
    where = f"{node.place}: {node}"
    if source.directory is None:
        return Path(), f"{where}: file '{name}' needs a directory; pass asset_path, or use load"
    start = source.directory.resolve()
    path = Path(os.path.normpath(start / folder / name)).resolve()
    if not outside and not path.is_relative_to(start):
        return path, (
            f"{where}: file '{name}' leaves the model directory {start}; "
            "pass allow_external_assets=True if you trust the model"
        )
    if not _is_file(path):
        return path, f"{where}: no such file: {path}"
    return path, ""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from None


def _decode(text: str | bytes, name: str) -> str:
    if not isinstance(text, str | bytes):
        raise ModelError(
            f"{name}: a model's text must be str or bytes, got {type(text).__name__}; "
            "a file is read by load(path)"
        )
    try:
        return text.encode().decode() if isinstance(text, str) else text.decode("utf-8-sig")
    except UnicodeError as error:
        raise ModelError(f"{name}: not UTF-8 text ({error})") from None


def _document(text: str, name: str, tag: str) -> Node:
    """Parses a whole model and checks its root."""
    if not text.strip():
        raise ModelError(f"{name}: model is empty: expected {_FORMATS[tag]}")
    root = _parse(text, name)
    if root.tag != tag:
        reader = _READERS.get(root.tag)
        other = f"; {_FORMATS[root.tag]} is read by {reader}" if reader else ""
        raise ModelError(f"{root.place}: root is <{root.tag}>; supported: <{tag}>{other}")
    return root


def _parse(text: str, name: str) -> Node:
    """Parses XML into nodes; a document type is refused before anything in it is read."""
    parser = expat.ParserCreate()
    top = Node("", {}, name, 0)
    stack = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        node = Node(tag, attributes, name, parser.CurrentLineNumber)
        stack[-1].children.append(node)
        stack.append(node)
        if len(stack) > _DEEPEST:
            raise ModelError(f"{node.place}: elements are nested deeper than {_DEEPEST}")

    def doctype(*_: object) -> None:
        raise ModelError(
            f"{name}:{parser.CurrentLineNumber}: DOCTYPE is not allowed in a model; take it out"
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise ModelError(_not_xml(text, name, error)) from None
    return top.children[0]


def _not_xml(text: str, name: str, error: expat.ExpatError) -> str:
    start = text.strip()
    if start.startswith("<"):
        return f"{name}:{error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}"
    hint = " Did you mean load(path)?" if start.endswith((".xml", ".mjcf")) else ""
    return f"{name}:{error.lineno}: not XML (starts with {start[:40]!r}).{hint}"


def _include(source: Source, root: Node, chain: list[str], folder: str, outside: bool) -> None:
    """Puts what a file in `folder` includes in the place of its `<include>`s."""
    stack = [root]
    while stack:
        node = stack.pop()
        children: list[Node] = []
        for child in node.children:
            named = child.tag == "include" and "file" in child.attributes
            children += _included(source, child, chain, folder, outside) if named else [child]
        node.children = children
        stack += children


def _included(
    source: Source, node: Node, chain: list[str], folder: str, outside: bool
) -> list[Node]:
    """The elements of a file, which is beside the model or else beside what includes it."""
    name = node.attributes["file"]
    if name in chain:
        raise ModelError(f"{node.place}: include cycle: {' -> '.join([*chain, name])}")
    if name in source.included:
        raise ModelError(f"{node.place}: file '{name}' is already included; include it once")
    path, problem = resolve(source, node, "", name, outside)
    if problem and folder:
        beside, missing = resolve(source, node, folder, name, outside)
        path, problem = (path, problem) if missing else (beside, "")
    if problem:
        raise ModelError(problem)
    source.included[name] = _read_bytes(path)
    root = _parse(_decode(source.included[name], name), name)
    _include(source, root, [*chain, name], str(path.parent), outside)
    return root.children
