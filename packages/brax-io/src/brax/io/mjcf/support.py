"""What a compiled model asks for that would change its motion and is not supported.

Each rule names a field of MuJoCo's model and the value at which it changes nothing. What can
change motion is refused; what cannot is accepted and listed as ignored.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import mujoco
import numpy as np

from brax import plugins
from brax.io.mjcf import custom_elements
from brax.io.mjcf.elements import cameras, hulls, keyframes
from brax.io.mjcf.elements.actuators import law_problems, sees_rate
from brax.io.mjcf.elements.collision_filter import can_collide
from brax.io.mjcf.elements.sensors import left_out
from brax.io.mjcf.names import count, is_flag_set, keyword


class Note(NamedTuple):
    """A remark about one element; `number` is -1 for the model as a whole."""

    kind: str
    number: int
    status: Literal["supported", "approximated", "ignored", "refused"]
    reason: str


_MUST_BE_DEFAULT = {
    "body": (("body_plugin", -1, "a plugin's force"),),
    "joint": (
        ("jnt_stiffnesspoly", 0, "polynomial stiffness"),
        ("jnt_springyield", 0, "springyield"),
    ),
    "geom": (
        ("geom_adhesion", 0, "adhesion"),
        ("geom_surfacevel", 0, "surfacevel"),
        ("geom_plugin", -1, "a plugin's shape"),
    ),
    "pair": (
        ("pair_solreffriction", 0, "solreffriction"),
        ("pair_adhesion", 0, "adhesion"),
    ),
    "actuator": (
        ("actuator_plugin", -1, "a plugin's force"),
        ("actuator_damping", 0, "damping of an actuator"),
        ("actuator_dampingpoly", 0, "polynomial damping of an actuator"),
        ("actuator_armature", 0, "armature of an actuator"),
        ("actuator_delay", 0, "delay"),
    ),
    "tendon": (
        ("tendon_stiffnesspoly", 0, "polynomial stiffness of a tendon"),
        ("tendon_dampingpoly", 0, "polynomial damping of a tendon"),
        ("tendon_springyield", 0, "springyield of a tendon"),
        ("tendon_armature", 0, "armature of a tendon"),
        ("tendon_actfrclimited", 0, "actuatorfrcrange of a tendon"),
    ),
}
"""Fields that are read nowhere: they must have the value at which they change nothing.

