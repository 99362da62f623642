"""MuJoCo's compiled model of a file, as a `System` keeps it."""

import hashlib

import mujoco
import numpy as np

from brax.base import System, flat

_DERIVED = (
    "actuator_acc0",
    "actuator_length0",
    "body_subtreemass",
    "cam_mat0",
    "cam_pos0",
    "cam_poscom0",
    "dof_M0",
    "dof_length",
    "efm0_L",
    "geom_aabb",
    "geom_rbound",
    "qpos_spring",
    "signature",
    "stat",
    "tendon_range",
)
"""Numbers that MuJoCo's compiler derives from others, or that a `System` has under other names."""

_NOT_PHYSICAL = (
    "bvh",
    "light",
    "mat",
    "names_map",
    "npaths",
    "numeric",
    "oct",
    "paths",
    "skin",
    "tex",
    "text",
    "vis",
)
"""First words of the fields that no step depends on, or that became options of the `System`."""

_OPTIONS = ("timestep", "gravity", "wind", "density", "viscosity", "impratio")
"""Options that are leaves of a `System`."""


class FileModel:
    """MuJoCo's compiled model of the file that a system came from.

    It is static in a `System`. Two are equal if they differ only in numbers that a `System` has as
    leaves, or that MuJoCo derives from those. So systems of files that differ in masses only can be
    stacked, and share compiled programs.

    Attributes:
        model: MuJoCo's model, a copy that nothing changes.
        system: the system that was made of it, without this object.
    """

    def __init__(self, model: mujoco.MjModel, system: System) -> None:
        """Keep a copy of a model.

        Args:
            model: MuJoCo's model.
            system: the system that was made of it.
        """
        self.model = model.__copy__()
        self.system = system
        self._key = _structure(model)

    @property
    def name(self) -> str:
        """Name of the model in its file."""
        # All names of a model are in one text; the model's own is the first.
        return self.model.names.partition(b"\0")[0].decode()

    def __eq__(self, other: object) -> bool:
        """Return whether another model has the same structure."""
        return isinstance(other, FileModel) and self._key == other._key

    def __hash__(self) -> int:
        """Return the hash of the structure."""
        return hash(self._key)

    def __repr__(self) -> str:
        """Return the number of bodies, without the arrays."""
        return f"FileModel(nbody={self.model.nbody})"


def _structure(model: mujoco.MjModel) -> bytes:
    """Return a digest of everything in a model but the numbers that a `System` has as leaves."""
    digest = hashlib.sha256()
    skipped = {*flat.NAMES, *_DERIVED, "opt"}
    for owner, names in ((model, dir(model)), (model.opt, dir(model.opt))):
        for name in names:
            if name.startswith("_") or name in skipped or name.split("_")[0] in _NOT_PHYSICAL:
                continue
            if owner is model.opt and name in _OPTIONS:
                continue
            digest.update(_bytes(name, getattr(owner, name)))
    return digest.digest()


def _bytes(name: str, value: object) -> bytes:
    """Return a field's name and value; nothing for methods."""
    if isinstance(value, np.ndarray):
        return name.encode() + str(value.shape).encode() + value.tobytes()
    return f"{name}={value!r}".encode() if isinstance(value, int | float | bytes) else b""
