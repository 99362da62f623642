"""Limits of the memory and the time that a model's text may ask MuJoCo for.

MuJoCo would exhaust them before it could report an error.
"""

import math
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from brax.errors import closest
from brax.io._nodes import Node, walk
from brax.io.mjcf.numbers import number_or_zero
from brax.io.mjcf.sources import ModelSource, attached_name

_IMAGE_SIZES = ("width", "height", "nrow", "ncol")
STORED = "numbers of keyframes and user data"
_NAMES = "characters of names"
MEMORY_LIMITS = {
    "pixels": 2**26,
    "vertices": 2**18,
    "numbers": 2**20,
    STORED: 2**25,
    _NAMES: 2**22,
}
"""Maximum numbers, in a model, of pixels of its images, of vertices of its built-in meshes (MuJoCo
takes 2 kB for each), of numbers in its sensors, their histories and those of actuators, of numbers
in its keyframes and in the user's data of its elements, and of characters in all names: MuJoCo
compares those of copies with one another, which takes 17 s for as many."""
_MAX_COORDINATES = 13  # coordinates and velocities of a body
_MAX_RANGEFINDER_PIXELS = 2**22
_MAX_LENGTH_RANGE_STEPS = 100_000
_USER_DATA_KINDS = ("body", "jnt", "geom", "site", "cam", "tendon", "actuator", "sensor")
LIMITS = {
    "size": {
        **{f"nuser_{kind}": 10_000 for kind in _USER_DATA_KINDS},
        "nkey": 10_000,
        "njmax": 2**14,  # memory grows with its square
        "nconmax": 2**20,
        "nuserdata": 2**20,
        "nstack": 2**31,
        "memory": 2**34,
    },
    "user": {"dim": 2**20},
    "contact": {"num": 2**20},
    "any element": {"nsample": 2**10},
}
"""Maximum values by element and attribute: MuJoCo allocates memory in proportion to them."""

_UNITS = "KMGTPE"
_LENGTH_RANGE = {"timestep": "0.01", "inttotal": "10"}  # MuJoCo's defaults


def too_many(source: ModelSource, limit: int) -> Iterator[str]:
    """Yield the kinds of element of which there are too many, copies included.

    They are counted on the text, because `<replicate>`, `<flexcomp>` and `<attach>` can make
    billions before the compiler notices.
    """
    problems: list[str] = []
    total = _counted(source, problems)
    yield from problems
    for kind, number in total.items() if not problems else ():
        if kind in MEMORY_LIMITS:
            if number > MEMORY_LIMITS[kind]:
                yield (
                    f"{source.name}: model has {number:.0f} {kind} in all, copies counted "
                    f"(limit {MEMORY_LIMITS[kind]})"
                )
        elif number > limit:
            plural = {"body": "bodies"}.get(kind, f"{kind}s")
            yield (
                f"{source.name}: model has {number:.0f} {plural} (limit {limit}); "
                "pass max_elements to allow more"
            )


class _Count(NamedTuple):
    """The numbers of elements below a node, by kind."""

    every: Counter[str]
    copied: Counter[str]
    """The elements of which there are several copies, by kind."""


def _counted(source: ModelSource, problems: list[str]) -> Mapping[str, float]:
    """Return the number of bodies and geoms, and of copies of all other elements, by kind.

    The kinds of `MEMORY_LIMITS` are among them.

    Args:
        source: the text.
        problems: list that the problems of `<attach>` are added to.
    """
    owners = {id(n): s for s in (source, *source.files.values()) for n in (s.root, *walk(s.root))}
    found: dict[int, _Count] = {}
    waiting: dict[int, list[Node]] = {}
    stack = [source.root]
    while stack:
        node = stack[-1]
        # The first visit puts what a node holds or copies on the stack, the second adds it up.
        if id(node) not in waiting:
            waiting[id(node)] = [*node.children, *_copied(owners[id(node)], node, problems)]
            new = [n for n in waiting[id(node)] if id(n) not in found]
            if cycle := [n for n in new if id(n) in waiting]:
                problems.append(f"{node.place}: {node}: {cycle[0]} attaches itself")
                return {}
            stack += new
            continue
        stack.pop()
        if id(node) not in found:
            found[id(node)] = _count(node, [found[id(n)] for n in waiting[id(node)]])
    total = found[id(source.root)]
    kinds = ("geom", "body", *MEMORY_LIMITS)
    whole: dict[str, float] = {kind: total.every[kind] for kind in kinds}
    copied: dict[str, float] = {k: n for k, n in total.copied.items() if k not in MEMORY_LIMITS}
    # Sensors and actuators of what is replicated are replicated too.
    whole["numbers"] *= max(copied.values(), default=1)
    nodes = [n for each in (source, *source.files.values()) for n in walk(each.root)]
    whole[STORED] = stored_numbers(nodes, total.every)
    return copied | whole


