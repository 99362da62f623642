"""The text of a model: read once to check what MuJoCo lets pass and to know where things stand.

The text itself goes to MuJoCo as it is; nothing here rewrites it.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from brax.errors import ModelError

_TEXT_ELEMENTS = ("text", "plugin", "config")
_IN_ORDER = ("range", "ctrlrange", "forcerange", "actrange", "actuatorfrcrange")
_DEEPEST = 500
_LARGEST = 3.4028234e38  # of float32, which is what JAX computes with by default


@dataclass
class Node:
    """One element of the text."""

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    section: str = ""
    """The child of `<mujoco>` that it stands in."""
    children: list["Node"] = field(default_factory=list)

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


@dataclass
class Source:
    """A model's text, with everything that it includes."""

    text: str
    name: str
    """The file's name, for messages."""
    directory: Path | None
    """Where relative paths start; None if the text came without."""
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


def read(
    text: str | bytes, name: str, directory: Path | None, outside: bool, max_geoms: int
) -> Source:
    """Reads a model's text and everything that it includes.

    Args:
        text: the XML.
        name: what messages call the file.
        directory: where relative paths start.
        outside: whether files outside the directory may be read.
        max_geoms: the largest number of geoms allowed.

    Returns:
        The text, checked.

    Raises:
        ModelError: naming everything that is wrong with it.
    """
    root = _document(text, name)
    source = Source(_decode(text, name), name, directory, root, {})
    _include(source, root, [name], outside)
    _set_sections(root)
    problems = [
        *_too_many(root, max_geoms),
        *_bad_numbers(root),
        *_wrong_order(root),
        *_bad_files(source, outside),
    ]
    if problems:
        raise ModelError.of(problems)
    return source


def _decode(text: str | bytes, name: str) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"{name}: not UTF-8 text ({error})") from None


def _document(text: str | bytes, name: str) -> Node:
    """Parses a whole model and checks its root."""
    if not text.strip():
        raise ModelError(f"{name}: model is empty: expected an MJCF <mujoco> document")
    root = _parse(text, name)
    if root.tag != "mujoco":
        raise ModelError(f"{root.place}: root is <{root.tag}>; supported: <mujoco>")
    return root


def _parse(text: str | bytes, name: str) -> Node:
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


def _not_xml(text: str | bytes, name: str, error: expat.ExpatError) -> str:
    shown = text if isinstance(text, str) else text.decode("utf-8", "replace")
    if shown.lstrip().startswith("<"):
        return f"{name}:{error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}"
    hint = " Did you mean load(path)?" if shown.strip().endswith((".xml", ".mjcf")) else ""
    return f"{name}:{error.lineno}: not XML (starts with {shown.strip()[:40]!r}).{hint}"


def _include(source: Source, node: Node, chain: list[str], outside: bool) -> None:
    """Puts the elements of included files in the place of the `<include>`s."""
    children: list[Node] = []
    for child in node.children:
        if child.tag == "include" and "file" in child.attributes:
            children += _included(source, child, chain, outside)
        else:
            _include(source, child, chain, outside)
            children.append(child)
    node.children = children


def _included(source: Source, node: Node, chain: list[str], outside: bool) -> list[Node]:
    name = node.attributes["file"]
    if name in chain:
        raise ModelError(f"{node.place}: include cycle: {' -> '.join([*chain, name])}")
    if name in source.included:
        raise ModelError(f"{node.place}: file '{name}' is already included; include it once")
    path, problem = _resolve(source, node, "", name, outside)
    if problem:
        raise ModelError(problem)
    source.included[name] = path.read_bytes()
    root = _parse(source.included[name], name)
    _include(source, root, [*chain, name], outside)
    return root.children


def _set_sections(root: Node) -> None:
    for child in root.children:
        child.section = child.tag
        for node in walk(child):
            node.section = child.tag


def _resolve(source: Source, node: Node, folder: str, name: str, outside: bool) -> tuple[Path, str]:
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
    if not path.is_file():
        return path, f"{where}: no such file: {path}"
    return path, ""


def _bad_files(source: Source, outside: bool) -> Iterator[str]:
    """Asset files that are missing or outside the model's directory."""
    settings: dict[str, str] = {}
    for node in source.root.children:
        settings |= node.attributes if node.tag == "compiler" else {}
    for node in walk(source.root):
        if node.tag == "model" and node.section == "asset":
            yield f"{node.place}: {node}: other models cannot be attached; use <include>"
            continue
        kind = "texturedir" if node.tag == "texture" else "meshdir"
        folder = settings.get(kind, settings.get("assetdir", ""))
        for key, name in node.attributes.items():
            if key.startswith("file") and name:
                stripped = settings.get("strippath") == "true"
                name = name.replace("\\", "/").rsplit("/", 1)[-1] if stripped else name
                problem = _resolve(source, node, folder, name, outside)[1]
                if problem:
                    yield problem


def _bad_numbers(root: Node) -> Iterator[str]:
    """Numbers that are not finite in single precision; MuJoCo lets most of them pass."""
    nodes = list(walk(root))
    names = {n.attributes.get(key) for n in nodes for key in ("name", "class")}
    for node in nodes:
        for key, value in node.attributes.items():
            if node.tag not in _TEXT_ELEMENTS and value not in names:
                for word in value.split():
                    if not abs(_number(word)) <= _LARGEST:
                        yield f"{node.place}: {node} {key}: {word} is not finite"
                        break


def _wrong_order(root: Node) -> Iterator[str]:
    """Ranges that are upside down; MuJoCo takes some of them for 'unlimited'."""
    for node in walk(root):
        for key in _IN_ORDER:
            numbers = [_number(word) for word in node.attributes.get(key, "").split()]
            if len(numbers) == 2 and numbers[0] > numbers[1]:
                hint = (
                    '; joints with angles are in degrees unless <compiler angle="radian"/>'
                    if node.section in ("worldbody", "default")
                    else ""
                )
                yield (
                    f"{node.place}: {node} {key}: the first number must be smaller than the "
                    f"second, got {node.attributes[key]}{hint}"
                )


def _number(word: str) -> float:
    """The number that a word is; 0 for other words, which MuJoCo refuses itself."""
    try:
        return float(word)
    except ValueError:
        return 0.0


def _too_many(root: Node, limit: int) -> Iterator[str]:
    """Counts geoms before anything is built from them; copies count."""
    total = 0.0
    stack = [(root, 1.0)]
    while stack:
        node, copies = stack.pop()
        if node.tag in ("replicate", "composite", "flexcomp"):
            counts = [max(_number(w), 1.0) for w in node.attributes.get("count", "1").split()]
            copies *= math.prod(counts)
        total += copies if node.tag in ("geom", "flexcomp") and node.section != "default" else 0
        stack.extend((child, copies) for child in node.children)
    if total > limit:
        yield (
            f"{root.file}: model has {total:.0f} geoms (limit {limit}); "
            "pass max_geoms to allow more"
        )
