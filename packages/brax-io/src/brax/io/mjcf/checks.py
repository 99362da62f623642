"""Checks of the text before MuJoCo's compiler sees it.

They find what the compiler accepts silently, and what would exhaust memory or time before it could
report an error.
"""

import math
from collections.abc import Iterator

from brax.errors import ConfigError, ModelError
from brax.io._nodes import Node, walk
from brax.io.mjcf.sources import ModelSource, resolve_beside_include

_TEXT_ELEMENTS = ("text", "plugin", "config")
_NAMES = (  # attributes that hold a name, which may be 'inf' or 'nan'
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
_ORDERED_RANGES = ("range", "ctrlrange", "forcerange", "actrange", "actuatorfrcrange")
_IMAGE_SIZES = ("width", "height", "nrow", "ncol")
MAX_FLOAT32 = 3.4028234e38  # the largest float32, JAX's default type
_MAX_PIXELS = 2**26
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
}
"""Maximum values by element and attribute: MuJoCo allocates memory in proportion to them."""

_UNITS = "KMGTPE"
_LENGTH_RANGE = {"timestep": "0.01", "inttotal": "10"}  # MuJoCo's defaults


def check(source: ModelSource, outside: bool, max_elements: int) -> None:
    """Check a model's text before MuJoCo sees it.

    Args:
        source: the text.
        outside: whether files outside the model's directory may be read.
        max_elements: maximum number of geoms, of bodies, and of replicas of any other element.

    Raises:
        ModelError: listing everything that is wrong with it.
    """
    check_limit(max_elements)
    problems = [
        *_too_many(source.root, max_elements),
        *_too_large(source.root),
        *bad_settings(source.root),
        *_wrong_order(source.root),
        *_bad_files(source, outside),
    ]
    if problems:
        raise ModelError.of(problems)


def check_limit(max_elements: int) -> None:
    """Check that a limit is a positive whole number.

    Raises:
        ConfigError: if it is not.
    """
    if type(max_elements) is not int or max_elements < 1:
        raise ConfigError(f"max_elements must be a whole number above 0, got {max_elements!r:.60}")


def bad_settings(root: Node) -> Iterator[str]:
    """Yield the numbers of all elements that are too large, take too long or are not finite."""
    yield from _over_limit(root)
    yield from _too_long(root)
    yield from _bad_numbers(root)


def _too_many(root: Node, limit: int) -> Iterator[str]:
    """Yield the kinds of element of which there are too many, replicas included.

    They are counted on the text, because `<replicate>` and `<composite>` can make billions before
    the compiler notices.
    """
    total = {"geom": 0.0, "body": 0.0}
    stack = [(root, 1.0)]
    while stack:
        node, copies = stack.pop()
        if node.tag in ("replicate", "composite", "flexcomp"):
            copies *= _product(node.attributes.get("count", "1"))
        counts = node.tag != "replicate" or not node.children  # what it copies counts for it
        if node.section != "default" and counts and (copies > 1 or node.tag in total):
            kind = "body" if node.tag in ("flexcomp", "composite") else node.tag
            total |= {kind: total.get(kind, 0.0) + copies}
        stack.extend((child, copies) for child in node.children)
    for kind, number in total.items():
        if number > limit:
            plural = {"body": "bodies"}.get(kind, f"{kind}s")
            yield (
                f"{root.file}: model has {number:.0f} {plural} (limit {limit}); "
                "pass max_elements to allow more"
            )


def _too_large(root: Node) -> Iterator[str]:
    """Yield the images and cameras for which MuJoCo would allocate too much memory."""
    measured = any(n.tag == "rangefinder" and "camera" in n.attributes for n in walk(root))
    for node in walk(root):
        pixels, limit = _product(_image_size(node)), _MAX_PIXELS
        if node.tag == "camera" and measured:
            pixels, limit = _product(node.attributes.get("resolution", "")), _MAX_RANGEFINDER_PIXELS
        if pixels > limit:
            yield f"{node.place}: {node} has {pixels:.0f} pixels (limit {limit})"


def _image_size(node: Node) -> str:
    """Return numbers whose product is the number of pixels of an image.

    A cube texture has six square sides.
    """
    if node.tag == "texture" and node.attributes.get("type") != "2d":
        width = node.attributes.get("width", "1")
        return f"6 {width} {width}"
    return " ".join(node.attributes.get(key, "1") for key in _IMAGE_SIZES)


def _over_limit(root: Node) -> Iterator[str]:
    """Yield the attributes for which MuJoCo would allocate too much memory."""
    for node in walk(root):
        for key, limit in LIMITS.get(node.tag, {}).items():
            word = node.attributes.get(key, "").strip()
            unit = word[-1:].upper()
            # MuJoCo's documentation, size/memory: a letter such as K or M multiplies by a power of
            # 1024.
            scale = 1024 ** (_UNITS.find(unit) + 1) if unit else 1
            if _number(word.rstrip(f"{_UNITS}{_UNITS.lower()}")) * scale > limit:
                yield f"{node.place}: {node} {key} is {word} (limit {limit})"


def _too_long(root: Node) -> Iterator[str]:
    """Yield the settings with which MuJoCo would simulate too long to find length ranges."""
    settings = dict(_LENGTH_RANGE)
    for node in walk(root):
        if node.tag != "lengthrange":
            continue
        settings |= {key: node.attributes[key] for key in settings if key in node.attributes}
        timestep, total = (_number(settings[key]) for key in ("timestep", "inttotal"))
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
    return math.prod(max(_number(word), 1.0) for word in words.split())


def _bad_numbers(root: Node) -> Iterator[str]:
    """Yield the numbers that are not finite in single precision; MuJoCo accepts most of them."""
    for node in walk(root):
        for key, value in node.attributes.items():
            if node.tag in _TEXT_ELEMENTS or key.rstrip("12") in _NAMES:
                continue
            for word in value.split():
                if not abs(_number(word)) <= MAX_FLOAT32:
                    yield f"{node.place}: {node} {key}: {word} is not finite"
                    break


def _wrong_order(root: Node) -> Iterator[str]:
    """Yield the ranges whose ends are swapped; MuJoCo takes some of them for 'unlimited'."""
    for node in walk(root):
        for key in _ORDERED_RANGES:
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


def _bad_files(source: ModelSource, outside: bool) -> Iterator[str]:
    """Yield the asset files that are missing or not allowed.

    For the others, MuJoCo is given the path that was found.
    """
    settings: dict[str, str] = {}
    for node in source.root.children:
        settings |= node.attributes if node.tag == "compiler" else {}
    stripped = settings.get("strippath") == "true"
    for node in walk(source.root):
        if node.tag == "model" and node.section == "asset":
            # An attached model's own files and limits would not be checked.
            yield f"{node.place}: {node}: other models cannot be attached; use <include>"
            continue
        if node.tag == "compiler" and stripped:
            node.given["strippath"] = "false"  # the paths that were found must stay whole
        kind = "texturedir" if node.tag == "texture" else "meshdir"
        folder = settings.get(kind, settings.get("assetdir", ""))
        for key, name in node.attributes.items():
            if key.startswith("file") and name:
                name = name.replace("\\", "/").rsplit("/", 1)[-1] if stripped else name
                path, problem = resolve_beside_include(source, node, folder, name, outside)
                if problem:
                    yield problem
                node.given[key] = str(path)


def _number(word: str) -> float:
    """Return the number that a word represents.

    It is 0 for any other word, which MuJoCo's compiler reports itself.
    """
    try:
        return float(word)
    except ValueError:
        return 0.0