def stored_numbers(nodes: Sequence[Node], every: Mapping[str, int]) -> float:
    """Return how many numbers MuJoCo stores at most for keyframes and the user's data.

    Each keyframe has the coordinates of all bodies, and each element as many numbers of the user as
    the one with the most.

    Args:
        nodes: the elements of the text.
        every: the number of the model's elements, by kind.
    """
    sizes = [n.attributes for n in nodes if n.tag == "size"]

    def asked(key: str) -> float:
        return max((number_or_zero(size.get(key, "")) for size in sizes), default=0.0)

    users = [0.0, *(float(len(n.attributes.get("user", "").split())) for n in nodes)]
    users += [asked(f"nuser_{kind}") for kind in _USER_DATA_KINDS]
    elements = sum(n for kind, n in every.items() if kind not in MEMORY_LIMITS)
    keys = max(every.get("key", 0), asked("nkey"))
    return keys * every["body"] * _MAX_COORDINATES + max(users) * elements


def _count(node: Node, parts: Sequence[_Count]) -> _Count:
    """Return the numbers of elements of a node, from those of what it holds and copies."""
    every, copied = (sum((part[k] for part in parts), Counter()) for k in (0, 1))
    if node.tag == "model" and node.section == "asset":
        # MuJoCo reads the file once for each such element, whether or not it is attached.
        models = Counter({"attached model": 1 + every["attached model"]})
        return _Count(models, models)
    if node.section != "default" and (node.tag != "replicate" or not node.children):
        every += Counter({_MADE.get(node.tag, node.tag): 1})
        kind, number = _memory(node)
        if 1 < number <= MEMORY_LIMITS[kind]:  # what is above is a problem of its own
            every[kind] += int(number)
        every[_NAMES] += len(node.attributes.get("name", ""))
    # Each name within gets these parts.
    parts_of_names = "".join(node.attributes.get(key, "") for key in ("sep", "prefix", "suffix"))
    elements = sum(n for kind, n in every.items() if kind not in MEMORY_LIMITS)
    every[_NAMES] += elements * len(parts_of_names)
    if node.tag == "attach":
        copied = Counter(every)
    if node.tag in ("replicate", "composite", "flexcomp"):
        copies = _product(node.attributes.get("count", "1"))
        every = Counter({kind: n * copies for kind, n in every.items()})
        copied = Counter(every) if copies > 1 else copied
    return _Count(every, copied)


_MADE = {"flexcomp": "body", "composite": "body"}
"""The kind of element that another kind of element makes."""


def _copied(source: ModelSource, node: Node, problems: list[str]) -> list[Node]:
    """Return the elements of which a node is, or makes, a copy."""
    if node.tag == "model" and node.section == "asset":
        path = node.given.get("file")
        return [m.root for k, m in enumerate(source.files.values()) if attached_name(k) == path]
    if node.tag != "attach" or node.section != "worldbody":
        return []
    name = node.attributes.get("model")
    if name is not None and name not in source.models:
        problems.append(f"{node.place}: {node}: no model '{name}'.{closest(name, source.models)}")
        return []
    root = source.root if name is None else source.models[name].root
    # All assets are copied too, and what refers to the bodies: at most all outside the tree.
    outside = [n for n in root.children if n.tag not in ("worldbody", "default")]
    for key in ("body", "frame"):
        if (wanted := node.attributes.get(key)) is not None:
            mine = [n for n in walk(root) if n.tag == key and n.attributes.get("name") == wanted]
            if not mine:
                problems.append(f"{node.place}: {node}: no {key} '{wanted}' in {root.file}")
            return mine + outside
    if name is None:
        problems.append(f"{node.place}: {node}: give it a model, a body or a frame")
        return []
    return [*(n for n in root.children if n.tag == "worldbody"), *outside]


