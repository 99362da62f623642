"""The functions that users call to read URDF files and to report on them.

Links, joints, inertias, collision shapes and joints that follow others (`<mimic>`) are read.
Visuals are ignored. There are actuators if they are asked for. See docs/models.md.
"""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import mujoco

from brax.base import System
from brax.errors import ModelError
from brax.io._nodes import Node, write
from brax.io.mjcf import sources
from brax.io.mjcf.build import build
from brax.io.mjcf.checks import check_limit
from brax.io.mjcf.compile import compiled
from brax.io.mjcf.errors import explain
from brax.io.mjcf.numbers import number_or_zero
from brax.io.mjcf.reader import MAX_ELEMENTS, Finding, named_pipeline, of_pipeline
from brax.io.mjcf.sources import ModelSource
from brax.io.urdf import checks
from brax.io.urdf.meshes import Meshes, Packages
from brax.io.urdf.motors import add_motors
from brax.io.urdf.rigid_links import merge_impossible_inertias


def load(
    path: str | os.PathLike[str],
    package_paths: Packages | None = None,
    *,
    floating_base: bool = False,
    motors: bool = False,
    allow_external_assets: bool = False,
    max_elements: int = MAX_ELEMENTS,
) -> System:
    """Read a robot's file.

    Args:
        path: the file.
        package_paths: directory of each package in the paths of meshes (`package://NAME/...`,
            `model://NAME/...`). Another package is a directory of that name above the file that
            has a `package.xml` (or Gazebo's `model.config`), or the file's own directory.
        floating_base: whether the root link is free to move; otherwise it is fixed to the world.
        motors: whether the joints that a `<transmission>` or `<ros2_control>` names have motors; in
            a file without these, all that have a limit of effort and follow no other. A control is
            the force or torque on the joint [N or N m], within that limit.
        allow_external_assets: whether meshes may lie outside the file's directory or their
            package.
        max_elements: maximum number of links.

    Returns:
        The system. A link on a fixed joint becomes part of its parent.

    Raises:
        ModelError: listing everything that is wrong or not supported, with file and line.
    """
    source = sources.read_file(path, allow_external_assets, root="robot")
    meshes = Meshes(source, _packages(package_paths), allow_external_assets)
    return _system(source, meshes, floating_base, motors, max_elements)


def loads(
    text: str | bytes,
    package_paths: Packages | None = None,
    *,
    asset_path: str | os.PathLike[str] | None = None,
    floating_base: bool = False,
    motors: bool = False,
    allow_external_assets: bool = False,
    max_elements: int = MAX_ELEMENTS,
) -> System:
    """Read a robot from its text.

    `asset_path` is the directory of the meshes that it names; the other arguments, the result and
    the errors are those of `load`.
    """
    directory = sources.directory_of(asset_path)
    source = sources.read(text, directory, allow_external_assets, "robot.urdf", root="robot")
    meshes = Meshes(source, _packages(package_paths), allow_external_assets)
    return _system(source, meshes, floating_base, motors, max_elements)


