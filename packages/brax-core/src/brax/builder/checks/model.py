"""Checks of a described model: each problem is one sentence that names its element."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from brax.builder.checks import tendon_paths as path_checks
from brax.builder.elements import (
    CAMERA_MODES,
    OPTION,
    WORLD,
    Element,
    ElementsByKind,
    per_dof,
)
from brax.errors import ModelProblem, Reason, closest

CONES = ("pyramidal", "elliptic")

_LARGEST = float(np.finfo(np.float32).max)
"""The largest number that is finite in JAX's default precision."""

Kinds = Sequence[Any]


def names(elements: ElementsByKind) -> Iterator[ModelProblem]:
    """Yield names given twice, references to names that nothing has, and bodies out of order."""
    yield from _order(elements["body"])
    for kind, given in elements.items():
        if kind != "body":  # `_order` reports these
            yield from _duplicates(given)
    yield from _carriers(elements)
    there = {kind: [e.name for e in given] for kind, given in elements.items()}
    there["body"].append(WORLD)
    for pair in elements["pair"]:
        for geom in (pair.geom1, pair.geom2):
            yield from _missing(pair, "geom", geom, there["geom"])
    for camera in elements["camera"]:
        yield from _camera(camera, there["body"])
    for equality in elements["equality"]:
        yield from _equality_ends(equality, there)
    for actuator in elements["actuator"]:
        yield from _driven(actuator, there)
    for tendon in elements["tendon"]:
        yield from path_checks.route(tendon, there)
        for name in tendon.joints:
            yield from _missing(tendon, "joint", name, there["joint"])


def _duplicates(elements: Sequence[Element]) -> Iterator[ModelProblem]:
    """Yield a problem for each name that several elements of a kind have."""
    given = [e.name for e in elements]
    twice = {e.name: e for e in elements if given.count(e.name) > 1}
    for element in twice.values():
        yield element.problem(f"there is another {element.kind} of that name")


def _carriers(elements: ElementsByKind) -> Iterator[ModelProblem]:
    """Yield the problems of mocap bodies, and of elements on bodies that do not exist or move."""
    jointed = {j.body for j in elements["joint"]}
    for body in elements["body"]:
        if body.mocap and (body.parent != WORLD or body.name in jointed):
            yield body.problem("a mocap body must be a child of the world, without joints")
    known = {WORLD, *(b.name for b in elements["body"])}
    for kind in ("joint", "geom", "site", "camera"):
        for element in elements[kind]:
            if element.body not in known:
                yield element.problem(
                    f"there is no body '{element.body}'.{closest(element.body, known)}"
                )
            elif kind == "joint" and element.body == WORLD:
                yield element.problem("the world does not move; give the joint to a body")


def _driven(actuator: Element, there: Mapping[str, Sequence[str]]) -> Iterator[ModelProblem]:
    """Yield a problem unless an actuator drives exactly one element, which exists."""
    driven = [key for key in ("joint", "tendon", "site", "body") if actuator.values[key]]
    if len(driven) != 1:
        yield actuator.problem(
            "it needs a joint to drive, a tendon to pull, a site to act on or a "
            "body that adheres, one of them"
        )
    for key in driven:
        yield from _missing(actuator, key, actuator.values[key], there[key])
    if actuator.refsite and "site" not in driven:
        yield actuator.problem("it has a refsite, but no site to act on")
    elif actuator.refsite:
        yield from _missing(actuator, "site", actuator.refsite, there["site"])


def _missing(
    element: Element, kind: str, name: str, there: Sequence[str]
) -> Iterator[ModelProblem]:
    """Yield a problem, with the nearest match, if nothing has a name."""
    if name not in there:
        yield element.problem(f"there is no {kind} '{name}'.{closest(name, there)}")


def _camera(camera: Element, bodies: Sequence[str]) -> Iterator[ModelProblem]:
    """Yield the problems of a camera: an unknown mode, a missing target, a wrong angle of view."""
    if camera.mode not in CAMERA_MODES:
        hint = f".{closest(camera.mode, CAMERA_MODES)}"
        yield camera.problem(Reason.of(f"mode is '{camera.mode}'", CAMERA_MODES, hint=hint))
    elif camera.mode.startswith("target"):
        yield from _missing(camera, "body", camera.target, bodies)
    if not 0 < camera.fovy < 180:
        yield camera.problem(f"fovy must lie between 0 and 180 degrees, got {camera.fovy}")


