"""Checks of the text before MuJoCo's compiler sees it.

They find what the compiler accepts silently, and what would exhaust memory or time before it could
report an error.
"""

from collections.abc import Iterator

from brax.errors import ConfigError, ModelError
from brax.io._nodes import Node, walk
from brax.io.mjcf.limits import file_pixels, over_limit, too_large, too_long, too_many
from brax.io.mjcf.numbers import number_or_zero
from brax.io.mjcf.sources import ModelSource, compiler_settings, resolve_beside_include

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
MAX_FLOAT32 = 3.4028234e38  # the largest float32, JAX's default type


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
    sources = (source, *source.files.values())
    # These find the sizes of pictures, which count among the others.
    files = [problem for each in sources for problem in _bad_files(each, outside)]
    problems = list(too_many(source, max_elements))
    for each in sources:
        problems += too_large(each.root)
        problems += bad_settings(each.root)
        problems += _wrong_order(each.root)
    if problems := problems + files:
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
    for node in walk(root):
        yield from over_limit(node)
    yield from too_long(root)
    yield from _bad_numbers(root)


def _bad_numbers(root: Node) -> Iterator[str]:
    """Yield the numbers that are not finite in single precision; MuJoCo accepts most of them."""
    for node in walk(root):
        for key, value in node.attributes.items():
            if node.tag in _TEXT_ELEMENTS or key.rstrip("12") in _NAMES:
                continue
            for word in value.split():
                if not abs(number_or_zero(word)) <= MAX_FLOAT32:
                    yield f"{node.place}: {node} {key}: {word} is not finite"
                    break


def _wrong_order(root: Node) -> Iterator[str]:
    """Yield the ranges whose ends are swapped; MuJoCo takes some of them for 'unlimited'."""
    for node in walk(root):
        for key in _ORDERED_RANGES:
            numbers = [number_or_zero(word) for word in node.attributes.get(key, "").split()]
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
    settings = compiler_settings([n for n in source.root.children if n.tag == "compiler"])
    stripped = settings.get("strippath") == "true"
    for node in walk(source.root):
        if node.tag == "model" and node.section == "asset":
            continue  # its file was read already
        folder = settings.get("texturedir" if node.tag == "texture" else "meshdir", "")
        for key, name in node.attributes.items():
            if key.startswith("file") and name:
                name = name.replace("\\", "/").rsplit("/", 1)[-1] if stripped else name
                path, problem = resolve_beside_include(source, node, folder, name, outside)
                if problem:
                    yield problem
                    continue
                node.given[key] = str(path)
                if node.tag in ("texture", "hfield"):
                    node.pixels += file_pixels(path)
