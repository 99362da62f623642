"""The sensors of a compiled model that are read, and why the others are not."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import mujoco
import numpy as np

from brax import plugins
from brax.builder import ModelBuilder
from brax.errors import ModelProblem, closest
from brax.io.mjcf.elements import distances
from brax.io.mjcf.names import Names, disabled, keyword
from brax.sensors import SensorType

_RENAMED = {"jointactfrc": "jointactuatorfrc"}
"""Types whose names in MuJoCo's constants differ from those in files."""

_KINDS = {"xbody": "body", "body": "inertia"}
"""Kinds of measured elements that differ from MuJoCo's, where a body means its inertial frame."""


class Read(NamedTuple):
    """A supported sensor: its type, and the object and reference frame as (kind, name)."""

    type: str
    object: tuple[str, str]
    reference: tuple[str, str] | None


def read_sensor(
    model: mujoco.MjModel, sensor: int, plugin_types: Mapping[int, str], named: Names
) -> Read | str:
    """Return a sensor as the builder takes it, or the reason why it is left out.

    Args:
        model: MuJoCo's model.
        sensor: the sensor's id.
        plugin_types: plugin types of sensors, by id.
        named: the names of the model's elements.
    """
    if disabled(model, "SENSOR"):
        return "only observes; sensors are disabled"
    word = keyword(mujoco.mjtSensor, model.sensor_type[sensor])
    name = plugin_types.get(sensor, _RENAMED.get(word, word))
    if name not in plugins.names("sensor"):
        hint = "; a plugin's type needs a tuple 'sensor:NAME' that lists it" * (name == "user")
        return f"only observes; type '{name}' is not supported{hint}"
    sensor_type = plugins.get("sensor", name)
    if name == "actuatorvel" and _adheres(model, int(model.sensor_objid[sensor])):
        return "only observes; the rate of adhesion is not computed"
    if model.sensor_history[sensor].any() or model.sensor_delay[sensor]:
        return "only observes; a history or delay of a sensor is not supported"
    if model.sensor_dim[sensor] != sensor_type.width:
        if sensor in plugin_types:
            who = plugins.specs("sensor")[name]
            width = sensor_type.width
            return f"its dim is {model.sensor_dim[sensor]}, but the width of {who} is {width}"
        return f"only observes; a sensor of {model.sensor_dim[sensor]} numbers is not supported"
    hidden = _hidden(model, sensor_type, int(model.sensor_objid[sensor]))
    if hidden:
        return f"only observes; {hidden}"
    of, index = model.sensor_objtype[sensor], model.sensor_objid[sensor]
    measured, reference = _object(model, sensor_type, of, index, named), None
    if model.sensor_refid[sensor] >= 0:
        of, index = model.sensor_reftype[sensor], model.sensor_refid[sensor]
        reference = _object(model, sensor_type, of, index, named)
    for each in (measured, reference):
        if isinstance(each, str):
            return f"only observes; {each}"
    assert not isinstance(measured, str) and not isinstance(reference, str)
    return Read(name, measured, reference)


def _adheres(model: mujoco.MjModel, actuator: int) -> bool:
    return bool(model.actuator_trntype[actuator] == mujoco.mjtTrn.mjTRN_BODY)


def _hidden(model: mujoco.MjModel, sensor_type: SensorType, site: int) -> str:
    """Return which shape prevents a sensor that casts rays from working; empty if none does."""
    shapes = list(model.geom_type) if sensor_type.sees_geoms else []
    if sensor_type.sees_site:
        shapes.append(model.site_type[site])
    words = sorted({keyword(mujoco.mjtGeom, shape) for shape in shapes})
    known = plugins.names("geometry_type")
    # A ray would pass through such a shape, and MuJoCo's would not.
    blind = [w for w in words if w not in known or not plugins.get("geometry_type", w).stops_rays]
    return f"a {blind[0]} stops no rays" if blind else ""


def sensors(
    builder: ModelBuilder,
    model: mujoco.MjModel,
    plugin_types: Mapping[int, str],
    places: Mapping[tuple[str, int], str],
) -> None:
    """Add the sensors that are supported; `support` reports the others."""
    named = Names(model)
    for i, name in enumerate(named["sensor"]):
        found = read_sensor(model, i, plugin_types, named)
        if isinstance(found, str):
            # A plugin's sensor was asked for by name, so leaving it out is an error.
            if i in plugin_types:
                why = found.removeprefix("only observes; ")
                known = plugins.names("sensor")
                hint = "" if plugin_types[i] in known else closest(plugin_types[i], known)
                place = places.get(("sensor", i), "")
                builder.add_problem(ModelProblem.of(f"{why}.{hint}", "sensor", name, place))
            continue
        builder.add_sensor(
            found.type,
            found.object,
            name,
            reference=found.reference,
            # MuJoCo's documentation, sensor: a cutoff of 0 means that there is none.
            cutoff=float(model.sensor_cutoff[i]) or np.inf,
            line=places.get(("sensor", i), ""),
        )


def left_out(model: mujoco.MjModel, plugin_types: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    """Yield the sensors that are not read, and why."""
    named = Names(model)
    for i in range(model.nsensor):
        found = read_sensor(model, i, plugin_types, named)
        if isinstance(found, str) and i not in plugin_types:
            yield i, found


def _object(
    model: mujoco.MjModel, sensor_type: object, objtype: int, index: int, named: Names
) -> tuple[str, str] | str:
    """Return the measured object as (kind, name), or the reason why it is not supported."""
    word = keyword(mujoco.mjtObj, objtype)
    kind = _KINDS.get(word, word)
    owns_link = getattr(sensor_type, "own_link", False)
    if owns_link and kind == "inertia":
        kind = "body"
    if kind not in (*getattr(sensor_type, "objects", ()), *(("body",) if owns_link else ())):
        return f"a frame of a {word} is not supported"
    body = {
        "body": lambda: index,
        "inertia": lambda: index,
        "site": lambda: model.site_bodyid[index],
        "geom": lambda: model.geom_bodyid[index],
    }.get(kind, lambda: 0)()
    if owns_link and body > 0 and not model.body_jntnum[body]:
        return "its body has no joints, so it is fused with its parent"
    # The builder adds the inertias of fused bodies, so their separate inertial frames are lost.
    if kind == "inertia" and not _alone(model, body):
        return "the inertia of a body that is fixed to another, or another to it, is not its own"
    if kind == "geom":
        if distances.shape_name(model, index) not in plugins.names("geometry_type"):
            return "its geom is of a shape that is not read"
        if distances.turned(model, index):
            return "its geom is a gear whose alpha is not 0: its frame is turned with it"
    return kind, named["body" if kind == "inertia" else kind][index]


def _alone(model: mujoco.MjModel, body: int) -> bool:
    """Return whether a body has joints and no other body is fused with it."""
    parts = [i for i in range(1, model.nbody) if model.body_weldid[i] == body]
    return parts == [body]
