"""Says the errors of MuJoCo's compiler in terms of the model's text."""

import re
from collections.abc import Callable

import mujoco

from brax.errors import closest
from brax.io._mjcf_names import keywords
from brax.io._mjcf_source import Node, Source, walk

_PARSED = re.compile(r"(?:XML Error: )?(?:Error: )?(.*?)\nElement '(.*)', line (\d+)", re.S)
_COMPILED = re.compile(r"(?:Error: )?(.*?)\nElement name '(.*)', id \d+, line (\d+)", re.S)
_COUNTS = {
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
_TURNS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")


def explain(message: str, source: Source) -> str:
    """MuJoCo's message with file, line, element, what was found and what may help."""
    parsed, compiled = _PARSED.match(message), _COMPILED.match(message)
    if parsed:
        said, tag, line = parsed.groups()
        node = _find(source, int(line), lambda n: n.tag == tag, said)
    elif compiled:
        said, name, line = compiled.groups()
        node = _find(source, int(line), lambda n: n.attributes.get("name", "") == name, said)
    else:
        return f"{source.name}: {message.strip()}"
    said = " ".join(said.split())
    if node is None:
        inside = f" (in an included file: {', '.join(source.included)})" if source.included else ""
        return f"{source.name}{inside}: {said}"
    return f"{node.place}: {node}: {said}{_hint(said, node, source)}"


def _find(source: Source, line: int, fits: Callable[[Node], bool], said: str) -> Node | None:
    """The node that a message is about; MuJoCo does not know the lines of included files."""
    nodes = list(walk(source.root))
    if line:
        here = [n for n in nodes if n.line == line and n.file == source.name]
        return max(here, key=lambda n: (fits(n), n.kind in said, n.tag != n.section), default=None)
    inside = [n for n in nodes if n.file != source.name and fits(n)]
    words = re.findall(r"'([^']*)'", said)
    told = [
        n for n in inside if any(w in n.attributes or w in n.attributes.values() for w in words)
    ]
    candidates = told or inside
    return candidates[0] if len(candidates) == 1 else None


def _hint(said: str, node: Node, source: Source) -> str:
    """What was found, what is allowed, the nearest match: whatever the message lacks."""
    for pattern, help_ in _HINTS:
        match = re.search(pattern, said)
        if match:
            return help_(node, source, *match.groups())
    return ""


def _schema() -> dict[str, set[str]]:
    """The elements that MuJoCo knows, each with its attributes."""
    known: dict[str, set[str]] = {}
    current: set[str] = set()
    for line in mujoco.mj_printSchema(False, False).splitlines():
        words = line.split()
        if len(words) > 1 and re.fullmatch(r"\([!?*R]\)", words[1]):
            current = known.setdefault(words[0], set())
            words = words[2:]
        current.update(words)
    return known


def _element_hint(node: Node, source: Source) -> str:
    return f".{closest(node.tag, _schema())}"


def _attribute_hint(node: Node, source: Source, name: str) -> str:
    known = _schema().get(node.tag, set())
    return f". Allowed: {', '.join(sorted(known))}.{closest(name, known)}"


def _format_hint(node: Node, source: Source, name: str) -> str:
    return f": expected numbers separated by spaces, got '{node.attributes.get(name, '')}'"


def _count_hint(node: Node, source: Source, name: str) -> str:
    got = len(node.attributes.get(name, "").split())
    return f": expected {_COUNTS.get(name, 'another count of')} numbers, got {got}"


def _keyword_hint(node: Node, source: Source, word: str) -> str:
    for key in (k for k, value in node.attributes.items() if value == word):
        enum = _ENUMS.get((node.tag, key))
        allowed = keywords(enum) if enum else []
        listed = f". Allowed: {', '.join(allowed)}.{closest(word, allowed)}" if allowed else ""
        return f" in attribute '{key}'{listed}"
    return ""


def _size_hint(node: Node, source: Source, index: str) -> str:
    return f"; size is '{node.attributes.get('size', 'not given')}'"


def _mass_hint(node: Node, source: Source) -> str:
    nodes = [node, *(n for n in node.children if n.tag in ("inertial", "geom"))]
    keys = ("mass", "density", "diaginertia", "fullinertia")
    found = [f"{k}='{n.attributes[k]}'" for n in nodes for k in keys if k in n.attributes]
    return f"; found {', '.join(found)}" if found else "; give it a geom or an <inertial>"


def _turn_hint(node: Node, source: Source) -> str:
    return f": found {', '.join(k for k in _TURNS if k in node.attributes)}"


def _repeat_hint(node: Node, source: Source, name: str) -> str:
    same = [
        n
        for n in source.elements()
        if n.kind == node.kind and n.attributes.get("name") == name and n is not node
    ]
    return f"; the first is at {same[0].place}" if same else ""


def _range_hint(node: Node, source: Source) -> str:
    return (
        f", got '{node.attributes.get('range', '')}'; angles are in degrees unless "
        '<compiler angle="radian"/>'
    )


def _reference_hint(node: Node, source: Source, name: str) -> str:
    names = {n.attributes["name"] for n in source.elements() if "name" in n.attributes}
    return f".{closest(name, sorted(names))}"


def _class_hint(node: Node, source: Source, name: str) -> str:
    classes = sorted(
        {n.attributes.get("class", "main") for n in walk(source.root) if n.tag == "default"}
    )
    return f". Classes: {', '.join(classes) or 'none'}.{closest(name, classes)}"


_HINTS: tuple[tuple[str, Callable[..., str]], ...] = (
    (r"unrecognized element", _element_hint),
    (r"unrecognized attribute: '(.*)'", _attribute_hint),
    (r"bad format in attribute '(.*)'", _format_hint),
    (r"attribute '(.*)' (?:has too much|does not have enough) data", _count_hint),
    (r"invalid keyword: '(.*)'", _keyword_hint),
    (r"size (\d+) must be positive", _size_hint),
    (r"mass.*(?:negative|larger than)|inertia must satisfy", _mass_hint),
    (r"multiple orientation", _turn_hint),
    (r"repeated name '(.*)' in", _repeat_hint),
    (r"range\[0\] should be smaller", _range_hint),
    (r"unknown default class name '(.*)'", _class_hint),
    (r"(?:unknown|unrecognized).*?'(.*?)'", _reference_hint),
    (r"'(.*?)' not found", _reference_hint),
)