def _equality_ends(equality: Element, there: Mapping[str, Sequence[str]]) -> Iterator[ModelProblem]:
    """Yield the problems of an equality's two elements; a coupling may have only one."""
    kind = {"connect": "body", "weld": "body"}.get(equality.type, equality.type)
    if equality.type not in ("connect", "weld", "joint", "tendon"):
        yield equality.problem(f"it couples 'joint' or 'tendon', not '{kind}'")
        return
    yield from _missing(equality, kind, equality.first, there[kind])
    if equality.second or kind == "body":
        yield from _missing(equality, kind, equality.second, there[kind])
    if equality.first == equality.second:
        yield equality.problem(f"it constrains {kind} '{equality.first}' to itself")


def _order(bodies: Sequence[Element]) -> Iterator[ModelProblem]:
    """Yield the problems of the tree: cycles, missing parents, children before parents."""
    seen, parents = {WORLD}, {b.name: b.parent for b in bodies}
    for body in bodies:
        # Elsewhere an empty name stands for no body.
        if not body.name:
            yield body.problem("it needs a name")
        if body.name in seen:
            yield body.problem("there is another body of that name")
        # Follow the parents up to the world, to a missing one, or to one that was visited: a cycle.
        chain = [body.name]
        while chain[-1] in parents and parents[chain[-1]] not in chain:
            chain.append(parents[chain[-1]])
        if parents.get(chain[-1]) == body.name:
            yield body.problem(f"it carries itself: {' on '.join([*chain, body.name])}")
        elif body.parent not in {WORLD, *parents}:
            yield body.problem(
                f"its parent '{body.parent}' does not exist.{closest(body.parent, seen)}"
            )
        elif body.parent not in seen:
            yield body.problem(f"its parent '{body.parent}' comes after it")
        seen.add(body.name)


def option(o: dict[str, Any]) -> Iterator[ModelProblem]:
    """Yield the problems of the options of the simulation."""
    for key, allowed in (
        ("timestep", "> 0"),
        ("impratio", "> 0"),
        ("density", ">= 0"),
        ("viscosity", ">= 0"),
    ):
        low = o[key] >= 0 if allowed == ">= 0" else o[key] > 0
        if not (low and o[key] < np.inf):
            yield OPTION.problem(f"{key} must be {allowed}, got {o[key]}")
    if o["cone"] not in CONES:
        hint = f".{closest(str(o['cone']), CONES)}"
        yield OPTION.problem(Reason.of(f"cone is '{o['cone']}'", CONES, hint=hint))
    for key in ("iterations", "ls_iterations", "sweeps"):
        if not (isinstance(o[key], int) and o[key] > 0):
            yield OPTION.problem(f"{key} must be a number of steps, got {o[key]!r}")
    for key in ("max_geom_pairs", "max_contact_points"):
        if not (isinstance(o[key], int) and o[key] >= 0):
            yield OPTION.problem(
                f"{key} must be a whole number, 0 for as many as it takes, got {o[key]!r}"
            )
    for key in ("vel_damping", "ang_damping"):
        if not o[key] <= 0:
            yield OPTION.problem(
                f"{key} is a rate of growth and must be <= 0 to damp, got {o[key]}"
            )
    if not 0 <= o["baumgarte_erp"] <= 1:
        yield OPTION.problem(f"baumgarte_erp must lie in [0, 1], got {o['baumgarte_erp']}")


