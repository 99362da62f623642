"""Robot files in URDF, read through MuJoCo's own reader.

Links, joints, inertias and the shapes that collide are read; what a robot looks like is not, and
it has no actuators: URDF describes none. See docs/models.md.
"""

import dataclasses
import math
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import mujoco

from brax.base import System
from brax.errors import ModelError, closest
from brax.io import _mjcf_build, _mjcf_source
from brax.io._mjcf_explain import explain
from brax.io._mjcf_source import Node, Source, walk
from brax.io.mjcf import MAX_ELEMENTS

JOINTS = ("continuous", "fixed", "floating", "planar", "prismatic", "revolute")
"""The types of joints that are read."""

_NUMBERS = {
    "origin": ("xyz", "rpy"),
    "axis": ("xyz",),
    "mass": ("value",),
    "inertia": ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
    "limit": ("lower", "upper", "effort", "velocity"),
    "dynamics": ("damping", "friction"),
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
    "mesh": ("scale",),
}
"""Attributes that hold numbers."""

_LARGEST = 3.4028234e38  # of float32, which is what JAX computes with by default
_PACKAGE = re.compile(r"package://([^/]+)/(.+)")

Packages = Mapping[str, str | os.PathLike[str]]


def load(
    path: str | os.PathLike[str],
    package_paths: Packages | None = None,
    *,
    floating_base: bool = False,
    allow_external_assets: bool = False,
    max_elements: int = MAX_ELEMENTS,
) -> System:
    """Reads a robot's file.

    Args:
        path: the file.
        package_paths: directory of each ROS package that meshes are named by
            (`package://NAME/...`). One that is not given is looked for above the file.
        floating_base: whether the first link is free to move; otherwise it stands in the world.
        allow_external_assets: whether meshes may lie outside the file's directory or their
            package.
        max_elements: the largest number of links allowed.

    Returns:
        The system. Links on fixed joints are part of the link that carries them.

    Raises:
        ModelError: naming everything that is wrong or not supported, where it stands.
    """
    source = _mjcf_source.read_file(Path(path), allow_external_assets, root="robot")
    meshes = _Meshes(source, package_paths or {}, allow_external_assets)
    return _system(source, meshes, floating_base, max_elements)


def loads(
    text: str | bytes,
    package_paths: Packages | None = None,
    *,
    floating_base: bool = False,
    allow_external_assets: bool = False,
    max_elements: int = MAX_ELEMENTS,
) -> System:
    """Reads a robot from its text; arguments, result and errors are those of `load`."""
    source = _mjcf_source.read(text, None, allow_external_assets, "robot.urdf", root="robot")
    meshes = _Meshes(source, package_paths or {}, allow_external_assets)
    return _system(source, meshes, floating_base, max_elements)


READER = SimpleNamespace(suffixes=(".urdf",), load=load)
"""The reader as the registry knows it."""


@dataclasses.dataclass(frozen=True)
class _Meshes:
    """Where the files of meshes are."""

    source: Source
    packages: Packages
    outside: bool

    def path(self, node: Node) -> Path:
        """The file of a mesh; it must be in its package, or beside the robot's file."""
        source, name = self.source, node.attributes["filename"]
        if named := _PACKAGE.fullmatch(name):
            source = dataclasses.replace(source, directory=self._package(node, named[1]))
            name = named[2]
        path, problem = _mjcf_source.resolve(source, node, "", name, self.outside)
        if problem:
            raise ModelError(problem)
        return path

    def _package(self, node: Node, name: str) -> Path:
        """The directory of a package: given, or the folder of that name above the robot's file."""
        if name in self.packages:
            return Path(self.packages[name])
        start = self.source.directory.resolve() if self.source.directory else Path()
        found = next((p for p in (start, *start.parents) if p.name == name), None)
        if self.source.directory is None or found is None:
            raise ModelError(
                f"{node.place}: {node}: package '{name}' is unknown: "
                f"pass package_paths={{'{name}': ...}}"
            )
        return found


def _system(source: Source, meshes: _Meshes, floating: bool, limit: int) -> System:
    problems = [*_bad_tree(source.root, limit), *_bad_numbers(source.root)]
    if problems:
        raise ModelError.of(problems)
    try:
        spec = mujoco.MjSpec.from_string(source.text)
        _set_up(spec, meshes, floating)
        model = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(explain(str(error), source)) from None
    _tell_inferred(source.root)
    named = {(n.tag, n.attributes.get("name")): f" ({n.place})" for n in source.root.children}
    places = {("joint", j.id): named.get(("joint", j.name), "") for j in spec.joints}
    places |= {("body", b.id): named.get(("link", b.name), "") for b in spec.bodies}
    return _mjcf_build.build(model, places)


