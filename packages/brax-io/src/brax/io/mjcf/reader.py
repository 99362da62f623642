"""The functions that users call to read MJCF files and to report on them.

Every element of a model is supported, refused by name, or ignored because it cannot change the
motion. `report` lists which. See docs/models.md.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import mujoco

from brax import plugins
from brax.base import System
from brax.errors import BraxError, ConfigError, ModelError
from brax.io._arguments import kind
from brax.io.mjcf import custom_elements, sources, support
from brax.io.mjcf.build import build
from brax.io.mjcf.compile import compile_model
from brax.io.mjcf.names import names

MAX_ELEMENTS = 4096
"""Default limit on the number of geoms, of bodies and of replicas."""

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
    """The treatment of one element of a model."""

    element: str
    """Kind of the element, such as 'joint' or 'option'."""
    name: str
    status: Literal["supported", "approximated", "ignored", "refused"]
    reason: str


def load(
    path: str | os.PathLike[str],
    *,
    allow_external_assets: bool = False,
    max_elements: int = MAX_ELEMENTS,
) -> System:
    """Read a model file.

    Args:
        path: the file.
        allow_external_assets: whether files outside the model's directory may be read.
        max_elements: maximum number of geoms, of bodies, and of replicas of any other element.

    Returns:
        The system. A body without joints becomes part of its parent.

    Raises:
        ModelError: listing everything that is wrong or not supported, with file and line.
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
    """Read a model from its text.

    Args:
        xml: the text.
        asset_path: directory of the files that it names, or a file in that directory.
        allow_external_assets: whether files outside that directory may be read.
        max_elements: maximum number of geoms, of bodies, and of replicas of any other element.

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
    """Return MuJoCo's own model of a file, after the same checks of the text as in `load`.

    Arguments and errors are those of `load`.
    """
    source = sources.read_file(path, allow_external_assets)
    return compile_model(source, allow_external_assets, max_elements)[0]


def load_model(mj: mujoco.MjModel) -> System:
    """Return the system of MuJoCo's compiled model, which is not changed.

    Raises:
        ModelError: listing everything that is not supported.
    """
    _check_model(mj)
    with _intact():
        return build(mj, {})


@contextlib.contextmanager
def _intact() -> Iterator[None]:
    """Raise `ModelError` for what only a damaged model leads to.

    MuJoCo checks the sizes and indices of a file that it reads, but not all types and numbers.
    """
    try:
        yield
    except BraxError:
        raise
    except (ArithmeticError, LookupError, ValueError) as error:
        raise ModelError(
            f"mj has a type or an index that MuJoCo does not know ({error}): it is damaged; "
            "compile it from its source again"
        ) from error


def _check_model(mj: object) -> None:
    """Raise `ModelError`, with advice, if `mj` is not MuJoCo's compiled model."""
    if isinstance(mj, mujoco.MjModel):
        return
    advice = "read a file with load(path), or with load_mjmodel(path)"
    if isinstance(mj, mujoco.MjSpec):
        advice = "compile it first: spec.compile()"
    elif isinstance(mj, System):
        advice = "a System has been loaded already; its pipeline's report(sys) lists the rest"
    raise ModelError(f"mj must be a mujoco.MjModel, got {kind(mj)}: {advice}")


def validate_model(mj: mujoco.MjModel) -> None:
    """Check that everything in MuJoCo's compiled model that can change motion is supported.

    Raises:
        ModelError: listing everything that is not.
    """
    load_model(mj)


def report(mj: mujoco.MjModel, backend: str | None = None) -> list[Finding]:
    """List how each element of MuJoCo's compiled model is treated.

    Args:
        mj: the model.
        backend: name of a pipeline, to list also what that pipeline refuses or approximates.

    Returns:
        One finding for each body, joint, geom, pair, site, tendon, actuator, sensor, camera, key,
        exclude and custom field, and one for everything that is approximated, ignored or refused.

    Raises:
        UnknownNameError: if there is no pipeline of that name.
    """
    _check_model(mj)
    pipeline = named_pipeline(backend)
    with _intact():
        notes = [
            *support.notes(mj, custom_elements.read_custom(mj)),
            *support.approximations(mj),
        ]
    listed = {each: names(mj, each) for each in {n.kind for n in notes if n.number >= 0}}
    found = [
        Finding(n.kind, listed[n.kind][n.number] if n.number >= 0 else "", n.status, n.reason)
        for n in notes
    ]
    # The builder also raises what is already among the notes.
    found += [f for f in _refused_by_builder(mj) if f not in found]
    attributes = ("joint", "geom")  # supported even if one attribute, such as gap, is ignored
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
        return plain + found  # the reasons are among the findings


def named_pipeline(backend: str | None) -> Any:
    """Return the pipeline with a name; None for None."""
    if backend is not None and not isinstance(backend, str):
        raise ConfigError(f"backend must be the name of a pipeline, got {kind(backend)}")
    return None if backend is None else plugins.get("pipeline", backend)


def of_pipeline(sys: System, pipeline: object) -> list[Finding]:
    """Return the findings of a pipeline about a system.

    A third-party pipeline may have no `report`.
    """
    rows = pipeline.report(sys) if hasattr(pipeline, "report") else []
    return [Finding("model", name, status, reason) for name, status, reason in rows]


def _refused_by_builder(mj: mujoco.MjModel) -> list[Finding]:
    """Return the problems that only the assembled model shows, such as a missing collider."""
    try:
        load_model(mj)
    except ModelError as error:
        return [Finding(p.kind or "model", p.name, "refused", p.reason) for p in error.problems]
    return []


def _report_file(path: Path, backend: str) -> list[Finding]:
    return report(load_mjmodel(path), backend)


READER = SimpleNamespace(suffixes=(".xml", ".mjcf"), load=load, report=_report_file)
"""The reader, as the plugin registry uses it."""