def body(body: Element) -> Iterator[ModelProblem]:
    """Yield the problems of a body as it was described; one without joints may have no mass."""
    if not 0 <= body.mass <= _LARGEST:
        yield body.problem(f"mass must be >= 0 and finite in single precision, got {body.mass}")
    if not np.isfinite(body.gravcomp):
        yield body.problem(f"gravcomp is not finite: {body.gravcomp}")
    a, b, c = sorted(body.inertia.tolist())
    if not 0 <= a <= c <= _LARGEST:
        yield body.problem(
            f"principal moments must be >= 0 and finite in single precision, "
            f"got {body.inertia.tolist()}"
        )
    # The triangle inequality of principal moments holds for every distribution of mass. The
    # tolerance allows for the rounding of numbers in model files.
    elif a + b < c * (1 - 1e-6):
        yield body.problem(
            f"principal moments {body.inertia.tolist()} are no "
            "body's: the two smaller must add up to at least the largest"
        )


def link(link: Element, types: Kinds) -> Iterator[ModelProblem]:
    """Yield the problems of a body with joints, together with the bodies fused into it."""
    if link.mass == 0:
        yield link.problem("mass must be > 0, for it has joints, got 0.0")
    if min(link.inertia) == 0:
        yield link.problem(
            f"principal moments must be > 0, for it has joints, got {link.inertia.tolist()}"
        )
    if len(types) > 1 and any(t.is_free for t in types):
        yield link.problem("a joint with six degrees of freedom must be its only joint")
    if sum(t.qd_width for t in types) > 6:
        yield link.problem(f"it has {sum(t.qd_width for t in types)} degrees of freedom; at most 6")
    if any(t.is_free for t in types) and link.parent != WORLD:
        yield link.problem("a free joint is only allowed on a child of the world")


def joint(joint: Element, kind: Any) -> Iterator[ModelProblem]:
    """Yield the problems of a joint of a known type."""
    for key in ("stiffness", "springref", "damping", "armature", "frictionloss", "ref"):
        value, signed = per_dof(joint, key, kind), key in ("springref", "ref")
        if not np.isfinite(value).all() or (not signed and (value < 0).any()):
            yield joint.problem(
                f"{key} must be one number or {kind.qd_width}, finite"
                f"{'' if signed else ' and >= 0'}, got {joint.values[key]}"
            )
        # `ref` and `springref` are subtracted from coordinates, which quaternions do not allow.
        unfit = not kind.is_plain if signed else kind.is_free and key == "stiffness"
        if unfit and (value != 0).any():
            yield joint.problem(
                f"{key} is not supported on a joint of type '{kind.name}'; leave it 0"
            )
    if not np.isfinite(joint.margin):
        yield joint.problem(f"margin is not finite: {joint.margin}")
    if joint.range is not None and kind.is_free:
        yield joint.problem(f"a joint of type '{kind.name}' cannot be limited")
    elif joint.range is not None and not kind.is_plain and joint.range[0] != 0:
        yield joint.problem(
            f"the range of a '{kind.name}' bounds its whole angle, so it must begin "
            f"at 0, got {joint.range}"
        )
    if len(joint.user) < kind.user_width:
        yield joint.problem(
            f"type '{kind.name}' needs {kind.user_width} user numbers, got {len(joint.user)}"
        )
    # A ball joint whose whole angle is bounded by 0 is at its bound in one pose only, as in MuJoCo.
    yield from _bounds(joint, "range", strict=kind.is_plain)
    if joint.actuator_range is not None and kind.qd_width != 1:
        yield joint.problem("actuator_range needs a joint with one degree of freedom")
    yield from _bounds(joint, "actuator_range", strict=False)


def tendon(tendon: Element, widths: Mapping[str, int]) -> Iterator[ModelProblem]:
    """Yield the problems of a tendon over joints of so many degrees of freedom."""
    if not (tendon.joints or tendon.path):
        yield tendon.problem("it needs joints or a path of sites")
    if tendon.joints and tendon.path:
        yield tendon.problem("it runs over joints or along a path, not both")
    for joint, coef in tendon.joints.items():
        yield from _one_dof(tendon, joint, widths, "a tendon runs over joints with one")
        if not np.isfinite(coef):
            yield tendon.problem(f"the weight of joint '{joint}' is not finite: {coef}")
    for key in ("stiffness", "damping", "armature", "frictionloss"):
        if not 0 <= tendon.values[key] < np.inf:
            yield tendon.problem(f"{key} must be finite and >= 0, got {tendon.values[key]}")
    if not np.isfinite(tendon.margin):
        yield tendon.problem(f"margin is not finite: {tendon.margin}")
    yield from _bounds(tendon, "lengthspring", strict=False)
    yield from _bounds(tendon, "range", strict=True)
    yield from _bounds(tendon, "actuator_range", strict=False)


