"""The one way to make a `System`: describe bodies, joints, geoms and actuators, then `build`.

Every model reader goes through it. It is where names of plugins become objects, and where a model
is refused, with all of its problems in one message.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from brax import plugins
from brax.actuators import DEFAULT_ACTUATOR
from brax.base import Actuator, DoF, Geom, Inertia, Joint, Link, Option, System, Transform
from brax.colliders import DEFAULT_GEOMETRY, CollisionGroup
from brax.errors import BraxError, ModelError, closest
from brax.integrators import DEFAULT_INTEGRATOR
from brax.joints import DEFAULT_JOINT

WORLD = "world"
"""Name of the body that does not move."""

_LARGEST = float(np.finfo(np.float32).max)
"""What is larger is infinite in JAX's default precision."""

_NO_TURN = (1.0, 0.0, 0.0, 0.0)


@dataclasses.dataclass
class _Element:
    """A body, joint, geom or actuator as it was described."""

    kind: str
    name: str
    values: dict[str, Any]
    line: str = ""

    def __getattr__(self, key: str) -> Any:
        if key == "values":
            raise AttributeError(key)
        return self.values[key]

    def __str__(self) -> str:
        """How messages name it."""
        return f"{self.kind} '{self.name}'{self.line}"


class ModelBuilder:
    """A model in the making.

    Frames and units follow `docs/conventions.md`; angles are radians. Vectors may be any sequence
    of numbers. A body without joints is not allowed except the world: give its geoms and its mass
    to the body that carries it.
    """

    def __init__(self) -> None:
        self._bodies: list[_Element] = []
        self._joints: list[_Element] = []
        self._geoms: list[_Element] = []
        self._actuators: list[_Element] = []
        self._excluded: set[frozenset[str]] = set()
        self._excluded_geoms: set[frozenset[str]] = set()
        self._problems: list[str] = []
        self._option: dict[str, Any] = {
            "timestep": 0.002,
            "gravity": (0.0, 0.0, -9.81),
            "integrator": DEFAULT_INTEGRATOR,
            "vel_damping": 0.0,
            "ang_damping": 0.0,
            "baumgarte_erp": 0.1,
        }
        self._init_q: Any = None

    def add_body(
        self,
        name: str,
        parent: str = WORLD,
        pos: Sequence[float] = (0, 0, 0),
        quat: Sequence[float] = _NO_TURN,
        *,
        mass: float,
        inertia: Sequence[float],
        ipos: Sequence[float] = (0, 0, 0),
        iquat: Sequence[float] = _NO_TURN,
        line: str = "",
    ) -> str:
        """Adds a moving body.

        Args:
            name: its name.
            parent: name of the body that carries it, added before.
            pos: frame in the parent's frame [m].
            quat: orientation in the parent's frame.
            mass: mass [kg].
            inertia: principal moments about the centre of mass [kg m^2], (3,).
            ipos: centre of mass in the body's frame [m].
            iquat: principal axes in the body's frame.
            line: where it stands in a file, for messages, such as " (ant.xml:12)".

        Returns:
            The name.
        """
        values = dict(
            parent=parent,
            mass=mass,
            **self._vectors(
                f"body '{name}'{line}",
                pos=(pos, 3),
                quat=(quat, 4),
                inertia=(inertia, 3),
                ipos=(ipos, 3),
                iquat=(iquat, 4),
            ),
        )
        self._bodies.append(_Element("body", name, values, line))
        return name

    def add_joint(
        self,
        body: str,
        type: str = DEFAULT_JOINT,
        name: str = "",
        pos: Sequence[float] = (0, 0, 0),
        axis: Sequence[float] = (0, 0, 1),
        *,
        range: Sequence[float] | None = None,
        stiffness: float | Sequence[float] = 0.0,
        springref: float | Sequence[float] = 0.0,
        damping: float | Sequence[float] = 0.0,
        armature: float | Sequence[float] = 0.0,
        user: Sequence[float] = (),
        line: str = "",
    ) -> str:
        """Adds a joint to a body; joints of one body act in the order they are added.

        Args:
            body: the body that it moves.
            type: a registered joint type.
            name: its name; by default the body's, the type and a number.
            pos: anchor in the body's frame [m].
            axis: axis in the body's frame; normalized.
            range: lower and upper limit of the coordinate; unlimited if None.
            stiffness: of the joint's spring, one number or one per degree of freedom.
            springref: coordinate at which the spring is at rest.
            damping: viscous damping.
            armature: rotor inertia.
            user: numbers that the joint type asks for.
            line: where it stands in a file, for messages.

        Returns:
            The name.
        """
        name = name or f"{body}_{type}{len(self._joints)}"
        values = dict(
            body=body,
            type=type,
            range=range,
            stiffness=stiffness,
            springref=springref,
            damping=damping,
            armature=armature,
            user=tuple(float(u) for u in user),
            **self._vectors(f"joint '{name}'{line}", pos=(pos, 3), axis=(axis, 3)),
        )
        self._joints.append(_Element("joint", name, values, line))
        return name

    def add_geom(
        self,
        body: str = WORLD,
        type: str = DEFAULT_GEOMETRY,
        name: str = "",
        pos: Sequence[float] = (0, 0, 0),
        quat: Sequence[float] = _NO_TURN,
        *,
        size: Sequence[float] = (),
        friction: Sequence[float] = (1.0, 0.005, 0.0001),
        elasticity: float = 0.0,
        rgba: Sequence[float] = (0.5, 0.5, 0.5, 1.0),
        contype: int = 1,
        conaffinity: int = 1,
        line: str = "",
    ) -> str:
        """Adds a shape to a body or to the world.

        Args:
            body: the body that carries it.
            type: a registered geometry type.
            name: its name; by default the body's, the type and a number.
            pos: frame in the body's frame [m].
            quat: orientation in the body's frame.
            size: MuJoCo's size parameters of the type [m].
            friction: sliding, torsional and rolling friction.
            elasticity: coefficient of restitution, 0 to 1.
            rgba: colour and opacity, 0 to 1.
            contype: bits of what it is; two geoms are tested if the bits of one meet the
                conaffinity of the other.
            conaffinity: bits of what it meets; with both 0 it is only drawn.
            line: where it stands in a file, for messages.

        Returns:
            The name.
        """
        name = name or f"{body}_{type}{len(self._geoms)}"
        padded = tuple(size) + (0.0,) * (3 - len(tuple(size)))
        values = dict(
            body=body,
            type=type,
            elasticity=elasticity,
            contype=int(contype),
            conaffinity=int(conaffinity),
            **self._vectors(
                f"geom '{name}'{line}",
                pos=(pos, 3),
                quat=(quat, 4),
                size=(padded, 3),
                friction=(friction, 3),
                rgba=(rgba, 4),
            ),
        )
        self._geoms.append(_Element("geom", name, values, line))
        return name

    def add_actuator(
        self,
        joint: str,
        type: str = DEFAULT_ACTUATOR,
        name: str = "",
        *,
        gear: float = 1.0,
        gainprm: Sequence[float] = (1.0,),
        biasprm: Sequence[float] = (),
        ctrl_range: Sequence[float] | None = None,
        force_range: Sequence[float] | None = None,
        line: str = "",
    ) -> str:
        """Adds an actuator that drives a joint with one degree of freedom.

        Args:
            joint: the joint that it drives.
            type: a registered actuator type; 'affine' is MuJoCo's motor, position and velocity.
            name: its name; by default the joint's.
            gear: transmission ratio.
            gainprm: up to ten gain parameters.
            biasprm: up to ten bias parameters.
            ctrl_range: bounds of the control; unlimited if None.
            force_range: bounds of the force [N or N m]; unlimited if None.
            line: where it stands in a file, for messages.

        Returns:
            The name.
        """
        name = name or f"{joint}_{type}"
        values = dict(
            joint=joint,
            type=type,
            gear=gear,
            ctrl_range=ctrl_range,
            force_range=force_range,
            gainprm=tuple(gainprm) + (0.0,) * (10 - len(tuple(gainprm))),
            biasprm=tuple(biasprm) + (0.0,) * (10 - len(tuple(biasprm))),
        )
        self._actuators.append(_Element("actuator", name, values, line))
        return name

    def exclude(self, body1: str, body2: str) -> None:
        """Takes the pairs between two bodies out of collision."""
        self._excluded.add(frozenset((body1, body2)))

    def exclude_geoms(self, geom1: str, geom2: str) -> None:
        """Takes the pair of two geoms out of collision."""
        self._excluded_geoms.add(frozenset((geom1, geom2)))

    def refuse(self, problem: str) -> None:
        """Notes a problem that a reader has found; `build` raises with it and all the others."""
        self._problems.append(problem)

    def set_option(self, **options: Any) -> None:
        """Sets `timestep`, `gravity`, `integrator`, `vel_damping`, `ang_damping`, `baumgarte_erp`.

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

    def set_init_q(self, q: Sequence[float]) -> None:
        """Sets the coordinates that the model starts at; by default every joint at rest."""
        self._init_q = np.asarray(q, float)

    def build(self) -> System:
        """Makes the `System`.

        Raises:
            ModelError: naming everything that is wrong with the description.
        """
        self._order_bodies()
        joints = self._joints_by_body()
        types = self._resolve("joint_type", joints)
        geom_types = self._resolve("geometry_type", self._geoms)
        actuator_types = self._resolve("actuator", self._actuators)
        self._check(joints, types, geom_types)
        integrator = self._lookup("integrator", self._option["integrator"], "option")
        collisions = self._collisions() if not self._problems else ()
        self._raise_problems()
        return self._assemble(joints, types, geom_types, actuator_types, collisions, integrator)

    # Checks.

    def _vectors(self, what: str, **given: tuple[Sequence[float], int]) -> dict[str, Any]:
        """Converts vectors to tuples, noting those of a wrong length or that are not finite."""
        out = {}
        for key, (value, length) in given.items():
            try:
                vector = np.asarray(value, float).reshape(-1)
            except (TypeError, ValueError):
                vector = np.array([])
            if vector.shape != (length,):
                self._problems.append(f"{what}: {key} needs {length} numbers, got {value!r}")
                vector = np.zeros(length)
            elif not np.isfinite(vector).all():
                self._problems.append(f"{what}: {key} is not finite: {vector.tolist()}")
            if key in ("quat", "iquat", "axis"):
                length_ = np.linalg.norm(vector)
                if length_ < 1e-10:
                    self._problems.append(f"{what}: {key} is zero")
                vector = vector / max(length_, 1e-300)
            out[key] = vector
        return out

    def _lookup(self, kind: str, name: str, what: Any) -> Any:
        try:
            return plugins.get(kind, name)
        except BraxError as error:
            self._problems.append(f"{what}: {error}")
            return None

    def _resolve(self, kind: str, elements: list[_Element]) -> tuple[Any, ...]:
        found = {
            t: self._lookup(kind, t, next(e for e in elements if e.type == t))
            for t in dict.fromkeys(e.type for e in elements)
        }
        return tuple(found[e.type] for e in elements)

    def _order_bodies(self) -> None:
        """Notes duplicates, missing parents, and parents that come after their children."""
        seen = {WORLD}
        for body in self._bodies:
            if body.name in seen:
                self._problems.append(f"{body}: there is another body of that name")
            if body.parent not in seen:
                known = (
                    "comes after it"
                    if body.parent in [b.name for b in self._bodies]
                    else (f"does not exist{closest(body.parent, seen)}")
                )
                self._problems.append(f"{body}: its parent '{body.parent}' {known}")
            seen.add(body.name)
        for kind in (self._joints, self._geoms, self._actuators):
            names = [e.name for e in kind]
            for element in {
                n: e for n, e in zip(names, kind, strict=True) if names.count(n) > 1
            }.values():
                self._problems.append(f"{element}: there is another {element.kind} of that name")
        for element in [*self._joints, *self._geoms]:
            if element.body not in seen:
                self._problems.append(
                    f"{element}: there is no body '{element.body}'.{closest(element.body, seen)}"
                )
        joints = [j.name for j in self._joints]
        for actuator in self._actuators:
            if actuator.joint not in joints:
                self._problems.append(
                    f"{actuator}: there is no joint '{actuator.joint}'."
                    f"{closest(actuator.joint, joints)}"
                )

    def _joints_by_body(self) -> list[_Element]:
        return [j for b in self._bodies for j in self._joints if j.body == b.name]

    def _check(
        self, joints: list[_Element], types: tuple[Any, ...], geom_types: tuple[Any, ...]
    ) -> None:
        if not self._bodies:
            self._problems.append("the model has no moving body: nothing to simulate")
        self._check_option()
        for body in self._bodies:
            self._check_body(
                body,
                [
                    t
                    for j, t in zip(joints, types, strict=True)
                    if j.body == body.name and t is not None
                ],
            )
        for joint, kind in zip(joints, types, strict=True):
            if kind is not None:
                self._check_joint(joint, kind)
        for geom, kind in zip(self._geoms, geom_types, strict=True):
            if kind is not None:
                self._check_geom(geom, kind)
        widths = {j.name: t.qd_width for j, t in zip(joints, types, strict=True) if t is not None}
        for actuator in self._actuators:
            if widths.get(actuator.joint, 1) != 1:
                self._problems.append(
                    f"{actuator}: joint '{actuator.joint}' has {widths[actuator.joint]} degrees "
                    "of freedom; an actuator drives a joint with one"
                )
            numbers = (actuator.gear, *actuator.gainprm, *actuator.biasprm)
            if not np.isfinite(numbers).all():
                self._problems.append(f"{actuator}: its gear or a parameter is not finite")
            for key in ("ctrl_range", "force_range"):
                self._check_range(actuator, key, strict=False)
        if self._init_q is not None and None not in types:
            nq = sum(t.q_width for t in types)
            if self._init_q.shape != (nq,):
                self._problems.append(
                    f"init_q has {self._init_q.size} numbers; the joints have {nq} coordinates"
                )

    def _check_option(self) -> None:
        o = self._option
        if not (np.ndim(o["timestep"]) == 0 and 0 < o["timestep"] < np.inf):
            self._problems.append(f"option timestep must be > 0, got {o['timestep']}")
        self._option["gravity"] = self._vectors("option", gravity=(o["gravity"], 3))["gravity"]
        for key in ("vel_damping", "ang_damping"):
            if not o[key] <= 0:
                self._problems.append(
                    f"{key} is a rate of growth and must be <= 0 to damp, got {o[key]}"
                )
        if not 0 <= o["baumgarte_erp"] <= 1:
            self._problems.append(f"baumgarte_erp must lie in [0, 1], got {o['baumgarte_erp']}")

    def _check_body(self, body: _Element, types: list[Any]) -> None:
        if not types and not any(j.body == body.name for j in self._joints):
            self._problems.append(
                f"{body} has no joint: give its mass and geoms to '{body.parent}'"
            )
        if not 0 < body.mass <= _LARGEST:
            self._problems.append(
                f"{body}: mass must be > 0 and finite in single precision, got {body.mass}"
            )
        a, b, c = sorted(body.inertia.tolist())
        if not 0 < a <= c <= _LARGEST:
            self._problems.append(
                f"{body}: principal moments must be > 0 and finite in single precision, "
                f"got {body.inertia.tolist()}"
            )
        elif a + b < c * (1 - 1e-6):
            self._problems.append(
                f"{body}: principal moments {body.inertia.tolist()} are no "
                "body's: the two smaller must add up to at least the largest"
            )
        if len(types) > 1 and any(_is_free(t) for t in types):
            self._problems.append(f"{body}: a joint with six degrees of freedom must be alone")
        if sum(t.qd_width for t in types) > 6:
            self._problems.append(
                f"{body} has {sum(t.qd_width for t in types)} degrees of freedom; at most 6"
            )
        if any(_is_free(t) for t in types) and body.parent != WORLD:
            self._problems.append(f"{body}: a free joint is only allowed on a child of the world")

    def _check_joint(self, joint: _Element, kind: Any) -> None:
        width = kind.qd_width
        for key in ("stiffness", "springref", "damping", "armature"):
            value = (
                np.broadcast_to(np.asarray(joint.values[key], float), (width,))
                if np.size(joint.values[key]) in (1, width)
                else np.full(width, np.nan)
            )
            if not np.isfinite(value).all() or (key != "springref" and (value < 0).any()):
                self._problems.append(
                    f"{joint}: {key} must be one number or {width}, finite"
                    f"{'' if key == 'springref' else ' and >= 0'}, "
                    f"got {joint.values[key]}"
                )
            joint.values[key] = value
            if kind.q_width != width and (value != 0).any():
                self._problems.append(
                    f"{joint}: {key} is not supported on a joint of type '{kind.name}'; leave it 0"
                )
        if kind.q_width != width and joint.range is not None:
            self._problems.append(f"{joint}: a joint of type '{kind.name}' cannot be limited")
        if len(joint.user) < kind.user_width:
            self._problems.append(
                f"{joint}: type '{kind.name}' needs {kind.user_width} user "
                f"numbers, got {len(joint.user)}"
            )
        self._check_range(joint, "range", strict=True)

    def _check_range(self, element: _Element, key: str, strict: bool) -> None:
        value = element.values[key]
        if value is None:
            return
        value = np.asarray(value, float)
        if (
            value.shape != (2,)
            or np.isnan(value).any()
            or not (value[0] < value[1] if strict else value[0] <= value[1])
        ):
            self._problems.append(
                f"{element}: {key} needs a lower and a larger upper bound, got {value.tolist()}"
            )

    def _check_geom(self, geom: _Element, kind: Any) -> None:
        for name, value in zip(kind.size_names, geom.size, strict=False):
            if not value > 0:
                self._problems.append(f"{geom}: {name} must be > 0, got {value}")
        if kind.only_static and geom.body != WORLD:
            self._problems.append(
                f"{geom}: a {kind.name} is only allowed on the world, not on '{geom.body}'"
            )
        if (geom.friction < 0).any():
            self._problems.append(f"{geom}: friction must be >= 0, got {geom.friction.tolist()}")
        if not 0 <= geom.elasticity <= 1:
            self._problems.append(f"{geom}: elasticity must lie in [0, 1], got {geom.elasticity}")

    def _raise_problems(self) -> None:
        if self._problems:
            raise ModelError.of(self._problems)

    # Assembly.

    def _collisions(self) -> tuple[CollisionGroup, ...]:
        """Groups the geom pairs that may touch by the collider that tests them."""
        colliders = {name: plugins.get("collider", name) for name in plugins.names("collider")}
        by_types = {c.types: c for c in colliders.values()}
        groups: dict[Any, list[tuple[int, int]]] = {}
        for i, a in enumerate(self._geoms):
            for j, b in enumerate(self._geoms[i + 1 :], i + 1):
                if not self._may_touch(a, b):
                    continue
                if (a.type, b.type) in by_types:
                    groups.setdefault(by_types[a.type, b.type], []).append((i, j))
                elif (b.type, a.type) in by_types:
                    groups.setdefault(by_types[b.type, a.type], []).append((j, i))
                else:
                    self._problems.append(
                        f"{a} and {b} can touch, but no collider is registered for {a.type} and "
                        f"{b.type}. Registered: {', '.join(sorted(colliders))}. Take the pair out "
                        "by contype and conaffinity, or install a plugin that brings one"
                    )
        return tuple(
            CollisionGroup(c, *(tuple(k) for k in zip(*pairs, strict=True)))
            for c, pairs in groups.items()
        )

    def _may_touch(self, a: _Element, b: _Element) -> bool:
        """MuJoCo's filter: bits, same body, parent and child (unless it is the world), exclude."""
        if not (a.contype & b.conaffinity or b.contype & a.conaffinity):
            return False
        if a.body == b.body or frozenset((a.body, b.body)) in self._excluded:
            return False
        if frozenset((a.name, b.name)) in self._excluded_geoms:
            return False
        parents = {x.name: x.parent for x in self._bodies}
        return not (
            WORLD not in (a.body, b.body)
            and (parents[a.body] == b.body or parents[b.body] == a.body)
        )

    def _assemble(
        self,
        joints: list[_Element],
        types: tuple[Any, ...],
        geom_types: tuple[Any, ...],
        actuator_types: tuple[Any, ...],
        collisions: tuple[CollisionGroup, ...],
        integrator: Any,
    ) -> System:
        links = {WORLD: -1} | {b.name: i for i, b in enumerate(self._bodies)}
        joint_ids = {j.name: i for i, j in enumerate(joints)}
        option = self._option
        return System(
            opt=Option(_array(option["timestep"], ()), _array(option["gravity"], (3,))),
            link=_link(
                self._bodies, {j.body for j, t in zip(joints, types, strict=True) if _is_free(t)}
            ),
            joint=_joint(joints),
            dof=_dof(joints, types),
            geom=_geom(self._geoms),
            actuator=_actuator(self._actuators),
            init_q=_array(self._rest(types) if self._init_q is None else self._init_q, (-1,)),
            vel_damping=_array(option["vel_damping"], ()),
            ang_damping=_array(option["ang_damping"], ()),
            baumgarte_erp=_array(option["baumgarte_erp"], ()),
            link_names=tuple(b.name for b in self._bodies),
            link_parents=tuple(links[b.parent] for b in self._bodies),
            joint_names=tuple(joint_ids),
            joint_types=types,
            joint_link=tuple(links[j.body] for j in joints),
            joint_limited=tuple(j.range is not None for j in joints),
            geom_names=tuple(g.name for g in self._geoms),
            geom_types=geom_types,
            geom_link=tuple(links[g.body] for g in self._geoms),
            collisions=collisions,
            actuator_names=tuple(a.name for a in self._actuators),
            actuator_types=actuator_types,
            actuator_joint=tuple(joint_ids[a.joint] for a in self._actuators),
            integrator=integrator,
        )

    def _rest(self, types: tuple[Any, ...]) -> np.ndarray:
        """Every joint at zero; a body with a free joint where it is described."""
        bodies = [b for b in self._bodies for j in self._joints if j.body == b.name]
        parts = [
            np.concatenate([b.pos, b.quat])
            if _is_free(t)
            else np.array([float(x) for x in t.zero(np.zeros(()))])
            for b, t in zip(bodies, types, strict=True)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)


