"""`ModelBuilder`: describe bodies, joints, geoms and so on, then `build` a `System`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from brax import plugins
from brax.base import System
from brax.builder.arrays.tendons import with_tendon_lengths
from brax.builder.assemble import assemble, at_rest
from brax.builder.checked_description import CheckedDescription
from brax.builder.checks import geoms as geom_checks
from brax.builder.checks import model as model_checks
from brax.builder.checks import sensors as sensor_checks
from brax.builder.checks import tendon_paths as path_checks
from brax.builder.checks.keyframes import keyframe_problems
from brax.builder.collision_groups import candidate_pairs, collision_groups
from brax.builder.description import Description
from brax.builder.elements import OPTION, Element, Vector, vectors
from brax.builder.fuse_static import FusedDescription, fuse_static
from brax.colliders import CollisionGroup
from brax.contracts import DEFAULT_BAUMGARTE_ERP, DEFAULT_SWEEPS
from brax.errors import BraxError, ModelError, closest
from brax.generalized.constraints.inverse_weights import inverse_weights
from brax.integrators import DEFAULT_INTEGRATOR
from brax.sensors.measure import check_reads


class _Types(NamedTuple):
    """The registered objects that a description names, None for unknown names."""

    joint: tuple[Any, ...]
    geom: tuple[Any, ...]
    site: tuple[Any, ...]
    actuator: tuple[Any, ...]
    sensor: tuple[Any, ...]
    integrator: Any


SOLVER_STEPS = {"iterations": 5, "ls_iterations": 3}
"""Default bounds of Newton steps and of line searches."""

STIFF_SOLVER_STEPS = {"iterations": 10, "ls_iterations": 10}
"""These bounds for elliptic cones whose friction is stiffer than their normal force. Their cost is
no piecewise parabola: of settled states of the Unitree Go2 and of Spot, whose `impratio` is 100,
nine of ten are off by up to .2 and 1.1 of the largest change of a velocity with `SOLVER_STEPS`, by
2e-5 and 6e-5 with these."""


class ModelBuilder(Description):
    """A description of a model that can be built.

    Frames and units follow `docs/conventions.md`; angles are radians. Vectors may be any sequence
    of numbers. A body without joints is fused into the body that carries it, or into the world;
    `brax.kinematics.frame` still finds it by its name.
    """

    def __init__(self) -> None:
        super().__init__()
        self._option: dict[str, Any] = {
            "timestep": 0.002,
            "gravity": (0.0, 0.0, -9.81),
            "integrator": DEFAULT_INTEGRATOR,
            "vel_damping": 0.0,
            "ang_damping": 0.0,
            "baumgarte_erp": DEFAULT_BAUMGARTE_ERP,
            "wind": (0.0, 0.0, 0.0),
            "density": 0.0,
            "viscosity": 0.0,
            "impratio": 1.0,
            "cone": model_checks.CONES[0],
            "iterations": None,
            "ls_iterations": None,
            "sweeps": DEFAULT_SWEEPS,
            "max_geom_pairs": 0,
            "max_contact_points": 0,
            "time_of_impact": False,
            "eulerdamp": True,
            "filterparent": True,
        }
        self._init_q: Any = None

    def set_option(self, **options: object) -> None:
        """Set options of the simulation.

        Args:
            options: any of these:

                - `timestep` [s], `gravity` [m/s^2] in the world frame, and the name of the
                  `integrator`;
                - `vel_damping` and `ang_damping` [1/s]: each step multiplies velocities by
                  `exp(rate * dt)`, so negative rates damp;
                - `baumgarte_erp`: fraction of a penetration by which one step of `spring` pushes
                  bodies apart, 0.1 by default;
                - `wind` [m/s] in the world frame, `density` [kg/m^3] and `viscosity` [Pa s] of the
                  medium around the bodies;
                - `cone`: `pyramidal` or `elliptic` friction cone, and `impratio`: stiffness of
                  friction over that of the normal force, for the elliptic cone;
                - `iterations` and `ls_iterations`: most steps of the Newton solver and of its line
                  search; None for what fits the cone;
                - `sweeps`: solver iterations over contacts and limits in `spring` and `positional`;
                - `max_geom_pairs`: pairs of geoms that each collider tests, and
                  `max_contact_points`: contacts of each `condim` that act at once;
                - `time_of_impact`: True lets impacts act at their time within the step, which their
                  derivatives need in `spring`;
                - `eulerdamp`: True integrates the damping of joints implicitly;
                - `filterparent`: False lets a link collide with its parent.

        Raises:
            ModelError: on a name that is not one of these.
        """
        for name in options:
            if name not in self._option:
                raise ModelError(
                    f"unknown option '{name}'. Options: "
                    f"{', '.join(self._option)}.{closest(name, self._option)}"
                )
        self._option.update(options)

    def _chosen_option(self) -> dict[str, Any]:
        """Return the options, with solver steps that fit the cone where none are set."""
        o = self._option
        stiff = o["cone"] == "elliptic" and o["impratio"] > 1
        fit = STIFF_SOLVER_STEPS if stiff else SOLVER_STEPS
        return o | {key: n for key, n in fit.items() if o[key] is None}

    def set_init_q(self, q: Vector) -> None:
        """Set the coordinates that the model starts at; by default every joint is at rest."""
        self._init_q = np.asarray(q, float)

    @jax.ensure_compile_time_eval()  # a user may build a model inside a function that JAX traces
    def build(self) -> System:
        """Return the `System`.

        Raises:
            ModelError: naming everything that is wrong with the description.
            PluginError: if a sensor type gives another number of values than its width says.
        """
        problems = self._problems
        problems += model_checks.names(self._elements())
        # Joints in the order of their bodies: that of the coordinates.
        joints = [j for b in self._bodies for j in self._joints if j.body == b.name]
        fused = fuse_static(
            self._bodies, joints, self._geoms, self._sites, self._cameras, self._equalities
        )
        types = self._types(joints, fused)
        self._check(fused, joints, types)
        self._check_sensors(fused, joints, types)
        sizes = self._sizes(types)
        # The sizes of a state are unknown where a type is.
        for key in self._keys if sizes else ():
            problems += keyframe_problems(key, sizes)
        pairs = candidate_pairs(
            fused.links, fused.geoms, self._excluded, self._option["filterparent"]
        )
        # The choice of colliders calls functions of the types, which need sound sizes and points.
        collisions = (
            ()
            if problems
            else collision_groups(problems, fused.geoms, types.geom, pairs, self._pairs)
        )
        if problems:
            raise ModelError.of(problems)
        return self._finished(self._parts(fused, joints, types, sizes, collisions), fused)

    def _elements(self) -> dict[str, list[Element]]:
        """Return all elements by kind, in the order in which problems are reported."""
        return {
            "body": self._bodies,
            "joint": self._joints,
            "geom": self._geoms,
            "site": self._sites,
            "tendon": self._tendons,
            "equality": self._equalities,
            "actuator": self._actuators,
            "sensor": self._sensors,
            "pair": self._pairs,
            "camera": self._cameras,
            "keyframe": self._keys,
        }

    def _parts(
        self,
        fused: FusedDescription,
        joints: Sequence[Element],
        types: _Types,
        sizes: dict[str, int],
        collisions: tuple[CollisionGroup, ...],
    ) -> CheckedDescription:
        """Return the parts that the system is assembled from."""
        return CheckedDescription(
            option=self._chosen_option(),
            links=fused.links,
            boxes=fused.boxes,
            fixed=fused.fixed,
            joints=joints,
            joint_types=types.joint,
            geoms=fused.geoms,
            geom_types=types.geom,
            sites=fused.sites,
            site_types=types.site,
            tendons=self._tendons,
            equalities=fused.equalities,
            actuators=self._actuators,
            actuator_types=types.actuator,
            sensors=self._sensors,
            sensor_types=types.sensor,
            cameras=fused.cameras,
            keys=self._keys,
            sizes=sizes,
            collisions=collisions,
            pairs=self._pairs,
            integrator=types.integrator,
            init_q=self._init_q,
        )

    def _finished(self, parts: CheckedDescription, fused: FusedDescription) -> System:
        """Return the assembled system, with the numbers that need a whole system."""
        system = with_tendon_lengths(assemble(parts), at_rest(parts), self._tendons)
        weights = inverse_weights(system, fused.rest)
        system = system.tree_replace(
            {f"{name}.invweight": jnp.asarray(each) for name, each in weights.items()}
        )
        # Third-party sensors are read once, by shapes: a wrong width is found here and not in a
        # step.
        check_reads(system)
        return system

    def _types(self, joints: Sequence[Element], fused: FusedDescription) -> _Types:
        """Return the objects that the description names."""
        return _Types(
            self._resolve("joint_type", joints),
            self._resolve("geometry_type", fused.geoms),
            self._resolve("geometry_type", fused.sites),
            self._resolve("actuator", self._actuators),
            self._resolve("sensor", self._sensors),
            self._lookup("integrator", self._option["integrator"], OPTION),
        )

    def _lookup(self, kind: str, name: str, what: Element) -> Any:
        """Return a registered object; record a problem and return None if there is none."""
        try:
            return plugins.get(kind, name)
        except BraxError as error:
            self._problems.append(what.problem(str(error)))
            return None

    def _resolve(self, kind: str, elements: Sequence[Element]) -> tuple[Any, ...]:
        """Return the objects of the elements' types, with None for unknown names."""
        # Each type is looked up once, and its problem names the first element that has it.
        first = {e.type: e for e in reversed(elements)}
        found = {t: self._lookup(kind, t, e) for t, e in reversed(first.items())}
        return tuple(found[e.type] for e in elements)

    def _sizes(self, types: _Types) -> dict[str, int]:
        """Return the sizes of a state's parts; empty where a type is unknown."""
        if None in (*types.joint, *types.actuator):
            return {}
        return {
            "q": sum(t.q_width for t in types.joint),
            "qd": sum(t.qd_width for t in types.joint),
            "activation": sum(t.stateful for t in types.actuator),
            "ctrl": len(types.actuator),
        }

    def _check_sensors(
        self, fused: FusedDescription, joints: Sequence[Element], types: _Types
    ) -> None:
        """Record the problems of the sensors whose types are known."""
        elements = self._elements() | {"joint": joints, "geom": fused.geoms, "site": fused.sites}
        known = zip(joints, types.joint, strict=True)
        widths = {j.name: t.q_width for j, t in known if t is not None}
        for sensor, kind in zip(self._sensors, types.sensor, strict=True):
            if kind is not None:
                self._problems += sensor_checks.sensor(sensor, kind, elements, widths)

    def _check(self, fused: FusedDescription, joints: Sequence[Element], types: _Types) -> None:
        """Record the problems of the elements whose types are known."""
        problems = self._problems
        option = self._chosen_option()
        if not joints:
            problems.append("the model has no moving body: nothing to simulate")
        vectors(problems, OPTION, gravity=(option["gravity"], 3), wind=(option["wind"], 3))
        problems += model_checks.option(option)
        for body in self._bodies:
            problems += model_checks.body(body)
        known = [(j, t) for j, t in zip(joints, types.joint, strict=True) if t is not None]
        for link in fused.links:
            problems += model_checks.link(link, [t for j, t in known if j.body == link.name])
        for joint, kind in known:
            problems += model_checks.joint(joint, kind)
        for geom, kind in zip(fused.geoms, types.geom, strict=True):
            if kind is not None:
                problems += [*geom_checks.geom(geom, kind), *geom_checks.streamed(geom, kind)]
        for pair in self._pairs:
            problems += geom_checks.pair(pair, {g.name: g.body for g in fused.geoms})
        types_of_joints = {j.name: t for j, t in known}
        widths = {name: t.qd_width for name, t in types_of_joints.items()}
        shapes = {g.name: t for g, t in zip(fused.geoms, types.geom, strict=True)}
        for tendon in self._tendons:
            problems += [*model_checks.tendon(tendon, widths), *path_checks.wrapped(tendon, shapes)]
        for equality in self._equalities:
            problems += model_checks.equality(equality, widths)
        for actuator, kind in zip(self._actuators, types.actuator, strict=True):
            if kind is not None:
                problems += model_checks.actuator(actuator, kind, types_of_joints)
        nq = sum(t.q_width for _, t in known)
        if self._init_q is not None and None not in types.joint and self._init_q.shape != (nq,):
            told = f"init_q has {self._init_q.size} numbers; the joints have {nq} coordinates"
            problems.append(told)
