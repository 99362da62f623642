"""What MuJoCo's compiler lets pass, or would only tell after harm is done: checked on the text."""

import math
from collections.abc import Iterator

from brax.errors import ModelError
from brax.io._mjcf_source import Node, Source, resolve, walk

_TEXT_ELEMENTS = ("text", "plugin", "config")
_NAMES = (  # attributes that hold a name, which may read 'inf'
    "name",
    "class",
    "childclass",
    "model",
    "body",
    "joint",
    "geom",
    "site",
    "mesh",
    "material",
    "texture",
    "tendon",
    "actuator",
    "target",
    "objname",
    "refname",
)
_IN_ORDER = ("range", "ctrlrange", "forcerange", "actrange", "actuatorfrcrange")
_IMAGE_SIZES = ("width", "height", "nrow", "ncol")
_LARGEST = 3.4028234e38  # of float32, which is what JAX computes with by default
_MAX_PIXELS = 2**26


def check(source: Source, outside: bool, max_elements: int) -> None:
    """Checks a model's text before MuJoCo sees it.

    Args:
        source: the text.
        outside: whether files outside the model's directory may be read.
        max_elements: the largest number of geoms, and of bodies, allowed.

    Raises:
        ModelError: naming everything that is wrong with it.
    """
    problems = [
        *_too_many(source.root, max_elements),
        *_too_large(source.root),
        *_bad_numbers(source.root),
        *_wrong_order(source.root),
        *_bad_files(source, outside),
    ]
    if problems:
        raise ModelError.of(problems)


def _too_many(root: Node, limit: int) -> Iterator[str]:
    """Counts geoms and bodies before anything is built from them; copies count."""
    total = {"geom": 0.0, "body": 0.0}
    stack = [(root, 1.0)]
    while stack:
        node, copies = stack.pop()
        if node.tag in ("replicate", "composite", "flexcomp"):
            copies *= _product(node.attributes.get("count", "1"))
        if node.section != "default":
            kind = "body" if node.tag in ("flexcomp", "composite") else node.tag
            total |= {kind: total.get(kind, 0.0) + copies}
        stack.extend((child, copies) for child in node.children)
    for kind, plural in (("geom", "geoms"), ("body", "bodies")):
        if total[kind] > limit:
            yield (
                f"{root.file}: model has {total[kind]:.0f} {plural} (limit {limit}); "
                "pass max_elements to allow more"
            )


def _too_large(root: Node) -> Iterator[str]:
    """Images that MuJoCo would allocate memory for without asking."""
    for node in walk(root):
        pixels = _product(" ".join(node.attributes.get(key, "1") for key in _IMAGE_SIZES))
        if pixels > _MAX_PIXELS:
            yield f"{node.place}: {node} has {pixels:.0f} pixels (limit {_MAX_PIXELS})"


def _product(words: str) -> float:
    """Product of numbers, none of them counted as less than one."""
    return math.prod(max(_number(word), 1.0) for word in words.split())


def _bad_numbers(root: Node) -> Iterator[str]:
    """Numbers that are not finite in single precision; MuJoCo lets most of them pass."""
    for node in walk(root):
        for key, value in node.attributes.items():
            if node.tag in _TEXT_ELEMENTS or key.rstrip("12") in _NAMES:
                continue
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
                problem = resolve(source, node, folder, name, outside)[1]
                if problem:
                    yield problem


def _number(word: str) -> float:
    """The number that a word is; 0 for other words, which MuJoCo refuses itself."""
    try:
        return float(word)
    except ValueError:
        return 0.0
