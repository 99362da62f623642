"""What a model consists of, described element by element."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from brax.actuators import DEFAULT_ACTUATOR
from brax.builder.elements import NO_TURN, SOLIMP, SOLREF, WORLD, Element, rows, vectors
from brax.colliders import DEFAULT_GEOMETRY
from brax.joints import DEFAULT_JOINT


class Description:
    """Bodies, joints, geoms, sites, tendons, equalities and actuators, described one by one.

    Frames and units follow `docs/conventions.md`; angles are radians. Vectors may be any sequence
    of numbers.
    """

    def __init__(self) -> None:
        self._bodies: list[Element] = []
        self._joints: list[Element] = []
        self._geoms: list[Element] = []
        self._sites: list[Element] = []
        self._tendons: list[Element] = []
        self._equalities: list[Element] = []
        self._actuators: list[Element] = []
        self._sensors: list[Element] = []
        self._excluded: set[frozenset[str]] = set()
        self._problems: list[str] = []

    def add_body(
        self,
        name: str,
        parent: str = WORLD,
        pos: Sequence[float] = (0, 0, 0),
        quat: Sequence[float] = NO_TURN,
        *,
        mass: float = 0.0,
        inertia: Sequence[float] = (0, 0, 0),
        ipos: Sequence[float] = (0, 0, 0),
        iquat: Sequence[float] = NO_TURN,
        line: str = "",
    ) -> str:
        """Adds a body. It moves if it has a joint; else it is part of what carries it.

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
            **vectors(
                self._problems,
                f"body '{name}'{line}",
                pos=(pos, 3),
                quat=(quat, 4),
                inertia=(inertia, 3),
                ipos=(ipos, 3),
                iquat=(iquat, 4),
            ),
        )
        self._bodies.append(Element("body", name, values, line))
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
        frictionloss: float | Sequence[float] = 0.0,
        ref: float | Sequence[float] = 0.0,
        margin: float = 0.0,
        actuator_range: Sequence[float] | None = None,
        solref_limit: Sequence[float] = SOLREF,
        solimp_limit: Sequence[float] = SOLIMP,
        solref_friction: Sequence[float] = SOLREF,
        solimp_friction: Sequence[float] = SOLIMP,
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
            frictionloss: dry friction.
            ref: coordinate at which the body stands as it is described.
            margin: distance from a limit at which it begins to act.
            actuator_range: bounds of the force of all actuators together; unlimited if None.
            solref_limit: MuJoCo's time constant [s] and damping ratio of the limits.
            solimp_limit: MuJoCo's impedance of the limits.
            solref_friction: the same of the dry friction.
            solimp_friction: the same of the dry friction.
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
            frictionloss=frictionloss,
            ref=ref,
            margin=margin,
            actuator_range=actuator_range,
            user=tuple(float(u) for u in user),
            **vectors(
                self._problems,
                f"joint '{name}'{line}",
                pos=(pos, 3),
                axis=(axis, 3),
                solref_limit=(solref_limit, 2),
                solimp_limit=(solimp_limit, 5),
                solref_friction=(solref_friction, 2),
                solimp_friction=(solimp_friction, 5),
            ),
        )
        self._joints.append(Element("joint", name, values, line))
        return name

    def add_geom(
        self,
        body: str = WORLD,
        type: str = DEFAULT_GEOMETRY,
        name: str = "",
        pos: Sequence[float] = (0, 0, 0),
        quat: Sequence[float] = NO_TURN,
        *,
        size: Sequence[float] = (),
        points: Sequence[Sequence[float]] = (),
        friction: Sequence[float] = (1.0, 0.005, 0.0001),
        elasticity: float = 0.0,
        condim: int = 3,
        priority: int = 0,
        solref: Sequence[float] = SOLREF,
        solimp: Sequence[float] = SOLIMP,
        solmix: float = 1.0,
        margin: float = 0.0,
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
            points: of a type that has some, in the geom's frame [m], (n, 3).
            friction: sliding, torsional and rolling friction.
            elasticity: coefficient of restitution, 0 to 1.
            condim: 1 without friction, 3 with that of sliding, 4 with that of twisting too, 6 with
                that of rolling too; a pair has the larger.
            priority: where two geoms differ, the higher one's friction, `condim`, `solref` and
                `solimp` count alone.
            solref: MuJoCo's time constant [s] and damping ratio of contacts.
            solimp: MuJoCo's impedance of contacts.
            solmix: weight of `solref` and `solimp` in a pair.
            margin: distance at which contacts begin to act [m]; a pair has the sum.
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
            condim=condim,
            priority=int(priority),
            solmix=solmix,
            margin=margin,
            contype=int(contype),
            conaffinity=int(conaffinity),
            points=rows(self._problems, f"geom '{name}'{line}", points),
            **vectors(
                self._problems,
                f"geom '{name}'{line}",
                pos=(pos, 3),
                quat=(quat, 4),
                size=(padded, 3),
                friction=(friction, 3),
                solref=(solref, 2),
                solimp=(solimp, 5),
                rgba=(rgba, 4),
            ),
        )
        self._geoms.append(Element("geom", name, values, line))
        return name

    def add_site(
        self,
        body: str,
        name: str,
        pos: Sequence[float] = (0, 0, 0),
        quat: Sequence[float] = NO_TURN,
        *,
        type: str = DEFAULT_GEOMETRY,
        size: Sequence[float] = (0.005,),
        line: str = "",
    ) -> str:
        """Adds a place on a body or on the world, where sensors measure and actuators act.

        Args:
            body: the body that carries it.
            name: its name.
            pos: frame in the body's frame [m].
            quat: orientation in the body's frame.
            type: a registered geometry type, the shape that it is drawn as.
            size: MuJoCo's size parameters of the type [m].
            line: where it stands in a file, for messages.

        Returns:
            The name.
        """
        padded = tuple(size) + (0.0,) * (3 - len(tuple(size)))
        values = dict(
            body=body,
            type=type,
            **vectors(
                self._problems,
                f"site '{name}'{line}",
                pos=(pos, 3),
                quat=(quat, 4),
                size=(padded, 3),
            ),
        )
        self._sites.append(Element("site", name, values, line))
        return name

    def add_tendon(
        self,
        joints: Mapping[str, float],
        name: str,
        *,
        stiffness: float = 0.0,
        damping: float = 0.0,
        lengthspring: Sequence[float] | None = None,
        range: Sequence[float] | None = None,
        margin: float = 0.0,
        frictionloss: float = 0.0,
        solref_limit: Sequence[float] = SOLREF,
        solimp_limit: Sequence[float] = SOLIMP,
        solref_friction: Sequence[float] = SOLREF,
        solimp_friction: Sequence[float] = SOLIMP,
        line: str = "",
    ) -> str:
        """Adds a fixed tendon, as long as a weighted sum of joint coordinates.

        Args:
            joints: the joints that it runs over, each of one degree of freedom, and their weights.
            name: its name.
            stiffness: of a spring along it.
            damping: along it.
            lengthspring: shortest and longest length at which the spring is at rest; by default
                its length with the joints at their `springref`.
            range: lower and upper limit of the length; unlimited if None.
            margin: distance from a limit at which it begins to act.
            frictionloss: dry friction.
            solref_limit: MuJoCo's time constant [s] and damping ratio of the limits.
            solimp_limit: MuJoCo's impedance of the limits.
            solref_friction: the same of the dry friction.
            solimp_friction: the same of the dry friction.
            line: where it stands in a file, for messages.

        Returns:
            The name.
        """
        values = dict(
            joints=dict(joints),
            stiffness=float(stiffness),
            damping=float(damping),
            lengthspring=lengthspring,
            range=range,
            margin=float(margin),
            frictionloss=float(frictionloss),
            **vectors(
                self._problems,
                f"tendon '{name}'{line}",
                solref_limit=(solref_limit, 2),
                solimp_limit=(solimp_limit, 5),
                solref_friction=(solref_friction, 2),
                solimp_friction=(solimp_friction, 5),
            ),
        )
        self._tendons.append(Element("tendon", name, values, line))
        return name

    def add_connect(
        self,
        body1: str,
        body2: str = WORLD,
        name: str = "",
        *,
        anchor: Sequence[float] = (0, 0, 0),
        anchor2: Sequence[float] | None = None,
        solref: Sequence[float] = SOLREF,
        solimp: Sequence[float] = SOLIMP,
        line: str = "",
    ) -> str:
        """Ties a point of one body to a point of another: a ball joint that closes a loop.

        Args:
            body1: a body.
            body2: the other; by default the world.
            name: its name; by default that of the bodies.
            anchor: the point in the first body's frame [m].
            anchor2: the point in the second's; by default where the first one's is in the model as
                it is described.
            solref: MuJoCo's time constant [s] and damping ratio.
            solimp: MuJoCo's impedance.
            line: where it stands in a file, for messages.

        Returns:
            The name.
        """
        given = {"anchor": (anchor, 3)} | ({} if anchor2 is None else {"anchor2": (anchor2, 3)})
        values = dict(anchor2=None)
        return self._equality("connect", body1, body2, name, line, values, given, solref, solimp)

    def add_weld(
        self,
        body1: str,
        body2: str = WORLD,
        name: str = "",
        *,
        anchor: Sequence[float] = (0, 0, 0),
        relpose: Sequence[float] | None = None,
        torquescale: float = 1.0,
        solref: Sequence[float] = SOLREF,
        solimp: Sequence[float] = SOLIMP,
        line: str = "",
    ) -> str:
        """Ties one body to another, softly.

        Args:
            body1: a body.
            body2: the other; by default the world.
            name: its name; by default that of the bodies.
            anchor: the point where they are tied, in the second body's frame [m].
            relpose: that point in the first body's frame [m], and the quaternion of the second
                body in the first, (7,); by default as in the model as it is described.
            torquescale: how much a turn counts beside a shift [m].
            solref: MuJoCo's time constant [s] and damping ratio.
            solimp: MuJoCo's impedance.
            line: where it stands in a file, for messages.

        Returns:
            The name.
        """
        given = {"anchor": (anchor, 3)} | ({} if relpose is None else {"relpose": (relpose, 7)})
        values = dict(relpose=None, torquescale=float(torquescale))
        return self._equality("weld", body1, body2, name, line, values, given, solref, solimp)

    def add_coupling(
        self,
        first: str,
        second: str = "",
        name: str = "",
        *,
        of: str = "joint",
        polycoef: Sequence[float] = (0, 1, 0, 0, 0),
        solref: Sequence[float] = SOLREF,
        solimp: Sequence[float] = SOLIMP,
        line: str = "",
    ) -> str:
        """Ties the coordinate of a joint, or the length of a tendon, to another's.

        Both are counted from what they are in the model as it is described: the first is to be a
        polynomial of the second.

        Args:
            first: a joint of one degree of freedom, or a tendon.
            second: the other; if there is none the first is held at the constant coefficient.
            name: its name; by default that of the two.
            of: 'joint' or 'tendon'.
            polycoef: the polynomial's five coefficients, the constant one first.
            solref: MuJoCo's time constant [s] and damping ratio.
            solimp: MuJoCo's impedance.
            line: where it stands in a file, for messages.

        Returns:
            The name.
        """
        given = {"polycoef": (polycoef, 5)}
        return self._equality(of, first, second, name, line, {}, given, solref, solimp)

    def _equality(
        self,
        kind: str,
        first: str,
        second: str,
        name: str,
        line: str,
        values: dict[str, Any],
        given: dict[str, Any],
        solref: Sequence[float],
        solimp: Sequence[float],
    ) -> str:
        name = name or f"{first}_{second}_{kind}"
        what = f"equality '{name}'{line}"
        numbers = vectors(self._problems, what, **given, solref=(solref, 2), solimp=(solimp, 5))
        values = dict(type=kind, first=first, second=second) | values | numbers
        self._equalities.append(Element("equality", name, values, line))
        return name

    def add_actuator(
        self,
        joint: str = "",
        type: str = DEFAULT_ACTUATOR,
        name: str = "",
        *,
        tendon: str = "",
        site: str = "",
        refsite: str = "",
        gear: float = 1.0,
        wrench: Sequence[float] = (0, 0, 1, 0, 0, 0),
        gainprm: Sequence[float] = (1.0,),
        biasprm: Sequence[float] = (),
        dynprm: Sequence[float] = (),
        length_range: Sequence[float] = (0.0, 0.0),
        ctrl_range: Sequence[float] | None = None,
        activation_range: Sequence[float] | None = None,
        force_range: Sequence[float] | None = None,
        early: bool = False,
        line: str = "",
    ) -> str:
        """Adds an actuator, which drives a joint, pulls a tendon or acts on a site: one of them.

        Args:
            joint: the joint that it drives, with one degree of freedom.
            type: a registered actuator type; 'affine' is MuJoCo's motor, position and velocity.
            name: its name; by default that of what it drives, and the type.
            tendon: the tendon that it pulls.
            site: the site that it acts on.
            refsite: the site that it acts against; it then has a length.
            gear: transmission ratio.
            wrench: force and torque on the site per unit, in its axes or the reference site's.
            gainprm: up to ten gain parameters.
            biasprm: up to ten bias parameters.
            dynprm: up to ten parameters of the dynamics of the activation.
            length_range: smallest and largest length of a muscle.
            ctrl_range: bounds of the control; unlimited if None.
            activation_range: bounds of the activation, if it has one; unlimited if None.
            force_range: bounds of the force [N or N m]; unlimited if None.
            early: whether the force is that of the activation after the step, so that there is no
                delay of one step between control and force.
            line: where it stands in a file, for messages.

        Returns:
            The name.
        """
        name = name or f"{joint or tendon or site}_{type}"
        values = dict(
            joint=joint,
            tendon=tendon,
            site=site,
            refsite=refsite,
            type=type,
            gear=gear,
            ctrl_range=ctrl_range,
            activation_range=activation_range,
            force_range=force_range,
            early=bool(early),
            **vectors(
                self._problems,
                f"actuator '{name}'{line}",
                wrench=(wrench if site else (0.0,) * 6, 6),
                gainprm=(_padded(gainprm), 10),
                biasprm=(_padded(biasprm), 10),
                dynprm=(_padded(dynprm), 10),
                length_range=(length_range, 2),
            ),
        )
        self._actuators.append(Element("actuator", name, values, line))
        return name

    def add_sensor(
        self,
        type: str,
        object: tuple[str, str],
        name: str = "",
        *,
        reference: tuple[str, str] | None = None,
        cutoff: float = np.inf,
        line: str = "",
    ) -> str:
        """Adds a sensor, which `brax.sensors.sensors` reads.

        Args:
            type: a registered sensor type.
            object: kind and name of what it measures, such as ("joint", "hip"): a joint, tendon,
                actuator, body, geom or site, or the inertia of a body.
            name: its name; by default that of what it measures, and the type.
            reference: kind and name of what it measures in the frame of; the world if None.
            cutoff: bound of its numbers.
            line: where it stands in a file, for messages.

        Returns:
            The name.
        """
        name = name or f"{object[1]}_{type}"
        values = dict(type=type, object=tuple(object), reference=reference, cutoff=float(cutoff))
        self._sensors.append(Element("sensor", name, values, line))
        return name

    def exclude(self, body1: str, body2: str) -> None:
        """Takes the pairs between two bodies out of collision."""
        self._excluded.add(frozenset((body1, body2)))

    def refuse(self, problem: str) -> None:
        """Notes a problem that a reader has found; `build` raises with it and all the others."""
        self._problems.append(problem)


def _padded(numbers: Sequence[float]) -> tuple[float, ...]:
    """A list of parameters, filled up with zeros to ten."""
    return (*numbers, *(0.0,) * (10 - len(tuple(numbers))))
