"""Model files in MuJoCo's format (MJCF), read through MuJoCo's own compiler.

What a model asks for is supported, or refused by name, or without effect on its motion; `report`
lists which. See docs/models.md.
"""

import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import mujoco

from brax import plugins
from brax.base import System
from brax.errors import ConfigError, ModelError
from brax.io._arguments import kind
from brax.io.mjcf import custom_elements, sources, support
from brax.io.mjcf.build import build
from brax.io.mjcf.compile import compile_model
from brax.io.mjcf.names import names

MAX_ELEMENTS = 4096
"""The largest number of geoms, of bodies and of replicas that is read unless asked for more."""

_LISTED = (
    "body",
    "joint",
    "geom",
    "pair",
    "site",
    "tendon",
    "actuator",
    "sensor",
    "camera",
    "key",
    "exclude",
    "numeric",
    "tuple",
)


class Finding(NamedTuple):
    """What becomes of one element of a model."""

    element: str
    """Kind, such as 'joint' or 'option'."""
    name: str
    status: Literal["supported", "approximated", "ignored", "refused"]
    reason: str


def load(
    path: str | os.PathLike[str],
    *,
    allow_external_assets: bool = False,
    max_elements: int = MAX_ELEMENTS,
) -> System:
    """Reads a model file.

    Args:
        path: the file.
        allow_external_assets: whether files outside the model's directory may be read.
        max_elements: the largest number of geoms, of bodies and of replicas of anything, allowed.

    Returns:
        The system. Bodies without joints are part of the body that carries them.

    Raises:
        ModelError: naming everything that is wrong or not supported, where it stands.
    """
    source = sources.read_file(path, allow_external_assets)
    model, places = compile_model(source, allow_external_assets, max_elements)
    return build(model, places)


def loads(
    xml: str | bytes,
    asset_path: str | os.PathLike[str] | None = None,
    *,
    allow_external_assets: bool = False,
    max_elements: int = MAX_ELEMENTS,
) -> System:
    """Reads a model from its text.

    Args:
        xml: the text.
        asset_path: directory of the files that it names; a file stands for its directory.
        allow_external_assets: whether files outside that directory may be read.
        max_elements: the largest number of geoms, of bodies and of replicas of anything, allowed.

    Returns:
        The system, as `load`.

    Raises:
        ModelError: as `load`.
    """
    directory = sources.directory_of(asset_path)
    source = sources.read(xml, directory, allow_external_assets)
    model, places = compile_model(source, allow_external_assets, max_elements)
    return build(model, places)


def load_mjmodel(
    path: str | os.PathLike[str],
    *,
    allow_external_assets: bool = False,
    max_elements: int = MAX_ELEMENTS,
) -> mujoco.MjModel:
    """Reads a model file into MuJoCo's own model, with the same checks of the text as `load`."""
    source = sources.read_file(path, allow_external_assets)
    return compile_model(source, allow_external_assets, max_elements)[0]


def load_model(mj: mujoco.MjModel) -> System:
    """Makes a system from MuJoCo's compiled model, which is only read.

    Raises:
        ModelError: naming everything that is not supported.
    """
    _check_model(mj)
    return build(mj, {})


def _check_model(mj: Any) -> None:
    """Refuses what is not MuJoCo's compiled model, with what to do."""
    if isinstance(mj, mujoco.MjModel):
        return
    advice = "read a file with load(path), or with load_mjmodel(path)"
    if isinstance(mj, mujoco.MjSpec):
        advice = "compile it first: spec.compile()"
    elif isinstance(mj, System):
        advice = "a System has been loaded already; its pipeline's report(sys) lists the rest"
    raise ModelError(f"mj must be a mujoco.MjModel, got {kind(mj)}: {advice}")


def validate_model(mj: mujoco.MjModel) -> None:
    """Checks that everything in MuJoCo's compiled model that can change motion is supported.

    Raises:
        ModelError: naming everything that is not.
    """
    load_model(mj)


def report(mj: mujoco.MjModel, backend: str | None = None) -> list[Finding]:
    """Lists what becomes of each element of MuJoCo's compiled model.

    Args:
        mj: the model.
        backend: name of a pipeline, to be told also what that one refuses, or computes in a way
            of its own.

    Returns:
        One line for each body, joint, geom, site, tendon, actuator, sensor, camera, key, exclude
        and custom field, and one for each thing that is approximated, ignored or refused.

    Raises:
        UnknownNameError: if there is no pipeline of that name.
    """
    _check_model(mj)
    pipeline = named_pipeline(backend)
    notes = [
        *support.notes(mj, custom_elements.read_custom(mj)),
        *support.approximations(mj),
    ]
    listed = {each: names(mj, each) for each in {n.kind for n in notes if n.number >= 0}}
    found = [
        Finding(n.kind, listed[n.kind][n.number] if n.number >= 0 else "", n.status, n.reason)
        for n in notes
    ]
    found += [f for f in _refused_by_builder(mj) if f not in found]
    attributes = ("joint", "geom")  # of which a part may be ignored, such as solref
    seen = {
        (f.element, f.name) for f in found if f.status == "refused" or f.element not in attributes
    }
    plain = [
        Finding(each, name, "supported", "")
        for each in _LISTED
        for name in names(mj, each)
        if (each, name) not in seen
    ]
    try:
        return plain + found + of_pipeline(load_model(mj), pipeline)
    except ModelError:
        return plain + found  # it is listed why


def named_pipeline(backend: str | None) -> Any:
    """The pipeline of a name; None for None."""
    if backend is not None and not isinstance(backend, str):
        raise ConfigError(f"backend must be the name of a pipeline, got {kind(backend)}")
    return None if backend is None else plugins.get("pipeline", backend)


def of_pipeline(sys: System, pipeline: Any) -> list[Finding]:
    """Lists what a pipeline says of a system; one of a plugin may say nothing."""
    rows = pipeline.report(sys) if hasattr(pipeline, "report") else []
    return [Finding("model", name, status, reason) for name, status, reason in rows]


def _refused_by_builder(mj: mujoco.MjModel) -> list[Finding]:
    """What only the assembly of the whole model shows, such as a pair without a collider."""
    try:
        load_model(mj)
    except ModelError as error:
        named = re.compile(r"(?:(\w+) '(.*?)':? |(option):? )?(.*)", re.S)
        split = [named.fullmatch(problem) for problem in error.problems]
        return [Finding(m[1] or m[3] or "model", m[2] or "", "refused", m[4]) for m in split if m]
    return []


def _report_file(path: Path, backend: str) -> list[Finding]:
    return report(load_mjmodel(path), backend)


READER = SimpleNamespace(suffixes=(".xml", ".mjcf"), load=load, report=_report_file)
"""The reader as the registry knows it."""