def _array(value: Any, shape: tuple[int, ...]) -> Any:
    return jnp.asarray(np.asarray(value, float).reshape(shape))


def _column(elements: list[_Element], key: str, width: int) -> Any:
    return _array([e.values[key] for e in elements], (len(elements), width))


def _is_free(joint_type: Any) -> bool:
    """Whether the coordinates are the pose itself, so that the body's own frame says nothing."""
    return joint_type is not None and joint_type.q_width == 7


def _link(bodies: list[_Element], free: set[str]) -> Link:
    pos = [(0.0, 0.0, 0.0) if b.name in free else b.pos for b in bodies]
    quat = [_NO_TURN if b.name in free else b.quat for b in bodies]
    frame = Transform(_column(bodies, "ipos", 3), _column(bodies, "iquat", 4))
    inertia = Inertia(frame, _column(bodies, "inertia", 3), _column(bodies, "mass", 1)[:, 0])
    return Link(Transform(_array(pos, (-1, 3)), _array(quat, (-1, 4))), inertia)


def _joint(joints: list[_Element]) -> Joint:
    width = max((len(j.user) for j in joints), default=0)
    user = [tuple(j.user) + (0.0,) * (width - len(j.user)) for j in joints]
    return Joint(
        _column(joints, "pos", 3), _column(joints, "axis", 3), _array(user, (len(joints), width))
    )


