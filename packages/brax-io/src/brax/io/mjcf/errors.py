"""Explains the errors of MuJoCo's compiler in terms of the model's text."""

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import PurePath

import mujoco

from brax.errors import closest
from brax.io._nodes import Node, walk
from brax.io.mjcf.names import keywords
from brax.io.mjcf.sources import ModelSource

_COMPILER_MESSAGE = re.compile(
    # A message about an attached model comes before that about the element that names its file.
    r"(?:XML Error: |Error: |could not parse model file with error: )*(.*?)"
    r"\nElement (?:name )?'([^'\n]*)'(?:, id \d+)?(?:, line (\d+))?",
    re.S,
)
_ATTRIBUTE_LENGTHS = {
    "pos": 3,
    "quat": 4,
    "axis": 3,
    "euler": 3,
    "axisangle": 4,
    "xyaxes": 6,
    "zaxis": 3,
    "fromto": 6,
    "range": 2,
    "ctrlrange": 2,
    "forcerange": 2,
    "rgba": 4,
    "gravity": 3,
    "diaginertia": 3,
    "fullinertia": 6,
    "friction": "up to 3",
    "size": "up to 3",
}
_ENUMS = {
    ("joint", "type"): mujoco.mjtJoint,
    ("geom", "type"): mujoco.mjtGeom,
    ("option", "integrator"): mujoco.mjtIntegrator,
    ("option", "cone"): mujoco.mjtCone,
    ("option", "solver"): mujoco.mjtSolver,
    ("general", "dyntype"): mujoco.mjtDyn,
    ("general", "gaintype"): mujoco.mjtGain,
    ("general", "biastype"): mujoco.mjtBias,
}
_ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")


def explain(message: str, source: ModelSource, nodes: Sequence[Node]) -> str:
    """Return MuJoCo's message with file, line, element, found value and advice.

    Args:
        message: MuJoCo's message.
        source: the model.
        nodes: the element of each line of the text that MuJoCo was given.
    """
    parts = _COMPILER_MESSAGE.match(message)
    if not parts:
        return f"{source.name}: {' '.join(message.split())}"
    said, name, line = parts.groups()
    said = " ".join(said.split())
    at = int(line or 0)
    node = nodes[at - 1] if 0 < at <= len(nodes) else _named(name, said, nodes)
    if node is None:
        return f"{source.name}: {said}"
    return f"{node.place}: {node}: {said}{_hint(said, node, source)}"


_URDF_MESSAGE_WORDS = {"link": ("body", "bodies", "inertia", "mass"), "joint": ("joint", "axis")}
"""Words in MuJoCo's messages about the elements of a robot."""


def _named(name: str, said: str, nodes: Sequence[Node]) -> Node | None:
    """Return the element that a message without a line names.

    A mesh has the name of its file.
    """
    mine = [n for n in nodes if name and n.attributes.get("name") == name]
    files = (n for n in nodes if n.tag == "mesh" and name)
    mine += [n for n in files if PurePath(n.given.get("filename", "")).stem == name]
    # A link and a joint may share a name, so the words of the message decide.
    fits = (n for n in mine if any(w in said for w in _URDF_MESSAGE_WORDS.get(n.tag, (n.kind,))))
    return next(fits, mine[0] if mine else None)


def _hint(said: str, node: Node, source: ModelSource) -> str:
    """Return what the message lacks: the value found, what is allowed, or the nearest match."""
    for pattern, help_ in _HINTS:
        match = re.search(pattern, said)
        if match:
            return help_(node, source, *match.groups())
    return ""


@functools.cache
def schema() -> dict[str, set[str]]:
    """Return the elements that MuJoCo knows, each with its attributes."""
    known: dict[str, set[str]] = {}
    current: set[str] = set()
    for line in mujoco.mj_printSchema(False, False).splitlines():
        words = line.split()
        if len(words) > 1 and re.fullmatch(r"\([!?*R]\)", words[1]):
            current = known.setdefault(words[0], set())
            words = words[2:]
        current.update(words)
    return known


def _element_hint(node: Node, source: ModelSource) -> str:
    return f".{closest(node.tag, schema())}"


def _attribute_hint(node: Node, source: ModelSource, name: str) -> str:
    known = schema().get(node.tag, set())
    return f". Allowed: {', '.join(sorted(known))}.{closest(name, known)}"


def _format_hint(node: Node, source: ModelSource, name: str) -> str:
    return f": expected numbers separated by spaces, got '{node.attributes.get(name, '')}'"


