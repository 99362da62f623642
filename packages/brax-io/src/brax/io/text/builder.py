"""Builds a model from a `Config`: bodies on joints. Unsupported fields are refused by name."""

import itertools
import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from brax.base import System
from brax.builder import WORLD, ModelBuilder
from brax.components import Vec3
from brax.errors import ModelError, closest
from brax.io.text.shapes import (
    IDENTITY_ROTATION,
    ORIGIN,
    UNIT,
    Rotation,
    Vector,
    axis_in,
    euler,
    geom,
    shape_problems,
    vector,
)
from brax.io.text.source_lines import Place

MAX_CONFIG_ELEMENTS = 1024
"""Maximum number of bodies, joints, colliders and actuators together."""

AXES = "xyz"


class Builder:
    """Builds a `System` from a `Config`."""

    def __init__(
        self, config: Any, default_index: int, lines: Mapping[Place, int], file: str
    ) -> None:
        self.config, self.lines, self.file = config, lines, file
        self.made = ModelBuilder()
        chosen = config.defaults[default_index] if config.defaults else None
        self.qps = {qp.name: qp for qp in chosen.qps} if chosen else {}
        self.angles = {a.name: vector(a.angle) for a in chosen.angles} if chosen else {}
        self.hinges: dict[str, list[str]] = {}
        """Names of the hinges of each joint."""
        self.limits: dict[str, tuple[float, float]] = {}
        """Limits of each hinge [degrees]."""
        self.rotations: dict[str, Rotation] = {}
        """Orientation of each body in the world, when all angles are zero."""
        self.q: list[float] = []

    def build(self) -> System:
        """Return the system.

        Raises:
            ModelError: listing everything that is wrong.
        """
        config = self.config
        count = sum(map(len, (config.bodies, config.joints, config.actuators)))
        count += sum(len(body.colliders) for body in config.bodies)
        if count > MAX_CONFIG_ELEMENTS:
            raise ModelError(
                f"{self.file}: {count} elements; at most {MAX_CONFIG_ELEMENTS} are allowed"
            )
        self._options()
        self._bodies()
        self._actuators()
        self._pairs()
        self.made.set_init_q(self.q)
        return self.made.build()

    def _reject(self, what: str, problem: str, *place: str | int) -> None:
        self.made.add_problem(f"{what}{self._line(*place)}: {problem}")

    def _line(self, *place: str | int) -> str:
        return f" ({self.file}:{self.lines[place]})" if place in self.lines else ""

    def _options(self) -> None:
        config = self.config
        if config.substeps < 0:
            self._reject("substeps", f"must be at least 1, got {config.substeps}")
        self.made.set_option(
            timestep=config.dt / max(1, config.substeps),
            gravity=vector(config.gravity),
            vel_damping=config.velocity_damping,
            ang_damping=config.angular_damping,
        )
        # Zero means omitted in proto3, so Brax's default applies.
        if config.baumgarte_erp:
            self.made.set_option(baumgarte_erp=config.baumgarte_erp)
        for i, force in enumerate(config.forces):
            problem = "forces on bodies are no part of a model; pass `external` to the pipeline"
            self._reject(f"force '{force.name}'", problem, "forces", i)
        for i, mesh in enumerate(config.mesh_geometries):
            self._reject(f"mesh '{mesh.name}'", "meshes are not supported", "mesh_geometries", i)

    def _bodies(self) -> None:
        """Add all bodies, parents first; the model builder checks the parents' names."""
        bodies = self.config.bodies
        index = {body.name: i for i, body in enumerate(bodies)}
        joint_of = self._parent_joints(index)
        order: dict[int, None] = {}
        for i in range(len(bodies)):
            # From each body up to an ancestor that is in the order already. A cycle ends the walk,
            # and the model builder reports it.
            chain: dict[int, None] = {}
            at: int | None = i
            while at is not None and at not in order and at not in chain:
                chain[at] = None
                joint = joint_of.get(bodies[at].name)
                at = None if joint is None else index.get(self.config.joints[joint].parent)
            order |= dict.fromkeys(reversed(chain))
        for i in order:
            if bodies[i].name in joint_of:
                self._add_child(i, joint_of[bodies[i].name])
            else:
                self._add_root(i)
            for k, collider in enumerate(bodies[i].colliders):
                self._collider(bodies[i].name, collider, "bodies", i, "colliders", k)
        self._rest_of_defaults(set(index) - set(joint_of))

    def _parent_joints(self, bodies: Collection[str]) -> dict[str, int]:
        """Return the index of the joint above each body."""
        joint_of: dict[str, int] = {}
        for j, joint in enumerate(self.config.joints):
            what = f"joint '{joint.name}'"
            if joint.child not in bodies:
                hint = closest(joint.child, bodies)
                self._reject(what, f"there is no body '{joint.child}'.{hint}", "joints", j)
            elif joint.child in joint_of:
                problem = f"body '{joint.child}' has another parent joint; closed loops are not"
                self._reject(what, f"{problem} supported", "joints", j)
            else:
                joint_of[joint.child] = j
        return joint_of

    def _add_body(self, i: int, parent: str, pos: Vector, rotation: Rotation) -> None:
        body = self.config.bodies[i]
        parent_rotation: Rotation = self.rotations.get(parent, IDENTITY_ROTATION)
        self.rotations[body.name] = parent_rotation.mul(rotation)
        self.made.add_body(
            body.name,
            parent,
            pos,
            rotation,
            mass=body.mass,
            inertia=vector(body.inertia),
            line=self._line("bodies", i),
        )

    def _add_root(self, i: int) -> None:
        """Add a body without a parent joint: free along and about the axes that are not frozen."""
        body = self.config.bodies[i]
        qp = self.qps.get(body.name)
        pos, rotation = (
            (vector(qp.pos), euler(vector(qp.rot))) if qp else (ORIGIN, IDENTITY_ROTATION)
        )
        self._add_body(i, WORLD, pos, rotation)
        frozen_position, frozen_rotation = self._frozen(body)
        if not frozen_position and not frozen_rotation:
            self.made.add_joint(body.name, "free", f"{body.name}_root")
            self.q += [*pos, *rotation]
            return
        for k in sorted(set(range(3)) - frozen_position):
            self.made.add_joint(
                body.name, "slide", f"{body.name}_{AXES[k]}", axis=axis_in(rotation, k)
            )
            self.q.append(0.0)
        free_rotation = sorted(set(range(3)) - frozen_rotation)
        name = f"{body.name}_turn"
        if len(free_rotation) == 1:
            self.made.add_joint(body.name, "hinge", name, axis=axis_in(rotation, free_rotation[0]))
            self.q.append(0.0)
        elif len(free_rotation) == 3:
            self.made.add_joint(body.name, "ball", name)
            self.q += IDENTITY_ROTATION
        elif free_rotation:
            problem = "its rotation is frozen about one axis; freeze none, two or all"
            self._reject(f"body '{body.name}'", problem, "bodies", i)

    def _frozen(self, body: Any) -> tuple[set[int], set[int]]:
        """Return the world axes along, and about, which a body cannot move."""
        both = (self.config.frozen, body.frozen)
        if any(f.all for f in both):
            return {0, 1, 2}, {0, 1, 2}
        frozen_position = {k for f in both for k, x in enumerate(vector(f.position)) if x}
        return frozen_position, {k for f in both for k, x in enumerate(vector(f.rotation)) if x}

    def _add_child(self, i: int, j: int) -> None:
        """Add a body on a joint of one to three hinges."""
        body, joint = self.config.bodies[i], self.config.joints[j]
        what, place = f"joint '{joint.name}'", ("joints", j)
        rotation, anchor = euler(vector(joint.reference_rotation)), vector(joint.child_offset)
        # The anchor is at parent_offset in the parent and at child_offset in the child.
        pos = np.array(vector(joint.parent_offset)) - np.array(rotation.rotate(Vec3(*anchor)))
        self._add_body(i, joint.parent, pos, rotation)
        limits = [(limit.min, limit.max) for limit in joint.angle_limit]
        if len(limits) not in (1, 2, 3):
            self._reject(what, f"it needs 1 to 3 angle_limit, got {len(limits)}", *place)
            return
        angles = self.angles.get(joint.name, ORIGIN)
        for k, angle in enumerate(angles):
            low, high = limits[k] if k < len(limits) else (0.0, 0.0)
            if not low <= angle <= high:
                problem = f"its angle about {AXES[k]} is {angle}, its limits are {low} and {high}"
                self._reject(what, problem, *place)
        free = [k for k, limit in enumerate(limits) if limit != (0, 0)]
        frame = rotation.conj.mul(euler(vector(joint.rotation)))
        self._check_frozen(i, [self.rotations[body.name].mul(frame).rotate(UNIT[k]) for k in free])
        self.hinges[joint.name] = []
        for k in free:
            name = joint.name if len(limits) == 1 else f"{joint.name}_{AXES[k]}"
            self.made.add_joint(
                body.name,
                "hinge",
                name,
                anchor,
                frame.rotate(UNIT[k]),
                range=np.radians(limits[k]).tolist(),
                damping=joint.angular_damping,
                line=self._line(*place),
            )
            self.hinges[joint.name].append(name)
            self.limits[name] = limits[k]
            self.q.append(math.radians(angles[k]))

    def _check_frozen(self, i: int, axes: list[Vector]) -> None:
        """Check the frozen axes of a body on a joint.

        They are allowed if the joint itself keeps the body in the plane that they describe.
        """
        frozen_position, frozen_rotation = self._frozen(self.config.bodies[i])
        free = {0, 1, 2} - frozen_rotation
        along = all(abs(axis[k]) > 1 - 1e-9 for axis in axes for k in free)
        in_plane = len(free) == 1 and frozen_position <= free and along
        if (frozen_position or frozen_rotation) and not in_plane:
            problem = (
                "it is on a joint, so it can only be frozen to the plane in which that rotates"
            )
            self._reject(f"body '{self.config.bodies[i].name}'", problem, "bodies", i)

    def _collider(self, body: str, collider: Any, *place: str | int) -> None:
        problems = shape_problems(collider)
        for problem in problems:
            self._reject(f"body '{body}': collider {place[-1]}", problem, *place)
        if not problems:
            self.made.add_geom(body, **geom(collider, self.config), line=self._line(*place))

    def _rest_of_defaults(self, standing: set[str]) -> None:
        """Report the positions and angles in the defaults that cannot be used."""
        for name, qp in self.qps.items():
            if name not in standing:
                problem = "only a body without a parent joint can be positioned; give joint angles"
                self.made.add_problem(
                    f"defaults: qps '{name}': {problem}.{closest(name, standing)}"
                )
            if any(vector(qp.vel) + vector(qp.ang)):
                problem = "a model starts at rest; give velocities to the pipeline's `init`"
                self.made.add_problem(f"defaults: qps '{name}': {problem}")
        for name in self.angles:
            if name not in self.hinges:
                hint = closest(name, self.hinges)
                self.made.add_problem(f"defaults: angles: there is no joint '{name}'.{hint}")

    def _actuators(self) -> None:
        for i, actuator in enumerate(self.config.actuators):
            what, place = f"actuator '{actuator.name}'", ("actuators", i)
            kind = actuator.WhichOneof("type")
            if kind is None:
                self._reject(what, "it has no type; allowed: torque, angle", *place)
            if actuator.joint not in self.hinges:
                hint = closest(actuator.joint, self.hinges)
                self._reject(what, f"there is no joint '{actuator.joint}'.{hint}", *place)
            for hinge in self.hinges.get(actuator.joint, ()):
                name = hinge.replace(actuator.joint, actuator.name or actuator.joint, 1)
                strength = actuator.strength
                # The control of an `angle` actuator is a target angle in degrees.
                servo = dict(
                    gainprm=(math.radians(strength),),
                    biasprm=(0.0, -strength),
                    ctrl_range=self.limits[hinge],
                )
                motor = dict(gainprm=(strength,), ctrl_range=(-1.0, 1.0))
                settings: dict[str, Any] = servo if kind == "angle" else motor
                self.made.add_actuator(hinge, name=name, line=self._line(*place), **settings)

    def _pairs(self) -> None:
        """Exclude pairs: bodies connected by a joint, and those that no `collide_include` names."""
        for joint in self.config.joints:
            self.made.exclude(joint.parent, joint.child)
        bodies = [body.name for body in self.config.bodies]
        included = {frozenset((p.first, p.second)) for p in self.config.collide_include}
        for i, pair in enumerate(self.config.collide_include):
            for name in {pair.first, pair.second} - set(bodies):
                problem = f"there is no body '{name}'.{closest(name, bodies)}"
                self._reject("collide_include", problem, "collide_include", i)
        if included:
            for first, second in itertools.combinations(bodies, 2):
                if frozenset((first, second)) not in included:
                    self.made.exclude(first, second)
