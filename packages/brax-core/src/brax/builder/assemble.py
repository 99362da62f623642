"""Assembly of a `System` from a checked description."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from brax.base import Camera, Option, Pair, Sensor, Site, System
from brax.builder.arrays.actuators import actuator_numbers
from brax.builder.arrays.columns import array, column, transform
from brax.builder.arrays.equality import equality_numbers
from brax.builder.arrays.geoms import geom_numbers
from brax.builder.arrays.joints import dof_numbers, joint_numbers, reference
from brax.builder.arrays.keyframes import keyframes, normalized
from brax.builder.arrays.links import box_numbers, link_numbers
from brax.builder.arrays.tendons import tendon_numbers
from brax.builder.checked_description import CheckedDescription
from brax.builder.elements import WORLD, Element, is_polynomial

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


def assemble(parts: CheckedDescription) -> System:
    """Return the `System`."""
    option = parts.option
    start = at_rest(parts) if parts.init_q is None else normalized(parts.init_q, parts.joint_types)
    return System(
        # Shares of several bodies may cancel in the sum and still exert a torque by their arms.
        opt=_opt(option, any(np.any(link.gravcomp_arm) or link.gravcomp for link in parts.links)),
        init_q=array(start, (-1,)),
        vel_damping=array(option["vel_damping"], ()),
        ang_damping=array(option["ang_damping"], ()),
        baumgarte_erp=array(option["baumgarte_erp"], ()),
        keyframes=keyframes(parts.keys, start, parts.joint_types, parts.sizes),
        keyframe_names=tuple(k.name for k in parts.keys),
        collisions=parts.collisions,
        integrator=parts.integrator,
        **_bodies(parts),
        **_joints(parts),
        **_geoms(parts),
        **_pairs(parts),
        **_sites(parts),
        **_tendons(parts),
        **_equalities(parts),
        **_actuators(parts),
        **_sensors(parts),
        **_cameras(parts),
    )


def _ids(elements: Sequence[Element]) -> dict[str, int]:
    """Return the indices of elements by name; the empty name, which stands for none, has -1."""
    return {e.name: i for i, e in enumerate(elements)} | {"": -1}


def _link_ids(parts: CheckedDescription) -> dict[str, int]:
    """Return the indices of the links by name; the world has -1."""
    return _ids(parts.links) | {WORLD: -1}


def _mocap_ids(parts: CheckedDescription) -> dict[str, int]:
    """Return the indices of the mocap bodies by name."""
    return _ids([b for b in parts.fixed if b.mocap])


def _bodies(parts: CheckedDescription) -> dict[str, Any]:
    """Return the fields of links, of their boxes in a fluid, and of static bodies."""
    links, mocaps = _link_ids(parts), _mocap_ids(parts)
    jointed = zip(parts.joints, parts.joint_types, strict=True)
    free = {j.body for j, t in jointed if t.is_free}
    return dict(
        link=link_numbers(parts.links, free),
        link_names=tuple(b.name for b in parts.links),
        link_parents=tuple(links[b.parent] for b in parts.links),
        link_mocap=tuple(-1 if b.name in free else mocaps[b.on] for b in parts.links),
        box=box_numbers(parts.boxes, [parts.links[links[b.body]] for b in parts.boxes]),
        box_link=tuple(links[b.body] for b in parts.boxes),
        fixed=transform(parts.fixed),
        fixed_names=tuple(b.name for b in parts.fixed),
        fixed_link=tuple(links[b.parent] for b in parts.fixed),
        fixed_mocap=tuple(mocaps[b.on] for b in parts.fixed),
        mocap_fixed=tuple(i for i, b in enumerate(parts.fixed) if b.mocap),
    )


def _joints(parts: CheckedDescription) -> dict[str, Any]:
    """Return the fields of joints and degrees of freedom."""
    joints, types, links = parts.joints, parts.joint_types, _link_ids(parts)
    refs = [reference(j, t) for j, t in zip(joints, types, strict=True)]
    return dict(
        joint=joint_numbers(joints),
        dof=dof_numbers(joints, types),
        ref=array(np.concatenate(refs), (-1,)),
        joint_names=tuple(j.name for j in joints),
        joint_types=types,
        joint_link=tuple(links[j.body] for j in joints),
        # Rows for limits, margins and dry friction are compiled in only where there are some.
        joint_limited=tuple(j.range is not None for j in joints),
        joint_polynomial=tuple(map(is_polynomial, parts.joints)),
        joint_two_sided=tuple(bool(j.margin) for j in joints),
        joint_dry=tuple(bool(np.any(j.frictionloss)) for j in joints),
        joint_actuator_limited=tuple(j.actuator_range is not None for j in joints),
        joint_actuator_gravcomp=tuple(j.actuator_gravcomp for j in joints),
    )


def _geoms(parts: CheckedDescription) -> dict[str, Any]:
    """Return the fields of geoms; vertices and heights of all geoms are joined to one array."""
    geoms, links, mocaps = parts.geoms, _link_ids(parts), _mocap_ids(parts)
    points = np.concatenate([np.zeros((0, 3)), *(g.points for g in geoms)])
    heights = np.concatenate([np.zeros(0), *(g.heights.ravel() for g in geoms)])
    return dict(
        geom=geom_numbers(geoms, parts.geom_types),
        points=array(points, (-1, 3)),
        heights=array(heights, (-1,)),
        geom_names=tuple(g.name for g in geoms),
        geom_types=parts.geom_types,
        geom_link=tuple(links[g.body] for g in geoms),
        geom_body=tuple(_object(parts, "body", g.origin) for g in geoms),
        geom_mocap=tuple(mocaps[g.on] for g in geoms),
        geom_streamed=tuple(g.streamed for g in geoms),
        geom_adhesive=tuple(bool(g.adhesion) for g in geoms),
        geom_moving=tuple(bool(np.any(g.surface_velocity)) for g in geoms),
        geom_points=tuple(len(g.points) for g in geoms),
        geom_grid=tuple(g.heights.shape for g in geoms),
        geom_priority=tuple(g.priority for g in geoms),
    )


def _pairs(parts: CheckedDescription) -> dict[str, Any]:
    """Return the fields of described pairs of geoms."""
    pairs = parts.pairs
    return dict(
        pair=Pair(
            column(pairs, "friction", 5),
            column(pairs, "solref", 2),
            column(pairs, "solref_friction", 2),
            column(pairs, "solimp", 5),
            column(pairs, "margin", 1)[:, 0],
            column(pairs, "gap", 1)[:, 0],
            column(pairs, "adhesion", 1)[:, 0],
        ),
        pair_names=tuple(p.name for p in pairs),
        pair_adhesive=tuple(bool(p.adhesion) for p in pairs),
        pair_damped=tuple(bool(np.any(p.solref_friction)) for p in pairs),
        pair_uneven=tuple(
            bool(p.friction[0] != p.friction[1] or p.friction[3] != p.friction[4]) for p in pairs
        ),
    )


def _sites(parts: CheckedDescription) -> dict[str, Any]:
    """Return the fields of sites."""
    sites, links, mocaps = parts.sites, _link_ids(parts), _mocap_ids(parts)
    return dict(
        site=Site(transform(sites), column(sites, "size", 3)),
        site_names=tuple(s.name for s in sites),
        site_types=parts.site_types,
        site_link=tuple(links[s.body] for s in sites),
        site_body=tuple(_object(parts, "body", s.origin) for s in sites),
        site_mocap=tuple(mocaps[s.on] for s in sites),
    )


def _tendons(parts: CheckedDescription) -> dict[str, Any]:
    """Return the fields of tendons."""
    tendons, joints = parts.tendons, _ids(parts.joints)
    sites, geoms = _ids(parts.sites), _ids(parts.geoms)
    return dict(
        tendon=tendon_numbers(tendons, parts.joints),
        tendon_names=tuple(t.name for t in tendons),
        tendon_joints=tuple(tuple(joints[j] for j in t.joints) for t in tendons),
        tendon_path=tuple(
            tuple((sites[s.first], sites[s.last], geoms[s.geom], sites[s.side]) for s in t.path)
            for t in tendons
        ),
        tendon_limited=tuple(t.range is not None for t in tendons),
        tendon_two_sided=tuple(bool(t.margin) for t in tendons),
        tendon_polynomial=tuple(map(is_polynomial, tendons)),
        tendon_rotor=tuple(bool(t.armature) for t in tendons),
        tendon_actuator_limited=tuple(t.actuator_range is not None for t in tendons),
        tendon_dry=tuple(bool(t.frictionloss) for t in tendons),
    )


def _equalities(parts: CheckedDescription) -> dict[str, Any]:
    """Return the fields of equality constraints."""
    equalities, links, mocaps = parts.equalities, _link_ids(parts), _mocap_ids(parts)
    coupled = {"joint": _ids(parts.joints), "tendon": _ids(parts.tendons)}
    ends = [(coupled.get(e.type, links), e) for e in equalities]
    return dict(
        equality=equality_numbers(equalities),
        equality_names=tuple(e.name for e in equalities),
        equality_types=tuple(e.type for e in equalities),
        equality_pair=tuple((ids[e.first], ids[e.second]) for ids, e in ends),
        equality_mocap=tuple((mocaps[a], mocaps[b]) for a, b in (e.on for e in equalities)),
    )


def _actuators(parts: CheckedDescription) -> dict[str, Any]:
    """Return the fields of actuators."""
    actuators, sites = parts.actuators, _ids(parts.sites)
    joints, tendons = _ids(parts.joints), _ids(parts.tendons)
    return dict(
        actuator=actuator_numbers(actuators),
        actuator_names=tuple(a.name for a in actuators),
        actuator_types=parts.actuator_types,
        actuator_joint=tuple(joints[a.joint] for a in actuators),
        actuator_in_parent=tuple(a.in_parent for a in actuators),
        actuator_tendon=tuple(tendons[a.tendon] for a in actuators),
        actuator_site=tuple(sites[a.site] for a in actuators),
        actuator_refsite=tuple(sites[a.refsite] for a in actuators),
        actuator_crank=tuple(bool(a.crank_length) for a in actuators),
        actuator_body=tuple(_object(parts, "body", a.body) if a.body else None for a in actuators),
        actuator_early=tuple(a.early for a in actuators),
    )


def _sensors(parts: CheckedDescription) -> dict[str, Any]:
    """Return the fields of sensors."""
    sensors = parts.sensors
    return dict(
        sensor=Sensor(column(sensors, "cutoff", 1)[:, 0]),
        sensor_names=tuple(s.name for s in sensors),
        sensor_types=parts.sensor_types,
        sensor_object=tuple(_object(parts, *s.object) for s in sensors),
        sensor_reference=tuple(s.reference and _object(parts, *s.reference) for s in sensors),
    )


def _cameras(parts: CheckedDescription) -> dict[str, Any]:
    """Return the fields of cameras."""
    cameras, links, mocaps = parts.cameras, _link_ids(parts), _mocap_ids(parts)
    return dict(
        camera=Camera(transform(cameras), column(cameras, "fovy", 1)[:, 0]),
        camera_names=tuple(c.name for c in cameras),
        camera_link=tuple(links[c.body] for c in cameras),
        camera_modes=tuple(c.mode for c in cameras),
        camera_mocap=tuple(mocaps[c.on] for c in cameras),
        camera_target=tuple(links[c.target] for c in cameras),
        camera_aim=tuple(mocaps[c.aim] for c in cameras),
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
    # An inertia is that of a link: static bodies have none of their own.
    return kind, index["link" if kind == "inertia" else kind].index(name)


def at_rest(parts: CheckedDescription) -> np.ndarray:
    """Return the coordinates at rest: joints at their references, free bodies where described."""
    bodies = {b.name: b for b in parts.links}
    return np.concatenate(
        [
            # The coordinates of a free joint are its pose, as in MuJoCo's `qpos0`.
            np.concatenate([bodies[j.body].pos, bodies[j.body].quat])
            if t.is_free
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