def equality(equality: Element, widths: Mapping[str, int]) -> Iterator[ModelProblem]:
    """Yield the problems of an equality of joints of so many degrees of freedom."""
    if equality.type == "joint":
        for joint in filter(None, (equality.first, equality.second)):
            yield from _one_dof(equality, joint, widths, "an equality couples joints with one")
    elif equality.type == "weld" and not np.isfinite(equality.torquescale):
        yield equality.problem(f"torquescale must be finite, got {equality.torquescale}")


def _one_dof(
    element: Element, joint: str, widths: Mapping[str, int], why: str
) -> Iterator[ModelProblem]:
    """Yield a problem if a joint has several degrees of freedom."""
    # A joint that does not exist, or has no known type, is reported elsewhere.
    width = widths.get(joint, 1)
    if width != 1:
        yield element.problem(f"joint '{joint}' has {width} degrees of freedom; {why}")


def actuator(actuator: Element, kind: Any, joints: Mapping[str, object]) -> Iterator[ModelProblem]:
    """Yield the problems of an actuator of a known type, given the joints' types."""
    yield from _direction(actuator, joints.get(actuator.joint))
    if not np.isfinite(actuator.gear):
        yield actuator.problem(f"its gear is not finite: {actuator.gear}")
    if not kind.stateful and (actuator.early or actuator.activation_range is not None):
        yield actuator.problem(
            f"type '{actuator.type}' has no activation: leave its range and early out"
        )
    if kind.needs_length_range:
        yield from _bounds(actuator, "length_range", strict=True)
    for key in ("ctrl_range", "activation_range", "force_range"):
        yield from _bounds(actuator, key, strict=False)
    # Adhesion with a negative control would push bodies apart, and an unlimited one may be
    # negative.
    given = (-1.0,) if actuator.ctrl_range is None else actuator.ctrl_range
    if actuator.body and not np.min(given) >= 0:
        yield actuator.problem(
            f"it only pulls, so its ctrl_range needs bounds that are not negative, got "
            f"{actuator.ctrl_range}"
        )


def _direction(actuator: Element, joint: Any) -> Iterator[ModelProblem]:
    """Yield the problems of an actuator's direction on the joint that it drives, None for none."""
    width = 1 if joint is None else joint.qd_width
    if not 0 <= actuator.crank_length < np.inf:
        yield actuator.problem(f"crank_length must be finite and >= 0, got {actuator.crank_length}")
    elif actuator.crank_length and not (actuator.site and actuator.refsite):
        yield actuator.problem("a slider-crank needs a site and a refsite")
    elif actuator.crank_length and np.any(actuator.wrench):
        yield actuator.problem("a slider-crank has no wrench; leave it out")
    if width > 1 and not (joint.is_ball or joint.is_free):
        yield actuator.problem(
            f"joint '{actuator.joint}' has {width} degrees of freedom; an actuator "
            "drives a joint with one, a ball joint or a free joint"
        )
    elif width == 1 and not actuator.site and np.any(actuator.wrench):
        yield actuator.problem(
            "only a site, a ball joint or a free joint has a wrench; leave it out"
        )
    elif width > 1 and not np.any(actuator.wrench):
        yield actuator.problem(f"on a joint of {width} degrees of freedom it needs a wrench")
    elif width == 3 and np.any(actuator.wrench[:3]):
        yield actuator.problem("the force of its wrench must be 0: a ball joint only has a torque")


def _bounds(element: Element, key: str, strict: bool) -> Iterator[ModelProblem]:
    """Yield a problem unless a value is None, or a lower and a larger (or equal) upper bound."""
    if element.values[key] is None:
        return
    value = np.asarray(element.values[key], float)
    ordered = value.shape == (2,) and (value[0] < value[1] if strict else value[0] <= value[1])
    if not ordered:  # NaN is not
        yield element.problem(f"{key} needs a lower and a larger upper bound, got {value.tolist()}")
