"""Runs MuJoCo's compiler on a checked text."""

import re
import warnings
from collections.abc import Iterator, Sequence

import mujoco

from brax.errors import ModelError
from brax.io._nodes import Node, write
from brax.io.mjcf.checks import check
from brax.io.mjcf.errors import explain
from brax.io.mjcf.sources import ModelSource, attached_name

_PLURALS = {
    "body": "bodies",
    "joint": "joints",
    "geom": "geoms",
    "camera": "cameras",
    "site": "sites",
    "sensor": "sensors",
    "actuator": "actuators",
    "equality": "equalities",
    "tendon": "tendons",
    "numeric": "numerics",
    "tuple": "tuples",
    "pair": "pairs",
    "exclude": "excludes",
    "flex": "flexes",
    "key": "keys",
}


def compile_model(
    source: ModelSource, outside: bool, max_elements: int
) -> tuple[mujoco.MjModel, dict[tuple[str, int], str]]:
    """Check a model's text and compile it.

    Args:
        source: the text.
        outside: whether files outside the model's directory may be read.
        max_elements: maximum number of geoms, of bodies, and of replicas of any other element.

    Returns:
        MuJoCo's model, and the place of each of its elements (kind, id), such as ' (ant.xml:12)'.

    Raises:
        ModelError: with the place, MuJoCo's own message, and advice.
    """
    check(source, outside, max_elements)
    text, nodes = write(source.root)
    attached: dict[str, bytes] = {}
    for number, model in enumerate(source.files.values()):
        more, theirs = write(model.root)
        # Empty lines before the text, so that a line's number tells of which text it is.
        attached[attached_name(number)] = ("\n" * len(nodes) + more).encode()
        nodes += theirs
    try:
        spec = mujoco.MjSpec.from_string(text, include=attached)
        model = compiled(spec)
    except (ValueError, mujoco.FatalError) as error:
        raise ModelError(explain(str(error), source, nodes)) from None
    return model, dict(_places(spec, source, nodes))


def compiled(spec: mujoco.MjSpec, moving: bool = False) -> mujoco.MjModel:
    """Compile a model, at its total mass if `settotalmass` is set.

    The compiler scales masses before it turns `springdamper` and `dampratio` into stiffness and
    damping, so that `mj_setTotalmass` on the compiled model would leave these wrong.

    Args:
        spec: the model.
        moving: whether only moving bodies count, as in a URDF, where MuJoCo fuses the others with
            the world.
    """
    settings = spec.compiler
    if settings.settotalmass <= 0:
        return spec.compile()
    if moving:
        total, settings.settotalmass = settings.settotalmass, -1
        model = spec.compile()
        counted = model.body_mass[model.body_weldid > 0]
        settings.settotalmass = total * model.body_mass.sum() / counted.sum()
    with warnings.catch_warnings():
        # MuJoCo 4 deprecates the attribute, which is the file's and not ours.
        warnings.filterwarnings("ignore", message="compiler attribute 'settotalmass'")
        return spec.compile()


def _places(
    spec: mujoco.MjSpec, source: ModelSource, nodes: Sequence[Node]
) -> Iterator[tuple[tuple[str, int], str]]:
    """Yield the place of each compiled element in the file.

    An element is found by the line of the written text that MuJoCo remembers for it, or else by its
    name.
    """
    by_name = {
        (node.kind, node.attributes["name"]): node
        for node in source.elements()
        if "name" in node.attributes
    }
    for node in source.root.children:
        if node.tag == "option":
            yield ("option", -1), f" ({node.place})"
    for kind, plural in _PLURALS.items():
        for element in getattr(spec, plural):
            line = re.fullmatch(r"line ([1-9]\d*)", element.info or "")
            found = nodes[int(line[1]) - 1] if line else by_name.get((kind, element.name))
            if found:
                yield (kind, element.id), f" ({found.place})"
