"""Finds MJX's model of a `System`, with the numbers that the system has now.

A system from a file has MuJoCo's model of it. The numbers that differ from the file's, or are
traced, are written over those of the model, so that they can be randomized and differentiated.
Another system is converted, for which its numbers must be known.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np

from brax.base import System
from brax.errors import BraxError, ModelError
from brax.io.mjcf.file_model import FileModel
from brax.mjx.conversion import CONES, INTEGRATORS, lacking, mujoco_model
from brax.mjx.numbers import changed_paths, file_bodies, with_numbers

_FREE_OPTIONS = (
    "cone",
    "eulerdamp",
    "iterations",
    "ls_iterations",
    "sweeps",
    "max_geom_pairs",
    "max_contact_points",
)
"""Static options that may differ from those of the file: MuJoCo has them too, or they belong to
other pipelines."""


def library() -> Any:
    """Return the module `mujoco.mjx`.

    Raises:
        BraxError: if it is not installed.
    """
    try:
        from mujoco import mjx
    except ImportError:
        raise BraxError("the pipeline 'mjx' needs MJX: pip install 'brax-io[mjx]'") from None
    return mjx


def problems(sys: System) -> list[str]:
    """Return what MJX, or the conversion, does not have, one sentence each."""
    if not has_file_model(sys):
        return list(lacking(sys))
    found = ["Option.time_of_impact is not translated"] if sys.opt.time_of_impact else []
    model = sys.file_model.model
    asked = [name for name in _PERHAPS_NOT_IN_MJX if np.any(getattr(model, name, 0))]
    known = {f.name for f in dataclasses.fields(library().Model)} if asked else set()
    unknown = [name for name in asked if name not in known]
    return found + [f"MJX does not compute {_PERHAPS_NOT_IN_MJX[n]} ({n})" for n in unknown]


_PERHAPS_NOT_IN_MJX = {
    "geom_adhesion": "adhesion of geoms",
    "pair_adhesion": "adhesion of pairs",
    "jnt_stiffnesspoly": "polynomial stiffness of joints",
    "dof_dampingpoly": "polynomial damping of joints",
    "tendon_stiffnesspoly": "polynomial stiffness of tendons",
    "tendon_dampingpoly": "polynomial damping of tendons",
    "actuator_dampingpoly": "polynomial damping of actuators",
    "geom_surfacevel": "moving surfaces of geoms",
    "actuator_damping": "damping of actuators",
    "actuator_armature": "armature of actuators",
}
"""Fields of MuJoCo's model that some versions of MJX do not have, and would ignore."""


def mjx_model(sys: System) -> Any:
    """Return MJX's model of a system.

    Raises:
        BraxError: if mujoco-mjx is not installed.
        ModelError: listing everything that MJX, or the conversion, does not support.
    """
    leaves, structure = jax.tree.flatten(sys)
    if not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        # Bytes are hashable, so equal systems share one entry of the cache.
        arrays = [np.asarray(leaf) for leaf in leaves]
        return _known(structure, tuple((a.dtype.str, a.shape, a.tobytes()) for a in arrays))
    if not has_file_model(sys):
        raise ModelError(
            "mjx: the numbers of a system that is not from a file must be known when the program "
            "is compiled: close over the system, and do not randomize it"
        )
    return _from_file(sys)


@functools.lru_cache(maxsize=16)
def _known(structure: object, leaves: tuple[tuple[str, tuple[int, ...], bytes], ...]) -> Any:
    arrays = [np.frombuffer(data, kind).reshape(shape) for kind, shape, data in leaves]
    sys = jax.tree.unflatten(structure, arrays)
    # Within a traced function the model's arrays would become tracers.
    with jax.ensure_compile_time_eval():
        if has_file_model(sys):
            return _from_file(sys)
        return _put(mujoco_model(sys))


def _put(model: mujoco.MjModel) -> Any:
    """Return a model as MJX has it."""
    try:
        return library().put_model(model)
    except NotImplementedError as error:
        raise ModelError(f"mjx: MJX does not have it: {error}") from None


def link_bodies(sys: System) -> np.ndarray:
    """Return MuJoCo's number of the body of each link, shape (n_links,)."""
    if has_file_model(sys):
        return file_bodies(sys)
    return np.arange(sys.num_links()) + 1


def geom_links(sys: System, model: Any) -> jax.Array:
    """Return the link of each of MuJoCo's geoms, -1 for the world, shape (n_geoms,).

    Args:
        sys: the system.
        model: MJX's model of it.
    """
    # The bodies of a converted model are the world and the links.
    links = sys.geom_link if has_file_model(sys) else np.asarray(model.geom_bodyid) - 1
    return jnp.array(links, int)


def has_file_model(sys: System) -> bool:
    """Return whether a system has MuJoCo's model of its file, and still has its structure."""
    if not isinstance(sys.file_model, FileModel) or sys.integrator.name not in INTEGRATORS:
        return False
    original = sys.file_model.system
    options = {name: getattr(original.opt, name) for name in _FREE_OPTIONS}
    plain = sys.replace(
        file_model=None, integrator=original.integrator, opt=sys.opt.replace(**options)
    )
    structures: list[Any] = [jax.tree.structure(each) for each in (plain, original)]
    return bool(structures[0] == structures[1])


def _from_file(sys: System) -> Any:
    """Return MJX's model of the file of a system, with the numbers of the system."""
    if found := problems(sys):
        raise ModelError.of([f"mjx: {problem}" for problem in found])
    now, original = sys.opt, sys.file_model.system.opt
    counts = [
        None if getattr(now, name) == getattr(original, name) else getattr(now, name)
        for name in ("iterations", "ls_iterations")
    ]
    model, reference = _of_file(
        sys.file_model, CONES[now.cone], INTEGRATORS[sys.integrator.name], now.eulerdamp, *counts
    )
    return with_numbers(model, sys, changed_paths(sys, reference))


@functools.lru_cache(maxsize=16)
def _of_file(
    file: FileModel,
    cone: object,
    integrator: object,
    eulerdamp: bool,
    iterations: int | None,
    ls_iterations: int | None,
) -> tuple[Any, System]:
    """Return MJX's model of a file, and the system with the same numbers.

    The file may be another one of the same structure.
    """
    model = file.model.__copy__()
    model.opt.cone, model.opt.integrator = cone, integrator
    # The numbers of iterations of a system are for its own solver, unless the user changed them.
    model.opt.iterations = iterations or model.opt.iterations
    model.opt.ls_iterations = ls_iterations or model.opt.ls_iterations
    flag = int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    model.opt.disableflags = int(model.opt.disableflags) & ~flag | (0 if eulerdamp else flag)
    with jax.ensure_compile_time_eval():
        return _put(model), file.system