def _set_up(spec: mujoco.MjSpec, meshes: _Meshes, floating: bool) -> None:
    """What MuJoCo's reader leaves to be said."""
    spec.compiler.fusestatic = False  # the builder joins links, and keeps the frames' names
    for joint in spec.joints:
        joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE  # there is no actuator to limit
    nodes = [n for n in walk(meshes.source.root) if n.tag == "mesh" and "filename" in n.attributes]
    files = {n.attributes["filename"]: n for n in nodes}
    for mesh in spec.meshes:
        mesh.file = str(meshes.path(files[mesh.file]))
    if floating:
        spec.worldbody.first_body().add_freejoint()


def _bad_tree(root: Node, limit: int) -> Iterator[str]:
    """What is wrong with the links, and with how joints hang them together."""
    links = [n.attributes.get("name", "") for n in root.children if n.tag == "link"]
    joints = [n for n in root.children if n.tag == "joint"]
    if not links:
        yield f"{root.place}: the robot has no <link>"
        return
    if len(links) > limit:
        yield (
            f"{root.file}: robot has {len(links)} links (limit {limit}); "
            "pass max_elements to allow more"
        )
    named: dict[tuple[str, str], Node] = {}
    for node in root.children:
        first = named.setdefault((node.tag, node.attributes.get("name", "")), node)
        if first is not node and node.tag in ("link", "joint"):
            yield f"{node.place}: {node}: the name is taken ({first.place})"
    holders: dict[str, Node] = {}
    for joint in joints:
        yield from _bad_joint(joint, links)
        first = holders.setdefault(_link(joint, "child"), joint)
        if first is not joint:
            yield (
                f"{joint.place}: {joint}: link '{_link(joint, 'child')}' hangs on {first} "
                f"({first.place}) already"
            )
    roots = [name for name in links if name not in holders]
    if len(roots) != 1:
        told = ", ".join(f"'{name}'" for name in roots) or "none"
        yield f"{root.place}: one link must hang on no joint, got {told}"


def _bad_joint(joint: Node, links: list[str]) -> Iterator[str]:
    """What is wrong with one joint by itself."""
    kind = joint.attributes.get("type", "")
    if kind not in JOINTS:
        allowed = f"allowed: {', '.join(JOINTS)}.{closest(kind, JOINTS)}"
        yield f"{joint.place}: {joint}: type '{kind}' is not supported; {allowed}"
    for role in ("parent", "child"):
        link = _link(joint, role)
        if link not in links:
            yield f"{joint.place}: {joint}: its {role} '{link}' is no link.{closest(link, links)}"
    for part in joint.children:
        if part.tag == "mimic":
            yield f"{part.place}: {joint}: <mimic> is not supported; take it out"


def _link(joint: Node, role: str) -> str:
    """The link that a joint names as its parent or child."""
    return next((n.attributes.get("link", "") for n in joint.children if n.tag == role), "")


def _bad_numbers(root: Node) -> Iterator[str]:
    """Numbers that are not finite in single precision, or that nothing can have."""
    for node in walk(root):
        for key in _NUMBERS.get(node.tag, ()):
            try:
                numbers = [float(word) for word in node.attributes.get(key, "").split()]
            except ValueError:
                continue  # MuJoCo refuses it, with its place
            if not all(abs(x) <= _LARGEST for x in numbers):
                yield f"{node.place}: {node} {key}: {node.attributes[key]} is not finite"
            elif node.tag == "mass" and any(x < 0 for x in numbers):
                yield f"{node.place}: {node} {key} must not be negative, got {numbers[0]:g}"
        if node.tag == "limit":
            low, high = (_number(node.attributes.get(key, "0")) for key in ("lower", "upper"))
            if low > high:
                yield f"{node.place}: {node}: lower {low:g} is above upper {high:g}"


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan


def _tell_inferred(root: Node) -> None:
    """Warns of links whose inertia is that of their shapes."""
    shapes = [
        str(n.attributes.get("name"))
        for n in root.children
        if n.tag == "link"
        and any(part.tag == "collision" for part in n.children)
        and not any(part.tag == "inertial" for part in n.children)
    ]
    if shapes:
        warnings.warn(
            f"{root.file}: no <inertial> for {', '.join(shapes)}: taken from the shapes, at "
            "1000 kg/m^3",
            stacklevel=4,
        )
