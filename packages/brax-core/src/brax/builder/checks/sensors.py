"""Checks of described sensors: the measured element exists, and the type can measure it."""

from collections.abc import Iterator, Mapping
from typing import Any

from brax import plugins
from brax.builder.elements import WORLD, Element, ElementsByKind
from brax.errors import ModelProblem, Reason, closest


def sensor(
    sensor: Element, kind: Any, elements: ElementsByKind, widths: Mapping[str, int]
) -> Iterator[ModelProblem]:
    """Yield the problems of a sensor of a known type, over joints of so many coordinates."""
    what, name = sensor.object
    if what not in kind.objects:
        yield sensor.problem(
            Reason.of(f"type '{kind.name}' cannot measure a {what}", allowed=kind.objects)
        )
        return
    if sensor.reference is not None and not kind.relative:
        yield sensor.problem(
            Reason.of(
                f"type '{kind.name}' cannot measure in another frame",
                remedy="leave the reference out",
            )
        )
    missing = False
    # Without a reference the world is one, and always exists.
    for each in (sensor.object, sensor.reference or ("body", WORLD)):
        for problem in _missing(sensor, each, elements):
            missing = True
            yield problem
    # The checks below look these elements up.
    if missing:
        return
    if kind.coordinates and widths.get(name, kind.coordinates[0]) not in kind.coordinates:
        # A joint whose type is unknown has no width here; it has been reported already.
        yield sensor.problem(  # a joint whose type is not known has been reported
            f"joint '{name}' has {widths[name]} coordinates; type '{kind.name}' "
            f"measures joints with {', '.join(map(str, kind.coordinates))}"
        )
    # Only a body with joints is a link; the load on a fused one is not known separately.
    moving = {j.body for j in elements["joint"]}
    if kind.own_link and _body(what, name, elements) not in {*moving, WORLD}:
        yield sensor.problem(
            f"body '{_body(what, name, elements)}' has no joints, so it is part of what "
            f"carries it, and type '{kind.name}' cannot measure it separately"
        )
    seen = [s for s in elements["site"] if kind.sees_site and s.name == name]
    for each in [*seen, *(elements["geom"] if kind.sees_geoms else ())]:
        if not _stops_rays(each.type):
            yield sensor.problem(f"{each} is of type '{each.type}', which has no ray test")
    for each in (sensor.object, sensor.reference):
        if each is not None and each[0] == "inertia" and not _alone(each[1], moving, elements):
            yield sensor.problem(f"the inertia of body '{each[1]}' is not its own: use its frame")


def _stops_rays(name: str) -> bool:
    """Return whether a geometry type is registered and has a ray test."""
    return name in plugins.names("geometry_type") and plugins.get("geometry_type", name).stops_rays


def _missing(
    sensor: Element, thing: tuple[str, str], elements: ElementsByKind
) -> Iterator[ModelProblem]:
    """Yield a problem, with the nearest match, if a measured element does not exist."""
    what, name = thing
    body = what in ("body", "inertia")
    there = [e.name for e in elements["body" if body else what]]
    if name not in there and not (what == "body" and name == WORLD):
        yield sensor.problem(
            f"there is no {'body' if body else what} '{name}'.{closest(name, there)}"
        )


def _body(what: str, name: str, elements: ElementsByKind) -> str:
    """Return the name of the body that an element is on, as it was described."""
    if what != "site":
        return name
    return str(next(s.origin for s in elements["site"] if s.name == name))


def _alone(name: str, moving: set[str], elements: ElementsByKind) -> bool:
    """Return whether a body has joints, and carries no static body that is fused into it."""
    return name in moving and not any(
        b.parent == name and b.name not in moving for b in elements["body"]
    )