def too_large(root: Node) -> Iterator[str]:
    """Yield the elements for which MuJoCo would allocate too much memory."""
    rangefinders = [n for n in walk(root) if n.tag == "rangefinder" and "camera" in n.attributes]
    samples = sum(_product(n.attributes.get("nsample", "1")) for n in rangefinders)
    for node in walk(root):
        kind, number = _memory(node)
        limit: float = MEMORY_LIMITS[kind]
        if node.tag == "camera" and rangefinders:
            kind, number = "pixels", _product(node.attributes.get("resolution", ""))
            limit = _MAX_RANGEFINDER_PIXELS // samples
        if number > limit and not any(over_limit(node)):
            yield f"{node.place}: {node} has {number:.0f} {kind} (limit {limit:.0f})"


def _memory(node: Node) -> tuple[str, float]:
    """Return a kind of `MEMORY_LIMITS`, and the number of those that an element makes."""
    given = node.attributes
    if node.tag in ("texture", "hfield"):
        return "pixels", max(_product(_image_size(node)), node.pixels)
    if node.tag == "mesh" and "builtin" in given:
        # The first number is the resolution, in both directions but for plates and wedges.
        rows, columns, *_ = [*given.get("params", "").split(), "1", "1"]
        grid = given["builtin"] in ("plate", "wedge")
        return "vertices", _product(f"{rows} {columns if grid else rows}")
    if node.section in ("sensor", "actuator"):
        widths = [given.get(key, "1") for key in ("dim", "num", "nsample")]
    else:
        widths = []
    # MuJoCo's plugin touch_grid has a sensor of so many numbers.
    widths += [
        config.attributes.get("value", "1")
        for config in node.children
        if config.tag == "config" and config.attributes.get("key") in ("size", "nchannel")
    ]
    return "numbers", _product(" ".join(widths))


def _image_size(node: Node) -> str:
    """Return numbers whose product is the number of pixels of an image.

    A cube texture has six square sides.
    """
    if node.tag == "texture" and node.attributes.get("type") != "2d":
        width = node.attributes.get("width", "1")
        return f"6 {width} {width}"
    return " ".join(node.attributes.get(key, "1") for key in _IMAGE_SIZES)


def over_limit(node: Node) -> Iterator[str]:
    """Yield the attributes of an element for which MuJoCo would allocate too much memory."""
    for key, limit in (LIMITS["any element"] | LIMITS.get(node.tag, {})).items():
        word = node.attributes.get(key, "").strip()
        unit = word[-1:].upper()
        # MuJoCo's documentation, size/memory: a letter such as K or M multiplies by a power of
        # 1024.
        scale = 1024 ** (_UNITS.find(unit) + 1) if unit else 1
        if number_or_zero(word.rstrip(f"{_UNITS}{_UNITS.lower()}")) * scale > limit:
            yield f"{node.place}: {node} {key} is {word} (limit {limit})"


def too_long(root: Node) -> Iterator[str]:
    """Yield the settings with which MuJoCo would simulate too long to find length ranges."""
    settings = dict(_LENGTH_RANGE)
    for node in walk(root):
        if node.tag != "lengthrange":
            continue
        settings |= {key: node.attributes[key] for key in settings if key in node.attributes}
        timestep, total = (number_or_zero(settings[key]) for key in ("timestep", "inttotal"))
        if not (0 < timestep < math.inf and 0 < total < math.inf):
            yield (
                f"{node.place}: {node} timestep and inttotal must be positive numbers, "
                f"got {settings['timestep']} and {settings['inttotal']}"
            )
        elif total / timestep > _MAX_LENGTH_RANGE_STEPS:
            yield (
                f"{node.place}: {node} takes {total / timestep:.0f} steps, inttotal / timestep "
                f"(limit {_MAX_LENGTH_RANGE_STEPS})"
            )


def _product(words: str) -> float:
    """Return the product of numbers, each counted as at least one."""
    return math.prod(max(number_or_zero(word), 1.0) for word in words.split())


def file_pixels(path: Path) -> int:
    """Return the number of pixels that a PNG file says it has; 0 for any other file.

    The picture can take a thousand times the memory of its file. Source: PNG specification,
    section 11.2.1.
    """
    try:
        with path.open("rb") as file:
            head = file.read(24)
    except OSError:  # MuJoCo reports it
        return 0
    if len(head) < 24 or not head.startswith(b"\x89PNG\r\n\x1a\n"):
        return 0
    width, height = struct.unpack(">II", head[16:])
    return int(width * height)