def _dof(joints: list[_Element], types: tuple[Any, ...]) -> DoF:
    def per_dof(key: str) -> Any:
        return _array(np.concatenate([j.values[key] for j in joints] or [np.zeros(0)]), (-1,))

    bounds = [(-np.inf, np.inf) if j.range is None else j.range for j in joints]
    lower, upper = (
        _array([b[k] for b, t in zip(bounds, types, strict=True) for _ in range(t.qd_width)], (-1,))
        for k in range(2)
    )
    return DoF(
        per_dof("armature"),
        per_dof("damping"),
        per_dof("stiffness"),
        per_dof("springref"),
        (lower, upper),
    )


def _geom(geoms: list[_Element]) -> Geom:
    return Geom(
        Transform(_column(geoms, "pos", 3), _column(geoms, "quat", 4)),
        _column(geoms, "size", 3),
        _column(geoms, "friction", 3),
        _column(geoms, "elasticity", 1)[:, 0],
        _column(geoms, "rgba", 4),
    )


def _actuator(actuators: list[_Element]) -> Actuator:
    ranges = [
        _array(
            [(-np.inf, np.inf) if a.values[key] is None else a.values[key] for a in actuators],
            (len(actuators), 2),
        )
        for key in ("ctrl_range", "force_range")
    ]
    return Actuator(
        _column(actuators, "gear", 1)[:, 0],
        _column(actuators, "gainprm", 10),
        _column(actuators, "biasprm", 10),
        *ranges,
    )
