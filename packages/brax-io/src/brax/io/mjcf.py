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
from brax.errors import ModelError
from brax.io import _mjcf_build, _mjcf_custom, _mjcf_rules, _mjcf_source
from brax.io._mjcf_compile import compile_model
from brax.io._mjcf_names import names

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
    source = _mjcf_source.read_file(Path(path), allow_external_assets)
    model, places = compile_model(source, allow_external_assets, max_elements)
    return _mjcf_build.build(model, places)


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
    directory = None if asset_path is None else Path(asset_path)
    if directory is not None and directory.is_file():
        directory = directory.parent
    source = _mjcf_source.read(xml, directory, allow_external_assets)
    model, places = compile_model(source, allow_external_assets, max_elements)
    return _mjcf_build.build(model, places)


def load_mjmodel(
    path: str | os.PathLike[str],
    *,
    allow_external_assets: bool = False,
    max_elements: int = MAX_ELEMENTS,
) -> mujoco.MjModel:
    """Reads a model file into MuJoCo's own model, with the same checks of the text as `load`."""
    source = _mjcf_source.read_file(Path(path), allow_external_assets)
    return compile_model(source, allow_external_assets, max_elements)[0]


def load_model(mj: mujoco.MjModel) -> System:
    """Makes a system from MuJoCo's compiled model, which is only read.

    Raises:
        ModelError: naming everything that is not supported.
    """
    return _mjcf_build.build(mj, {})


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
    pipeline = None if backend is None else plugins.get("pipeline", backend)
    notes = [
        *_mjcf_rules.notes(mj, _mjcf_custom.read(mj)),
        *_mjcf_rules.approximations(mj),
    ]
    listed = {kind: names(mj, kind) for kind in {n.kind for n in notes if n.number >= 0}}
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
        Finding(kind, name, "supported", "")
        for kind in _LISTED
        for name in names(mj, kind)
        if (kind, name) not in seen
    ]
    return plain + found + _of_pipeline(mj, pipeline)


def _of_pipeline(mj: mujoco.MjModel, pipeline: Any) -> list[Finding]:
    """What a pipeline says of a model that can be loaded; a plugin's may have nothing to say."""
    if not hasattr(pipeline, "report"):
        return []
    try:
        sys = load_model(mj)
    except ModelError:
        return []  # listed already
    rows = pipeline.report(sys)
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


FORMAT = SimpleNamespace(suffixes=(".xml", ".mjcf"), load=load, report=_report_file)
"""The reader as the registry knows it."""
