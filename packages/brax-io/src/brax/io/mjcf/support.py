"""The support table: which contents of a compiled model are refused, and which are ignored.

Each rule names a field of MuJoCo's model and the value at which it has no effect. An unsupported
field with any other value is refused if it can change the motion; otherwise it is listed as
ignored.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

import mujoco
import numpy as np

from brax import plugins
from brax.errors import Reason
from brax.io.mjcf import custom_elements
from brax.io.mjcf.elements import cameras, distances, hulls, keyframes
from brax.io.mjcf.elements.actuators import (
    JOINT_TRANSMISSIONS,
    is_pid_plugin,
    law_problems,
    sees_rate,
)
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
    "joint": (("jnt_springyield", 0, "springyield"),),
    "actuator": (("actuator_delay", 0, "delay"),),
    "tendon": (("tendon_springyield", 0, "springyield of a tendon"),),
}
"""Fields that are not read, with the value at which they have no effect, and a name for messages.

A field that the installed MuJoCo does not have is skipped.
"""

EQUALITIES = ("connect", "weld", "joint", "tendon")
"""The supported types of equality constraints."""

TRANSMISSIONS = (*JOINT_TRANSMISSIONS, "tendon", "site", "slidercrank", "body")
"""The supported transmissions."""

_IGNORED_OPTIONS = {
    "a pipeline has its own solver": (
        "solver",
        "tolerance",
        "ls_tolerance",
        "noslip_iterations",
        "noslip_tolerance",
        "jacobian",
    ),
    "a pipeline has its own collision detection": (
        "ccd_iterations",
        "ccd_tolerance",
        "sdf_iterations",
        "sdf_initpoints",
    ),
    "only a magnetometer reads it, which is not supported": ("magnetic",),
}
"""Options that are not read, by the reason."""

_REFUSED_FLAGS = (
    "refsafe",
    "override",
    "diagexact",
    "ipc",
    "speculative",
)

_IGNORED_FLAGS = {
    "warmstart": "a pipeline has its own solver",
    "island": "a pipeline has its own solver",
    "midphase": "a pipeline has its own collision detection",
    "nativeccd": "a pipeline has its own collision detection",
    "multiccd": "a pipeline has its own collision detection",
    "sleep": "bodies at rest are simulated like all others",
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

_REFUSED_KINDS = {"flex": "deformable bodies are not supported"}


def notes(model: mujoco.MjModel, custom: custom_elements.Custom) -> list[Note]:
    """Return everything in a model that is refused or ignored."""
    collides = can_collide(model)
    found = [
        *_flag_notes(model),
        *_option_notes(model),
        *_table_notes(model),
        *_geom_notes(model, collides),
        *_actuator_notes(model, custom.types["actuator"]),
        *_element_notes(model, custom.types["sensor"]),
        *(Note("camera", c, "ignored", reason) for c, reason in cameras.left_out(model)),
        *(Note("camera", c, "ignored", reason) for c, reason in cameras.ignored_parts(model)),
        *(Note("key", k, "ignored", reason) for k, reason in keyframes.left_out(model, custom)),
        *(Note("key", k, "ignored", reason) for k, reason in keyframes.ignored_parts(model)),
        *(Note(kind, i, "refused", reason) for kind, i, reason in custom.problems),
        *(Note(kind, i, "ignored", reason) for kind, i, reason in custom.unknown),
        *_ignored_numerics(model),
    ]
    return list(dict.fromkeys(found))


def approximations(model: mujoco.MjModel) -> Iterator[Note]:
    """Yield the geoms whose shape is simplified for collisions.

    This takes as long as loading the model, because it computes the convex hulls.
    """
    for i in np.flatnonzero(can_collide(model).any(axis=1)).tolist():
        if less := hulls.left_out(model, i):
            yield Note("geom", i, "approximated", less)


def _flag_notes(model: mujoco.MjModel) -> Iterator[Note]:
    """Yield the flags that differ from the default, except those that are supported."""
    bits = (
        (model.opt.disableflags, mujoco.mjtDisableBit, "disable"),
        (model.opt.enableflags, mujoco.mjtEnableBit, "enable"),
    )
    for value, enum, word in bits:
        for flag in _REFUSED_FLAGS:
            if is_flag_set(value, enum, (flag.upper(),)):
                refusal = Reason.of(f"{flag}='{word}' is not supported", remedy="leave it out")
                yield Note("option", -1, "refused", refusal)
        for flag, reason in _IGNORED_FLAGS.items():
            if is_flag_set(value, enum, (flag.upper(),)):
                yield Note("option", -1, "ignored", f"{flag}='{word}': {reason}")


def _option_notes(model: mujoco.MjModel) -> Iterator[Note]:
    standard = mujoco.MjOption()
    for reason, fields in _IGNORED_OPTIONS.items():
        for field in fields:
            if np.any(getattr(model.opt, field) != getattr(standard, field)):
                yield Note("option", -1, "ignored", f"{field}: {reason}")


def _table_notes(model: mujoco.MjModel) -> Iterator[Note]:
    for kind, rules in _MUST_BE_DEFAULT.items():
        for field, harmless, what in rules:
            for i in _rows_unlike(model, field, harmless):
                yield _unsupported(kind, i, what, harmless)


def _rows_unlike(model: mujoco.MjModel, field: str, harmless: float) -> list[int]:
    table = getattr(model, field, None)
    if table is None or len(table) == 0:
        return []
    unlike = np.asarray(table).reshape(len(table), -1) != harmless
    return np.flatnonzero(unlike.any(axis=1)).tolist()


def _unsupported(kind: str, index: int, what: str, harmless: float) -> Note:
    advice = "take it out" if harmless else "leave it at 0"
    return Note(kind, index, "refused", Reason.of(f"{what} is not supported", remedy=advice))


def _geom_notes(model: mujoco.MjModel, collides: np.ndarray) -> Iterator[Note]:
    known = plugins.names("geometry_type")
    for i, value in enumerate(model.geom_type):
        shape = keyword(mujoco.mjtGeom, value)
        reason = f"a {shape} that can collide is not supported" if shape not in known else ""
        reason = reason or distances.problem(model, i)
        if reason and collides[i].any():
            yield Note("geom", i, "refused", reason)
        elif reason:
            yield Note("geom", i, "ignored", f"a {shape} is not drawn; its mass counts")
    # Within the gap a contact exerts no force of its own, so only adhesion can act there.
    adhesive = any(_rows_unlike(model, f"{kind}_adhesion", 0) for kind in ("geom", "pair"))
    if not adhesive and (model.actuator_trntype != mujoco.mjtTrn.mjTRN_BODY).all():
        for kind in ("geom", "pair"):
            for i in _rows_unlike(model, f"{kind}_gap", 0):
                yield Note(kind, i, "ignored", "gap: only adhesion acts within it")


def _actuator_notes(model: mujoco.MjModel, plugin_types: Mapping[int, str]) -> Iterator[Note]:
    for i, value in enumerate(model.actuator_trntype):
        word = keyword(mujoco.mjtTrn, value)
        if word not in TRANSMISSIONS:
            refusal = Reason.of(f"transmission '{word}' is not supported", TRANSMISSIONS)
            yield Note("actuator", i, "refused", refusal)
        elif word == "body" and sees_rate(model, i):
            what = "adhesion whose force depends on its rate is not supported"
            refusal = Reason.of(what, remedy="give it a motor's")
            yield Note("actuator", i, "refused", refusal)
    for i, plugin in enumerate(model.actuator_plugin):
        if plugin >= 0 and not is_pid_plugin(model, i):
            yield _unsupported("actuator", i, "a plugin's force", -1)
    for i, reason in law_problems(model):
        if i in plugin_types:
            continue
        yield Note("actuator", i, "refused", reason)


def _element_notes(model: mujoco.MjModel, plugin_types: Mapping[int, str]) -> Iterator[Note]:
    for i in range(model.neq):
        what = keyword(mujoco.mjtEq, model.eq_type[i])
        if not model.eq_active0[i]:
            yield Note("equality", i, "ignored", "is not active")
        elif what not in EQUALITIES:
            refusal = Reason.of(f"equality constraint '{what}' is not supported", EQUALITIES)
            yield Note("equality", i, "refused", refusal)
    for kind, reason in _REFUSED_KINDS.items():
        for i in range(count(model, kind)):
            yield Note(kind, i, "refused", reason)
    for i, reason in left_out(model, plugin_types):
        yield Note("sensor", i, "ignored", reason)
    yield from _plugin_notes(model)
    for kind, reason in _WITHOUT_EFFECT.items():
        for i in range(count(model, kind)):
            yield Note(kind, i, "ignored", reason)


def _plugin_notes(model: mujoco.MjModel) -> Iterator[Note]:
    """Yield the instances of plugins; what one moves is refused by its element too."""
    drives = [a for a in range(len(model.actuator_trntype)) if is_pid_plugin(model, a)]
    read = {*model.geom_plugin[can_collide(model).any(axis=1)].tolist()}
    read |= {*model.actuator_plugin[drives].tolist()}
    moving = {*model.body_plugin.tolist(), *model.actuator_plugin.tolist()} - read
    for i in range(count(model, "plugin")):
        if i in moving:
            yield Note("plugin", i, "refused", "MuJoCo's plugins are not supported")
        elif i not in read:
            yield Note("plugin", i, "ignored", "only a sensor, or a geom that cannot collide")


def _ignored_numerics(model: mujoco.MjModel) -> Iterator[Note]:
    for kind, read in (("numeric", model.numeric), ("tuple", model.tuple)):
        for i in range(count(model, kind)):
            if read(i).name in custom_elements.IGNORED_NUMERICS:
                yield Note(kind, i, "ignored", custom_elements.IGNORED_NUMERICS[read(i).name])
