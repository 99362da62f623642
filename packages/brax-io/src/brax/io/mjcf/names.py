"""Names of the elements of a compiled model, in messages and in a `System`."""

from typing import Any

import mujoco
import numpy as np

from brax.builder import WORLD

_COUNT_FIELDS = {
    "body": "nbody",
    "joint": "njnt",
    "geom": "ngeom",
    "site": "nsite",
    "camera": "ncam",
    "light": "nlight",
    "flex": "nflex",
    "skin": "nskin",
    "texture": "ntex",
    "pair": "npair",
    "exclude": "nexclude",
    "equality": "neq",
    "tendon": "ntendon",
    "actuator": "nu",
    "sensor": "nsensor",
    "numeric": "nnumeric",
    "text": "ntext",
    "tuple": "ntuple",
    "key": "nkey",
    "plugin": "nplugin",
}
"""Kinds of element, and the field with their number."""


def count(model: mujoco.MjModel, kind: str) -> int:
    """Return the number of elements of a kind."""
    if kind == "actuator":  # one actuator can have several controls, so nu is not their number
        return len(model.actuator_trntype)
    return int(getattr(model, _COUNT_FIELDS[kind]))


def names(model: mujoco.MjModel, kind: str) -> list[str]:
    """Return the names of all elements of a kind, all different.

    An element without a name gets its kind and number, such as `geom_3`.
    """
    enum = getattr(mujoco.mjtObj, f"mjOBJ_{kind.upper()}")
    given = [mujoco.mj_id2name(model, enum, i) for i in range(count(model, kind))]
    taken, out = {n for n in given if n}, []
    for i, name in enumerate(given):
        name = name or f"{kind}_{i}"
        while not given[i] and name in taken:
            name += "_"
        taken.add(name)
        out.append(name)
    return out


def body_names(model: mujoco.MjModel) -> list[str]:
    """Return the names of the bodies; the world has the builder's name."""
    return [WORLD, *names(model, "body")[1:]]


class Names(dict[str, list[str]]):
    """The names of a model's elements by kind, each kind found once; of bodies, `body_names`."""

    def __init__(self, model: mujoco.MjModel) -> None:
        """Find no names yet."""
        super().__init__()
        self._model = model

    def __missing__(self, kind: str) -> list[str]:
        """Find the names of a kind."""
        self[kind] = body_names(self._model) if kind == "body" else names(self._model, kind)
        return self[kind]


def keyword(enum: Any, value: int) -> str:
    """Return one of MuJoCo's constants as files write it: `mjJNT_HINGE` is 'hinge'."""
    return enum(int(value)).name.split("_", 1)[1].lower()


def keywords(enum: Any) -> list[str]:
    """Return the words that files may use for one of MuJoCo's enumerations."""
    # From 100 on, mjtGeom has shapes that are only drawn, such as arrows.
    return [keyword(enum, v) for v in enum.__members__.values() if int(v) < 100 and "_" in v.name]


def is_flag_set(bits: int, enum: Any, names: tuple[str, ...]) -> bool:
    """Return whether any of the named flags, such as 'CONTACT', is set.

    Flags that the installed MuJoCo does not have are not set.
    """
    known = {k.split("_", 1)[-1]: int(v) for k, v in enum.__members__.items()}
    return any(bits & known.get(name, 0) for name in names)


def joint_q_widths(model: mujoco.MjModel) -> np.ndarray:
    """Return the number of coordinates of each joint."""
    return np.diff(np.append(model.jnt_qposadr, model.nq))


def joint_qd_widths(model: mujoco.MjModel) -> np.ndarray:
    """Return the number of degrees of freedom of each joint."""
    return np.diff(np.append(model.jnt_dofadr, model.nv))


def disabled(model: mujoco.MjModel, *flags: str) -> bool:
    """Return whether any of the named features is disabled."""
    return is_flag_set(model.opt.disableflags, mujoco.mjtDisableBit, flags)


def polynomials(model: mujoco.MjModel, field: str) -> np.ndarray:
    """Return the terms of second and third order of a stiffness or damping, (n, 2).

    They are zero for versions of MuJoCo that have none.
    """
    none = np.zeros((len(getattr(model, field)), 2))
    return np.asarray(getattr(model, f"{field}poly", none))
