"""Runs MuJoCo's compiler on a checked text."""

import re
from collections.abc import Iterator

import mujoco

from brax.errors import ModelError
from brax.io._mjcf_explain import explain
from brax.io._mjcf_source import Source

_PLURALS = {
    "body": "bodies",
    "joint": "joints",
    "geom": "geoms",
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


def compile_model(source: Source) -> tuple[mujoco.MjModel, dict[tuple[str, int], str]]:
    """Compiles a model.

    Returns:
        MuJoCo's model, and where its elements (kind, id) stand, such as ' (ant.xml:12)'.

    Raises:
        ModelError: with MuJoCo's own words, the place, and what may help.
    """
    try:
        spec = mujoco.MjSpec.from_string(source.text, include=source.included)
        spec.modelfiledir = str(source.directory or "")
        model = spec.compile()
    except ValueError as error:
        raise ModelError(explain(str(error), source)) from None
    return model, dict(_places(spec, source))


def _places(spec: mujoco.MjSpec, source: Source) -> Iterator[tuple[tuple[str, int], str]]:
    """Elements are found by their name, else by the line that MuJoCo remembers."""
    by_name = {
        (node.kind, node.attributes["name"]): node
        for node in source.elements()
        if "name" in node.attributes
    }
    for kind, plural in _PLURALS.items():
        for element in getattr(spec, plural):
            node = by_name.get((kind, element.name)) if element.name else None
            line = re.fullmatch(r"line ([1-9]\d*)", element.info or "")
            if node:
                yield (kind, element.id), f" ({node.place})"
            elif line:
                yield (kind, element.id), f" ({source.name}:{line[1]})"
