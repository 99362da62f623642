"""Runs MuJoCo's compiler on a checked text."""

import re
from collections.abc import Iterator

import mujoco

from brax.errors import ModelError
from brax.io._mjcf_check import check
from brax.io._mjcf_explain import explain
from brax.io._mjcf_source import Source

_PLURALS = {
    "body": "bodies",
    "joint": "joints",
    "geom": "geoms",
    "camera": "cameras",
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
    source: Source, outside: bool, max_elements: int
) -> tuple[mujoco.MjModel, dict[tuple[str, int], str]]:
    """Checks a model's text and compiles it.

    Args:
        source: the text.
        outside: whether files outside the model's directory may be read.
        max_elements: the largest number of geoms, of bodies and of replicas of anything, allowed.

    Returns:
        MuJoCo's model, and where its elements (kind, id) stand, such as ' (ant.xml:12)'.

    Raises:
        ModelError: with the place, MuJoCo's own words, and what may help.
    """
    check(source, outside, max_elements)
    try:
        spec = _parse(source)
        model = _compile(spec)
    except (ValueError, mujoco.FatalError) as error:
        raise ModelError(explain(str(error), source)) from None
    return model, dict(_places(spec, source))


def _compile(spec: mujoco.MjSpec) -> mujoco.MjModel:
    """Compile, and scale to a total mass as `settotalmass` asks.

    MuJoCo 4 warns that its compiler will not do the latter, and names the functions that do.
    """
    mass, spec.compiler.settotalmass = spec.compiler.settotalmass, -1
    model = spec.compile()
    if mass > 0:
        mujoco.mj_setTotalmass(model, mass)
        mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def _parse(source: Source) -> mujoco.MjSpec:
    if source.path:
        return mujoco.MjSpec.from_file(str(source.path))
    spec = mujoco.MjSpec.from_string(source.text, include=source.included)
    spec.modelfiledir = str(source.directory or "")
    return spec


def _places(spec: mujoco.MjSpec, source: Source) -> Iterator[tuple[tuple[str, int], str]]:
    """Elements are found by their name, else by the line that MuJoCo remembers."""
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
            named = by_name.get((kind, element.name)) if element.name else None
            line = re.fullmatch(r"line ([1-9]\d*)", element.info or "")
            if named:
                yield (kind, element.id), f" ({named.place})"
            elif line:
                yield (kind, element.id), f" ({source.name}:{line[1]})"
