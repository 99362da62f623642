"""Consistency checks of a `System` that was read from a file."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from brax import plugins
from brax.base import System
from brax.builder import ModelBuilder
from brax.plugins.kinds import resolve

_KIND_OF = {
    "joint_types": "joint_type",
    "geom_types": "geometry_type",
    "site_types": "geometry_type",
    "actuator_types": "actuator",
    "sensor_types": "sensor",
    "integrator": "integrator",
}
"""The kind of registered object that each field holds."""


@functools.cache
def model_kinds() -> dict[str, Any]:
    """Return the kinds of objects that a system is made of, with their classes."""
    ours = [kind for kind in plugins.KINDS.values() if kind.interface.startswith("brax.")]
    return {kind.name: resolve(kind.interface) for kind in ours}


def inconsistent(system: System) -> list[str]:
    """Return the inconsistencies of a system, one sentence each."""
    # References are followed, and shapes compared, only once types and counts are right.
    return [*_mistyped(system), *_miscounted(system)] or _dangling(system) or _misshapen(system)


def _mistyped(system: System) -> list[str]:
    """Return the registered objects whose kind does not match their field."""
    wrong = [
        f"system.{name}: expected {kind}, got {found!r:.60}"
        for name, kind in _KIND_OF.items()
        for found in np.atleast_1d(np.array(getattr(system, name), object))
        if not isinstance(found, model_kinds()[kind])
    ]
    return wrong + [
        f"system.collisions[{i}]: expected geoms and their collider, got {group!r:.60}"
        for i, group in enumerate(system.collisions)
        if not isinstance(getattr(group, "collider", None), model_kinds()["collider"])
    ]


def _count(system: System) -> dict[str, int]:
    """Return the number of elements of each kind."""
    kinds = [name[: -len("_names")] for name in vars(system) if name.endswith("_names")]
    return {kind: len(getattr(system, f"{kind}_names")) for kind in kinds}


def _miscounted(system: System) -> list[str]:
    """Return the tuples that do not have one entry for each element."""
    lists = [field.name for field in dataclasses.fields(system) if field.metadata.get("static")]
    return [
        f"system.{name}: expected {number} entries, got {len(getattr(system, name))}"
        for kind, number in _count(system).items()
        for name in lists
        if name.startswith(f"{kind}_") and len(getattr(system, name)) != number
    ]


def _references(
    system: System, count: Mapping[str, int]
) -> Iterator[tuple[str, Sequence[int], int, int]]:
    """Yield the fields that hold indices: name, indices, lowest allowed index, and end."""
    groups = [geom for group in system.collisions for geom in (*group.geom1, *group.geom2)]
    references = {
        "joint_link": (system.joint_link, 0, count["link"]),
        "box_link": (system.box_link, 0, count["link"]),
        "fixed_link": (system.fixed_link, -1, count["link"]),
        "geom_link": (system.geom_link, -1, count["link"]),
        "mocap_fixed": (system.mocap_fixed, 0, count["fixed"]),
        **{
            f"{kind}_mocap": (getattr(system, f"{kind}_mocap"), -1, len(system.mocap_fixed))
            for kind in ("link", "fixed", "geom", "site", "camera")
        },
        "equality_mocap": (
            [k for pair in system.equality_mocap for k in pair],
            -1,
            len(system.mocap_fixed),
        ),
        "site_link": (system.site_link, -1, count["link"]),
        "camera_link": (system.camera_link, -1, count["link"]),
        "camera_target": (system.camera_target, -1, count["link"]),
        "camera_aim": (system.camera_aim, -1, len(system.mocap_fixed)),
        "actuator_site": (system.actuator_site, -1, count["site"]),
        "actuator_refsite": (system.actuator_refsite, -1, count["site"]),
        "tendon_joints": ([j for each in system.tendon_joints for j in each], 0, count["joint"]),
        "actuator_tendon": (system.actuator_tendon, -1, count["tendon"]),
        "actuator_joint": (system.actuator_joint, -1, count["joint"]),
        "collisions": (groups, 0, count["geom"]),
        "collisions' pairs": ([p for g in system.collisions for p in g.pairs], 0, count["pair"]),
    }
    yield from ((name, *bounds) for name, bounds in references.items())
    stretches = [stretch for each in system.tendon_path for stretch in each]
    ends = [site for first, last, _, _ in stretches for site in (first, last)]
    yield "tendon_path", ends, 0, count["site"]
    yield "tendon_path", [side for _, _, _, side in stretches], -1, count["site"]
    yield "tendon_path", [geom for _, _, geom, _ in stretches], -1, count["geom"]


def _dangling(system: System) -> list[str]:
    """Return the indices that refer to no element."""
    count = _count(system)
    found = [
        f"system.{name}: {index} is not among {low} to {end - 1}"
        for name, indices, low, end in _references(system, count)
        for index in indices
        if not low <= index < end
    ]
    found += [
        f"system.{name}[{i}]: there is no {kind} {index}"
        for name, i, (kind, index) in _named_objects(system)
        if not -1 <= index < count.get(kind, 0)
    ]
    found += [
        f"system.link_parents[{i}]: {parent} is not a link before it, nor -1"
        for i, parent in enumerate(system.link_parents)
        # A parent comes before its children: kernels visit the links in this order.
        if not -1 <= parent < i
    ]
    found += [
        f"system.collisions: geom {index} is not a height field of {grid}"
        for group in system.collisions
        if (grid := getattr(group.collider, "grid", None))
        for index in group.geom1
        if index < count["geom"] and system.geom_grid[index] != grid
    ]
    grids = zip(system.geom_types, system.geom_grid, strict=False)
    found += [
        f"system.geom_grid[{i}]: a {kind.name} needs n * n rows of n, with n >= 3, got {grid}"
        for i, (kind, grid) in enumerate(grids)
        if kind.has_grid and (grid[1] < 3 or tuple(grid) != (grid[1] ** 2, grid[1]))
    ]
    found += [
        f"system.collisions: the grids of the geoms {sorted(set(geoms))} are of different sizes"
        for group in system.collisions
        for geoms in (group.geom1, group.geom2)
        if len({system.geom_grid[g] for g in geoms if g < count["geom"]}) > 1
        and not hasattr(group.collider, "grid")
    ]
    # The coordinates of a link's joints are contiguous only in this order.
    if sorted(system.joint_link) != list(system.joint_link):
        found.append("system.joint_link: joints must be in the order of their links")
    return found


def _named_objects(system: System) -> Iterator[tuple[str, int, tuple[str, int]]]:
    """Yield the references that come with a kind: field, position, and (kind, index)."""
    for i, (kind, pair) in enumerate(zip(system.equality_types, system.equality_pair, strict=True)):
        for index in pair:
            yield "equality_pair", i, ("link" if kind in ("connect", "weld") else kind, index)
    for name in ("sensor_object", "sensor_reference", "actuator_body"):
        for i, (kind, index) in enumerate(o for o in getattr(system, name) if o is not None):
            if kind != "world":
                yield name, i, ("link" if kind == "inertia" else kind, index)


def _misshapen(system: System) -> list[str]:
    """Return the arrays whose shapes do not follow from the numbers of elements."""
    nk, nq, nv = len(system.keyframe_names), system.q_size(), system.qd_size()
    special = {
        "tendon.coef": (sum(map(len, system.tendon_joints)),),
        "tendon.share": (sum(map(len, system.tendon_path)),),
        "keyframes.q": (nk, nq),
        "keyframes.qd": (nk, nv),
        "keyframes.activation": (nk, len(system.stateful_actuators())),
        "keyframes.ctrl": (nk, system.act_size()),
    }
    rows = _count(system) | {
        "dof": nv,
        "init_q": nq,
        "ref": nq,
        "box": len(system.box_link),
        "points": sum(system.geom_points),
        "heights": sum(rows * columns for rows, columns in system.geom_grid),
    }
    patterns = dict(_leaves(_pattern()))
    problems = []
    for place, array in _leaves(system):
        wanted = patterns[place].shape
        # The first part of a path, such as `geom`, names the elements that its arrays have rows
        # for.
        if (group := place.split(".")[0]) in rows:
            wanted = (rows[group], *wanted[1:])
        wanted = special.get(place, wanted)
        if place == "joint.user":  # the widest joint type decides the width
            wanted = (*wanted[:1], *array.shape[1:2])
        if array.shape != wanted:
            problems.append(f"system.{place}: expected shape {wanted}, got {array.shape}")
    return problems


def _leaves(system: System) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_leaves_with_path(system)
    return [(jax.tree_util.keystr(k, simple=True, separator="."), leaf) for k, leaf in leaves]


@functools.cache
def _pattern() -> System:
    """Return a small system, whose arrays have the right ranks and widths."""
    builder = ModelBuilder()
    builder.add_body("link", mass=1.0, inertia=(1, 1, 1))
    builder.add_joint("link")
    return builder.build()