A field that the installed MuJoCo does not have is passed over. Geoms only count if they can touch.
"""

EQUALITIES = ("connect", "weld", "joint", "tendon")
"""What may be tied."""

JOINT_TRANSMISSIONS = ("joint", "jointinparent")
"""Transmissions by a joint; on one with one degree of freedom they are the same."""

TRANSMISSIONS = (*JOINT_TRANSMISSIONS, "tendon", "site", "body")
"""Transmissions that are supported."""

_DOF = (("dof_dampingpoly", 0, "polynomial damping"),)

_SOLVER = (
    "solver",
    "tolerance",
    "ls_tolerance",
    "noslip_iterations",
    "jacobian",
)

_REFUSED_FLAGS = (
    "actuation",
    "filterparent",
    "refsafe",
    "override",
    "sleep",
    "diagexact",
    "ipc",
    "speculative",
)

_IGNORED_FLAGS = {
    "warmstart": "a pipeline has a solver of its own",
    "island": "a pipeline has a solver of its own",
    "midphase": "a pipeline finds contacts in its own way",
    "nativeccd": "a pipeline finds contacts in its own way",
    "multiccd": "a pipeline finds contacts in its own way",
    "autoreset": "no pipeline resets a state",
    "sensor": "no sensor is read",
    "energy": "only observes",
    "fwdinv": "only observes",
    "invdiscrete": "only observes",
}

_WITHOUT_EFFECT = {
    "light": "the viewer has its own",
    "text": "only informs",
    "texture": "its mean colour is drawn, its picture is not",
    "skin": "only drawn by MuJoCo",
}

_REFUSED_KINDS = {
    "flex": "deformable bodies are not supported",
    "plugin": "MuJoCo's plugins are not supported",
}


def notes(model: mujoco.MjModel, custom: custom_elements.Custom) -> list[Note]:
    """Everything in a model that is refused or ignored."""
    meets = can_collide(model)
    found = [
        *_flag_notes(model),
        *_option_notes(model),
        *_table_notes(model, meets.any(axis=1)),
        *_geom_notes(model, meets),
        *_actuator_notes(model, custom.types["actuator"]),
        *_element_notes(model, custom.types["sensor"]),
        *(Note("camera", c, "ignored", reason) for c, reason in cameras.left_out(model)),
        *(Note("key", k, "ignored", reason) for k, reason in keyframes.left_out(model, custom)),
        *(Note("key", k, "ignored", reason) for k, reason in keyframes.poses_left_out(model)),
        *(Note(kind, i, "refused", reason) for kind, i, reason in custom.problems),
        *(Note(kind, i, "ignored", reason) for kind, i, reason in custom.unknown),
        *_ignored_numerics(model),
    ]
    return list(dict.fromkeys(found))


def approximations(model: mujoco.MjModel) -> Iterator[Note]:
    """Geoms that can touch and whose shape is simplified; finding them takes as long as loading."""
    for i in np.flatnonzero(can_collide(model).any(axis=1)).tolist():
        if less := hulls.left_out(model, i):
            yield Note("geom", i, "approximated", less)


def _flag_notes(model: mujoco.MjModel) -> Iterator[Note]:
    """Flags that are not as they are by default, but for those that are read."""
    bits = (
        (model.opt.disableflags, mujoco.mjtDisableBit, "disable"),
        (model.opt.enableflags, mujoco.mjtEnableBit, "enable"),
    )
    for value, enum, word in bits:
        for flag in _REFUSED_FLAGS:
            if is_flag_set(value, enum, (flag.upper(),)):
                reason = f"{flag}='{word}' is not supported; leave it out"
                yield Note("option", -1, "refused", reason)
        for flag, reason in _IGNORED_FLAGS.items():
            if is_flag_set(value, enum, (flag.upper(),)):
                yield Note("option", -1, "ignored", f"{flag}='{word}': {reason}")


def _option_notes(model: mujoco.MjModel) -> Iterator[Note]:
    standard = mujoco.MjOption()
    for field in _SOLVER:
        if getattr(model.opt, field) != getattr(standard, field):
            yield Note("option", -1, "ignored", f"{field}: a pipeline has a solver of its own")


def _table_notes(model: mujoco.MjModel, active: Any) -> Iterator[Note]:
    for kind, rules in _MUST_BE_DEFAULT.items():
        for field, harmless, what in rules:
            for i in _rows_unlike(model, field, harmless):
                if kind != "geom" or active[i]:
                    yield _leave(kind, i, what, harmless)
    if np.any(model.body_gravcomp):
        for j in _rows_unlike(model, "jnt_actgravcomp", 0):
            yield _leave("joint", j, "actuatorgravcomp", 0)
    for field, harmless, what in _DOF:
        for dof in _rows_unlike(model, field, harmless):
            yield _leave("joint", int(model.dof_jntid[dof]), what, harmless)


def _rows_unlike(model: mujoco.MjModel, field: str, harmless: float) -> list[int]:
    table = getattr(model, field, None)
    if table is None or len(table) == 0:
        return []
    unlike = np.asarray(table).reshape(len(table), -1) != harmless
    return np.flatnonzero(unlike.any(axis=1)).tolist()


def _leave(kind: str, index: int, what: str, harmless: float) -> Note:
    advice = "take it out" if harmless else "leave it at 0"
    return Note(kind, index, "refused", f"{what} is not supported; {advice}")


def _geom_notes(model: mujoco.MjModel, meets: np.ndarray) -> Iterator[Note]:
    known = plugins.names("geometry_type")
    for i, value in enumerate(model.geom_type):
        shape = keyword(mujoco.mjtGeom, value)
        if shape not in known and meets[i].any():
            yield Note("geom", i, "refused", f"a {shape} that can touch is not supported")
        elif shape not in known:
            yield Note("geom", i, "ignored", f"a {shape} is not drawn; its mass counts")
    if (model.actuator_trntype != mujoco.mjtTrn.mjTRN_BODY).all():
        for kind in ("geom", "pair"):
            for i in _rows_unlike(model, f"{kind}_gap", 0):
                yield Note(kind, i, "ignored", "gap: only adhesion reaches over it")


def _actuator_notes(model: mujoco.MjModel, own: Mapping[int, str]) -> Iterator[Note]:
    for i, value in enumerate(model.actuator_trntype):
        word = keyword(mujoco.mjtTrn, value)
        if word not in TRANSMISSIONS:
            reason = f"transmission '{word}' is not supported; allowed: {', '.join(TRANSMISSIONS)}"
            yield Note("actuator", i, "refused", reason)
        elif word == "body" and sees_rate(model, i):
            reason = "adhesion whose force depends on its rate is not supported; give it a motor's"
            yield Note("actuator", i, "refused", reason)
    for i, reason in law_problems(model):
        if i in own:
            continue
        yield Note("actuator", i, "refused", reason)


def _element_notes(model: mujoco.MjModel, own: Mapping[int, str]) -> Iterator[Note]:
    for i in range(model.neq):
        what = keyword(mujoco.mjtEq, model.eq_type[i])
        if not model.eq_active0[i]:
            yield Note("equality", i, "ignored", "is not active")
        elif what not in EQUALITIES:
            allowed = ", ".join(EQUALITIES)
            reason = f"equality constraint '{what}' is not supported; allowed: {allowed}"
            yield Note("equality", i, "refused", reason)
    for kind, reason in _REFUSED_KINDS.items():
        for i in range(count(model, kind)):
            yield Note(kind, i, "refused", reason)
    for i, reason in left_out(model, own):
        yield Note("sensor", i, "ignored", reason)
    for kind, reason in _WITHOUT_EFFECT.items():
        for i in range(count(model, kind)):
            yield Note(kind, i, "ignored", reason)


def _ignored_numerics(model: mujoco.MjModel) -> Iterator[Note]:
    for kind, read in (("numeric", model.numeric), ("tuple", model.tuple)):
        for i in range(count(model, kind)):
            if read(i).name in custom_elements.IGNORED_NUMERICS:
                yield Note(kind, i, "ignored", custom_elements.IGNORED_NUMERICS[read(i).name])