def _count_hint(node: Node, source: ModelSource, name: str) -> str:
    got = len(node.attributes.get(name, "").split())
    return f": expected {_ATTRIBUTE_LENGTHS.get(name, 'another count of')} numbers, got {got}"


def _keyword_hint(node: Node, source: ModelSource, word: str) -> str:
    for key in (k for k, value in node.attributes.items() if value == word):
        enum = _ENUMS.get((node.tag, key))
        allowed = keywords(enum) if enum else []
        listed = f". Allowed: {', '.join(allowed)}.{closest(word, allowed)}" if allowed else ""
        return f" in attribute '{key}'{listed}"
    return ""


def _size_hint(node: Node, source: ModelSource, index: str) -> str:
    return f"; size is '{node.attributes.get('size', 'not given')}'"


def _mass_hint(node: Node, source: ModelSource) -> str:
    if node.tag == "link":
        parts = [n for n in walk(node) if n.tag in ("mass", "inertia")]
        found = [f"{k}='{v}'" for n in parts for k, v in n.attributes.items()]
        return f"; found {', '.join(found)}" if found else ""
    nodes = [node, *(n for n in node.children if n.tag in ("inertial", "geom"))]
    keys = ("mass", "density", "diaginertia", "fullinertia")
    found = [f"{k}='{n.attributes[k]}'" for n in nodes for k in keys if k in n.attributes]
    return f"; found {', '.join(found)}" if found else "; give it a geom or an <inertial>"


def _eigenvalue_hint(node: Node, source: ModelSource) -> str:
    where = " in an element <mujoco> of the robot" if node.tag == "link" else ""
    # balanceinertia, which other messages recommend, does not mend it.
    return (
        f"{_mass_hint(node, source)}. No body has such an inertia: correct it, or replace moments "
        f'below 1e-4 by that: <compiler boundinertia="1e-4"/>{where}'
    )


def _orientation_hint(node: Node, source: ModelSource) -> str:
    return f": found {', '.join(k for k in _ORIENTATIONS if k in node.attributes)}"


def _repeat_hint(node: Node, source: ModelSource, name: str) -> str:
    same = [
        n
        for n in source.elements()
        if n.kind == node.kind and n.attributes.get("name") == name and n is not node
    ]
    return f"; the first is at {same[0].place}" if same else ""


def _range_hint(node: Node, source: ModelSource) -> str:
    return (
        f", got '{node.attributes.get('range', '')}'; angles are in degrees unless "
        '<compiler angle="radian"/>'
    )


def _reference_hint(node: Node, source: ModelSource, name: str) -> str:
    names = {n.attributes["name"] for n in source.elements() if "name" in n.attributes}
    return f".{closest(name, sorted(names))}"


def _mesh_hint(node: Node, source: ModelSource) -> str:
    return "; meshes are read from .obj, .stl and .msh files: convert it"


def _shape_hint(node: Node, source: ModelSource) -> str:
    got = ", ".join(f"<{n.tag}>" for n in node.children) or "nothing"
    return f": got {got}. Allowed: box, sphere, cylinder, capsule, mesh"


def _class_hint(node: Node, source: ModelSource, name: str) -> str:
    classes = sorted(
        {n.attributes.get("class", "main") for n in walk(source.root) if n.tag == "default"}
    )
    return f". Classes: {', '.join(classes) or 'none'}.{closest(name, classes)}"


# The first match wins, so general patterns come after specific ones.
_HINTS: tuple[tuple[str, Callable[..., str]], ...] = (
    (r"unrecognized element", _element_hint),
    (r"unrecognized attribute: '(.*)'", _attribute_hint),
    (r"bad format in attribute '(.*)'", _format_hint),
    (r"attribute '(.*)' (?:has too much|does not have enough) data", _count_hint),
    (r"invalid keyword: '(.*)'", _keyword_hint),
    (r"size (\d+) must be positive", _size_hint),
    (r"mass.*(?:negative|larger than)|inertia must satisfy", _mass_hint),
    (r"inertia must have positive eigenvalues", _eigenvalue_hint),
    (r"multiple orientation", _orientation_hint),
    (r"repeated name '(.*)' in", _repeat_hint),
    (r"range\[0\] should be smaller", _range_hint),
    (r"unknown default class name '(.*)'", _class_hint),
    (r"(?:unknown|unrecognized).*?'(.*?)'", _reference_hint),
    (r"'(.*?)' not found", _reference_hint),
    (r"no decoder found for mesh", _mesh_hint),
    (r"geometry specification not found", _shape_hint),
)
