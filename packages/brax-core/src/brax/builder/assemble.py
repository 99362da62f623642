"""Assembly of a `System` from a checked description."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from brax.base import (
    Box,
    Camera,
    Geom,
    Inertia,
    Link,
    Option,
    Pair,
    Sensor,
    Site,
    System,
    Transform,
)
from brax.builder.arrays.actuators import actuator_numbers
from brax.builder.arrays.columns import array, column
from brax.builder.arrays.equality import equality_numbers
from brax.builder.arrays.fluid import fluid_numbers
from brax.builder.arrays.joints import dof_numbers, joint_numbers, reference
from brax.builder.arrays.keyframes import keyframes, normalized
from brax.builder.arrays.tendons import tendon_numbers
from brax.builder.elements import IDENTITY_QUAT, WORLD, Element, is_free
from brax.colliders import CollisionGroup

_SETTINGS = (
    "cone",
    "iterations",
    "ls_iterations",
    "sweeps",
    "max_geom_pairs",
    "max_contact_points",
    "time_of_impact",
    "eulerdamp",
)
"""Options that are not arrays."""


class CheckedDescription(NamedTuple):
    """A checked description: static bodies are fused, and types are objects."""

    option: dict[str, Any]
    links: Sequence[Element]
    boxes: Sequence[Element]
    fixed: Sequence[Element]
    joints: Sequence[Element]
    """In the order of the links."""
    joint_types: tuple[Any, ...]
    geoms: Sequence[Element]
    geom_types: tuple[Any, ...]
    sites: Sequence[Element]
    site_types: tuple[Any, ...]
    tendons: Sequence[Element]
    equalities: Sequence[Element]
    """With their numbers as `data`, and the elements that they constrain as the builder names
    them."""
    actuators: Sequence[Element]
    actuator_types: tuple[Any, ...]
    sensors: Sequence[Element]
    sensor_types: tuple[Any, ...]
    cameras: Sequence[Element]
    keys: Sequence[Element]
    sizes: dict[str, int]
    """Length of each part of a keyframe."""
    collisions: tuple[CollisionGroup, ...]
    pairs: Sequence[Element]
    integrator: Any
    init_q: np.ndarray | None


def assemble(parts: CheckedDescription) -> System:
    """Return the `System`."""
    links = {WORLD: -1} | {b.name: i for i, b in enumerate(parts.links)}
    tendon_ids = {t.name: i for i, t in enumerate(parts.tendons)}
    mocaps = [b.name for b in parts.fixed if b.mocap]
    mocap_ids = {name: i for i, name in enumerate(mocaps)} | {"": -1}
    site_ids = {s.name: i for i, s in enumerate(parts.sites)} | {"": -1}
    geom_ids = {g.name: i for i, g in enumerate(parts.geoms)} | {"": -1}
    joint_ids = {j.name: i for i, j in enumerate(parts.joints)}
    joints, types, option = parts.joints, parts.joint_types, parts.option
    free = {j.body for j, t in zip(joints, types, strict=True) if is_free(t)}
    refs = [reference(j, t) for j, t in zip(joints, types, strict=True)]
    start = at_rest(parts) if parts.init_q is None else normalized(parts.init_q, types)
    return System(
        opt=_opt(option, any(np.any(link.gravcomp_arm) or link.gravcomp for link in parts.links)),
        link=_link(parts.links, free),
        box=_box(parts.boxes, [parts.links[links[b.body]] for b in parts.boxes]),
        joint=joint_numbers(joints),
        dof=dof_numbers(joints, types),
        geom=_geom(parts.geoms, parts.geom_types),
        points=array(np.concatenate([np.zeros((0, 3)), *(g.points for g in parts.geoms)]), (-1, 3)),
        heights=array(
            np.concatenate([np.zeros(0), *(g.heights.ravel() for g in parts.geoms)]), (-1,)
        ),
        pair=Pair(
            column(parts.pairs, "friction", 5),
            column(parts.pairs, "solref", 2),
            column(parts.pairs, "solimp", 5),
            column(parts.pairs, "margin", 1)[:, 0],
            column(parts.pairs, "gap", 1)[:, 0],
        ),
        site=Site(
            Transform(column(parts.sites, "pos", 3), column(parts.sites, "quat", 4)),
            column(parts.sites, "size", 3),
        ),
        tendon=tendon_numbers(parts.tendons, joints),
        equality=equality_numbers(parts.equalities),
        actuator=actuator_numbers(parts.actuators),
        sensor=Sensor(column(parts.sensors, "cutoff", 1)[:, 0]),
        fixed=Transform(column(parts.fixed, "pos", 3), column(parts.fixed, "quat", 4)),
        camera=Camera(
            Transform(column(parts.cameras, "pos", 3), column(parts.cameras, "quat", 4)),
            column(parts.cameras, "fovy", 1)[:, 0],
        ),
        keyframes=keyframes(parts.keys, start, types, parts.sizes),
        init_q=array(start, (-1,)),
        ref=array(np.concatenate(refs), (-1,)),
        vel_damping=array(option["vel_damping"], ()),
        ang_damping=array(option["ang_damping"], ()),
        baumgarte_erp=array(option["baumgarte_erp"], ()),
        link_names=tuple(b.name for b in parts.links),
        link_parents=tuple(links[b.parent] for b in parts.links),
        fixed_names=tuple(b.name for b in parts.fixed),
        fixed_link=tuple(links[b.parent] for b in parts.fixed),
        fixed_mocap=tuple(mocap_ids[b.on] for b in parts.fixed),
        mocap_fixed=tuple(i for i, b in enumerate(parts.fixed) if b.mocap),
        link_mocap=tuple(-1 if b.name in free else mocap_ids[b.on] for b in parts.links),
        box_link=tuple(links[b.body] for b in parts.boxes),
        joint_names=tuple(joint_ids),
        joint_types=types,
        joint_link=tuple(links[j.body] for j in joints),
        joint_limited=tuple(j.range is not None for j in joints),
        joint_two_sided=tuple(bool(j.margin) for j in joints),
        joint_dry=tuple(bool(np.any(j.frictionloss)) for j in joints),
        joint_actuator_limited=tuple(j.actuator_range is not None for j in joints),
        geom_names=tuple(g.name for g in parts.geoms),
        geom_types=parts.geom_types,
        geom_link=tuple(links[g.body] for g in parts.geoms),
        geom_body=tuple(_object(parts, "body", g.origin) for g in parts.geoms),
        geom_mocap=tuple(mocap_ids[g.on] for g in parts.geoms),
        geom_streamed=tuple(g.streamed for g in parts.geoms),
        geom_points=tuple(len(g.points) for g in parts.geoms),
        geom_grid=tuple(g.heights.shape for g in parts.geoms),
        geom_priority=tuple(g.priority for g in parts.geoms),
        collisions=parts.collisions,
        pair_names=tuple(p.name for p in parts.pairs),
        pair_uneven=tuple(
            bool(p.friction[0] != p.friction[1] or p.friction[3] != p.friction[4])
            for p in parts.pairs
        ),
        site_names=tuple(s.name for s in parts.sites),
        site_types=parts.site_types,
        site_link=tuple(links[s.body] for s in parts.sites),
        site_body=tuple(_object(parts, "body", s.origin) for s in parts.sites),
        site_mocap=tuple(mocap_ids[s.on] for s in parts.sites),
        tendon_names=tuple(tendon_ids),
        tendon_joints=tuple(tuple(joint_ids[j] for j in t.joints) for t in parts.tendons),
        tendon_path=tuple(
            tuple(
                (site_ids[s.first], site_ids[s.last], geom_ids[s.geom], site_ids[s.side])
                for s in t.path
            )
            for t in parts.tendons
        ),
        tendon_limited=tuple(t.range is not None for t in parts.tendons),
        tendon_two_sided=tuple(bool(t.margin) for t in parts.tendons),
        tendon_dry=tuple(bool(t.frictionloss) for t in parts.tendons),
        equality_names=tuple(e.name for e in parts.equalities),
        equality_types=tuple(e.type for e in parts.equalities),
        equality_pair=tuple(
            (ids[e.first], ids[e.second])
            for e in parts.equalities
            for ids in [{"joint": joint_ids, "tendon": tendon_ids}.get(e.type, links) | {"": -1}]
        ),
        equality_mocap=tuple(
            (mocap_ids[a], mocap_ids[b]) for a, b in (e.on for e in parts.equalities)
        ),
        actuator_names=tuple(a.name for a in parts.actuators),
        actuator_types=parts.actuator_types,
        actuator_joint=tuple(joint_ids[a.joint] if a.joint else -1 for a in parts.actuators),
        actuator_tendon=tuple(tendon_ids[a.tendon] if a.tendon else -1 for a in parts.actuators),
        actuator_site=tuple(site_ids[a.site] for a in parts.actuators),
        actuator_refsite=tuple(site_ids[a.refsite] for a in parts.actuators),
        actuator_body=tuple(
            _object(parts, "body", a.body) if a.body else None for a in parts.actuators
        ),
        actuator_early=tuple(a.early for a in parts.actuators),
        sensor_names=tuple(s.name for s in parts.sensors),
        sensor_types=parts.sensor_types,
        sensor_object=tuple(_object(parts, *s.object) for s in parts.sensors),
        sensor_reference=tuple(s.reference and _object(parts, *s.reference) for s in parts.sensors),
        camera_names=tuple(c.name for c in parts.cameras),
        camera_link=tuple(links[c.body] for c in parts.cameras),
        camera_modes=tuple(c.mode for c in parts.cameras),
        camera_mocap=tuple(mocap_ids[c.on] for c in parts.cameras),
        camera_target=tuple(links[c.target] for c in parts.cameras),
        camera_aim=tuple(mocap_ids[c.aim] for c in parts.cameras),
        keyframe_names=tuple(k.name for k in parts.keys),
        integrator=parts.integrator,
    )


def _object(parts: CheckedDescription, kind: str, name: str) -> tuple[str, int]:
    """Return kind and index of an element; a body is a link, fixed to one, or the world."""
    if kind == "body" and name == WORLD:
        return "world", -1
    named = {
        "link": parts.links,
        "fixed": parts.fixed,
        "joint": parts.joints,
        "tendon": parts.tendons,
        "actuator": parts.actuators,
        "geom": parts.geoms,
        "site": parts.sites,
    }
    index = {k: [e.name for e in elements] for k, elements in named.items()}
    if kind == "body":
        kind = "link" if name in index["link"] else "fixed"
    return kind, index["link" if kind == "inertia" else kind].index(name)


def at_rest(parts: CheckedDescription) -> np.ndarray:
    """Return the coordinates at rest: joints at their references, free bodies where described."""
    bodies = {b.name: b for b in parts.links}
    return np.concatenate(
        [
            np.concatenate([bodies[j.body].pos, bodies[j.body].quat])
            if is_free(t)
            else np.array([float(x) for x in t.zero(np.zeros(()))]) + reference(j, t)
            for j, t in zip(parts.joints, parts.joint_types, strict=True)
        ]
    )


def _opt(option: dict[str, Any], compensated: bool) -> Option:
    """Return the options, with flags for what is compiled in only where it is needed."""
    numbers = ("timestep", "density", "viscosity", "impratio")
    return Option(
        **{key: array(option[key], ()) for key in numbers},
        **{key: array(option[key], (3,)) for key in ("gravity", "wind")},
        **{key: option[key] for key in _SETTINGS},
        enable_fluid=option["density"] > 0 or option["viscosity"] > 0,
        enable_gravcomp=compensated,
    )


def _link(bodies: Sequence[Element], free: set[str]) -> Link:
    """Return the links. The pose of a free one is in `q`, so its own frame is the identity."""
    pos = [(0.0, 0.0, 0.0) if b.name in free else b.pos for b in bodies]
    quat = [IDENTITY_QUAT if b.name in free else b.quat for b in bodies]
    frame = Transform(column(bodies, "ipos", 3), column(bodies, "iquat", 4))
    inertia = Inertia(frame, column(bodies, "inertia", 3), column(bodies, "mass", 1)[:, 0])
    frame = Transform(array(pos, (-1, 3)), array(quat, (-1, 4)))
    return Link(
        frame,
        inertia,
        invweight=array(np.zeros((len(pos), 2)), (-1, 2)),
        gravcomp=column(bodies, "gravcomp", 1)[:, 0],
        gravcomp_arm=column(bodies, "gravcomp_arm", 3),
    )


def _box(boxes: Sequence[Element], links: Sequence[Element]) -> Box:
    """Return the boxes of the inertia-box model, as shares of their links' mass and inertia."""
    each = list(zip(boxes, links, strict=True))
    return Box(
        Transform(column(boxes, "pos", 3), column(boxes, "quat", 4)),
        # As shares, the boxes follow when a link's mass is randomized.
        i=array([box.inertia / np.sum(link.inertia) for box, link in each], (-1, 3)),
        mass=array([box.mass / link.mass for box, link in each], (-1,)),
    )


def _geom(geoms: Sequence[Element], types: Sequence[Any]) -> Geom:
    """Return the geoms."""
    return Geom(
        transform=Transform(column(geoms, "pos", 3), column(geoms, "quat", 4)),
        size=column(geoms, "size", 3),
        friction=column(geoms, "friction", 3),
        elasticity=column(geoms, "elasticity", 1)[:, 0],
        solref=column(geoms, "solref", 2),
        solimp=column(geoms, "solimp", 5),
        solmix=column(geoms, "solmix", 1)[:, 0],
        margin=column(geoms, "margin", 1)[:, 0],
        gap=column(geoms, "gap", 1)[:, 0],
        invweight=array(np.zeros(len(geoms)), (-1,)),
        fluid=array([fluid_numbers(g, t) for g, t in zip(geoms, types, strict=True)], (-1, 11)),
        rgba=column(geoms, "rgba", 4),
    )