def report(
    path: str | os.PathLike[str],
    backend: str | None = None,
    package_paths: Packages | None = None,
    *,
    allow_external_assets: bool = False,
) -> list[Finding]:
    """List how the links and joints of a robot's file are treated, and what is ignored.

    Args:
        path: the file.
        backend: name of a pipeline, to list also what that one refuses or approximates.
        package_paths: as `load`.
        allow_external_assets: as `load`.

    Raises:
        ModelError: as `load`.
        UnknownNameError: if there is no pipeline of that name.
    """
    pipeline = named_pipeline(backend)
    source = sources.read_file(path, allow_external_assets, root="robot")
    root = source.root
    named = [n for n in root.children if n.tag in ("link", "joint")]
    found = [Finding(n.tag, n.attributes.get("name", ""), "supported", "") for n in named]
    for node, reason in (*checks.passed_over(root), *checks.unknown(root)):
        found.append(
            Finding(
                node.tag, node.attributes.get("name", ""), "ignored", f"{reason} ({node.place})"
            )
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the findings contain their contents
        meshes = Meshes(source, _packages(package_paths), allow_external_assets)
        sys = _system(source, meshes, False, False, MAX_ELEMENTS)
    return found + of_pipeline(sys, pipeline)


def _report_file(path: Path, backend: str) -> list[Finding]:
    return report(path, backend)


READER = SimpleNamespace(suffixes=(".urdf",), load=load, report=_report_file)
"""The reader, as the plugin registry uses it."""


def _packages(given: Packages | None) -> Packages:
    if given is not None and not isinstance(given, Mapping):
        raise ModelError(
            "package_paths must be a dictionary from names of packages to their folders, got "
            f"{type(given).__name__}"
        )
    return given or {}


def _system(
    source: ModelSource, meshes: Meshes, floating: bool, motors: bool, limit: int
) -> System:
    check_limit(limit)
    if problems := checks.bad(source.root, limit):
        raise ModelError.of(problems)
    if not floating and all(map(_is_fixed, _joints(source.root))):
        raise ModelError(
            f"{source.name}: no joint of the robot moves; pass floating_base=True to let its root "
            "link move"
        )
    assets = meshes.locate()
    _warn_unknown(source.root)
    mimics = list(checks.mimics(source.root))
    for joint, mimic in mimics:
        joint.children.remove(mimic)  # MuJoCo 3 skips it, so it is added to the spec below
    followers = [(joint, mimic) for joint, mimic in mimics if not _is_fixed(joint)]
    _complete_limits(source.root)
    text, nodes = write(source.root)
    try:
        spec = mujoco.MjSpec.from_string(text, assets=assets)
        fused = bool(spec.compiler.fusestatic)
        _set_up(spec, floating)
        merge_impossible_inertias(spec)
        _forget_volumes(spec)
        for joint, mimic in followers:
            _add_mimic(spec, joint, mimic)
        if motors:
            add_motors(spec, source.root, {joint.attributes["name"] for joint, _ in followers})
        model = compiled(spec, moving=fused)
    except (ValueError, mujoco.FatalError) as error:
        raise ModelError(explain(str(error), source, nodes)) from None
    _warn_inferred(source.root)
    return build(model, _places(spec, source.root, followers))


def _places(
    spec: mujoco.MjSpec, root: Node, followers: list[tuple[Node, Node]]
) -> dict[tuple[str, int], str]:
    """Return the places of elements in the file, for messages."""
    named = {(n.tag, n.attributes.get("name")): f" ({n.place})" for n in root.children}
    places = {("joint", j.id): named.get(("joint", j.name), "") for j in spec.joints}
    places |= {("body", b.id): named.get(("link", b.name), "") for b in spec.bodies}
    places |= {("equality", e): f" ({mimic.place})" for e, (_, mimic) in enumerate(followers)}
    return places


def _set_up(spec: mujoco.MjSpec, floating: bool) -> None:
    """Set what MuJoCo's URDF reader leaves at other defaults."""
    spec.compiler.fusestatic = False  # the builder fuses links, and keeps their names
    for joint in spec.joints:
        joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE  # a URDF has no actuators
    if floating:
        spec.worldbody.first_body().add_freejoint()


def _forget_volumes(spec: mujoco.MjSpec) -> None:
    """Treat meshes whose mass nothing needs as shells, since thin or open ones have no volume."""
    needed = {g.meshname for b in spec.bodies if not b.explicitinertial for g in b.geoms}
    for mesh in spec.meshes:
        if mesh.name not in needed:
            mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL


def _joints(root: Node) -> list[Node]:
    return [n for n in root.children if n.tag == "joint"]


def _is_fixed(joint: Node) -> bool:
    return joint.attributes.get("type") == "fixed"


def _complete_limits(root: Node) -> None:
    """Write URDF's default, 0, for the bound that a limit leaves out.

    MuJoCo reads a limit with one bound as none.
    """
    for joint in _joints(root):
        for limit in (n for n in joint.children if n.tag == "limit"):
            absent = [key for key in ("lower", "upper") if not limit.attributes.get(key)]
            if len(absent) == 1:
                limit.given[absent[0]] = "0"


def _add_mimic(spec: mujoco.MjSpec, joint: Node, mimic: Node) -> None:
    """Add the equality constraint of a joint that follows another.

    Source: URDF's specification of `<mimic>`: `q = multiplier * q_other + offset`.
    """
    offset, multiplier = (
        number_or_zero(mimic.attributes.get(key, standard))
        for key, standard in (("offset", "0"), ("multiplier", "1"))
    )
    equality = spec.add_equality()
    # MuJoCo's joint equality is a polynomial of the other joint's coordinate: these are its
    # coefficients.
    equality.type, equality.objtype = mujoco.mjtEq.mjEQ_JOINT, mujoco.mjtObj.mjOBJ_JOINT
    equality.name1 = joint.attributes["name"]
    # Without a second joint, MuJoCo's coordinate is to be the constant coefficient.
    if spec.joint(mimic.attributes["joint"]) is not None:
        equality.name2 = mimic.attributes["joint"]
    equality.data[:5] = [offset, multiplier, 0, 0, 0]


def _warn_unknown(root: Node) -> None:
    """Warn about elements and attributes that URDF does not have.

    Most often they are misspelt.
    """
    alike: dict[tuple[str, str], list[Node]] = {}
    for node, problem in checks.unknown(root):
        alike.setdefault((node.tag, problem), []).append(node)
    if alike:
        # A file that has such an element once often has it in every link.
        lines = [
            f"{first.place}{f' (and {len(others)} more)' * bool(others)}: {first} {problem}"
            for (_, problem), (first, *others) in alike.items()
        ]
        warnings.warn("\n".join(lines), stacklevel=4)


def _warn_inferred(root: Node) -> None:
    """Warn about links whose inertia is computed from their shapes."""
    shapes = [
        str(n.attributes.get("name"))
        for n in root.children
        if n.tag == "link"
        and n.attributes.get("name") != checks.WORLD  # it never moves
        and any(part.tag == "collision" for part in n.children)
        and not any(part.tag == "inertial" for part in n.children)
    ]
    if shapes:
        warnings.warn(
            f"{root.file}: no <inertial> for {', '.join(shapes)}: computed from the shapes at "
            "1000 kg/m^3",
            stacklevel=4,
        )
