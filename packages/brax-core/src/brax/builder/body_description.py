"""Description of bodies, joints, geoms and sites."""

from typing import Any

from brax.builder.elements import (
    IDENTITY_QUAT,
    SOLIMP,
    SOLREF,
    WORLD,
    Element,
    Table,
    Vector,
    grid,
    padded,
    rows,
    vectors,
)
from brax.colliders import DEFAULT_GEOMETRY
from brax.joints import DEFAULT_JOINT


class BodyDescription:
    """Elements of a description that the bodies carry, and the problems found so far.

    See `Description`.
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
        self._pairs: list[Element] = []
        self._cameras: list[Element] = []
        self._keys: list[Element] = []
        self._excluded: set[frozenset[str]] = set()
        self._problems: list[str] = []

    def _add(self, to: list[Element], element: Element, **given: tuple[Vector, int]) -> str:
        """Record an element, and check its vectors (`given`, each with its length)."""
        element.values |= vectors(self._problems, element, **given)
        to.append(element)
        return element.name

    def add_body(
        self,
        name: str,
        parent: str = WORLD,
        pos: Vector = (0, 0, 0),
        quat: Vector = IDENTITY_QUAT,
        *,
        mass: float = 0.0,
        inertia: Vector = (0, 0, 0),
        ipos: Vector = (0, 0, 0),
        iquat: Vector = IDENTITY_QUAT,
        gravcomp: float = 0.0,
        mocap: bool = False,
        line: str = "",
    ) -> str:
        """Add a body. It moves if it has a joint; else it is fused into the body that carries it.

        Args:
            name: its name.
            parent: name of the body that carries it.
            pos: frame in the parent's frame [m].
            quat: orientation in the parent's frame.
            mass: mass [kg].
            inertia: principal moments about the centre of mass [kg m^2], (3,).
            ipos: centre of mass in the body's frame [m].
            iquat: principal axes in the body's frame.
            gravcomp: share of its weight that is compensated.
            mocap: True if `State.mocap` places it: a child of the world without joints.
            line: its place in a file, for messages, such as " (ant.xml:12)".

        Returns:
            The name.
        """
        values = dict(parent=parent, mass=mass, gravcomp=float(gravcomp), mocap=bool(mocap))
        return self._add(
            self._bodies,
            Element("body", name, values, line),
            pos=(pos, 3),
            quat=(quat, 4),
            inertia=(inertia, 3),
            ipos=(ipos, 3),
            iquat=(iquat, 4),
        )

    def add_joint(
        self,
        body: str,
        type: str = DEFAULT_JOINT,
        name: str = "",
        pos: Vector = (0, 0, 0),
        axis: Vector = (0, 0, 1),
        *,
        range: Vector | None = None,
        stiffness: float | Vector = 0.0,
        stiffness_poly: Vector = (0.0, 0.0),
        springref: float | Vector = 0.0,
        damping: float | Vector = 0.0,
        damping_poly: Vector = (0.0, 0.0),
        armature: float | Vector = 0.0,
        frictionloss: float | Vector = 0.0,
        ref: float | Vector = 0.0,
        margin: float = 0.0,
        actuator_range: Vector | None = None,
        actuator_gravcomp: bool = False,
        solref_limit: Vector = SOLREF,
        solimp_limit: Vector = SOLIMP,
        solref_friction: Vector = SOLREF,
        solimp_friction: Vector = SOLIMP,
        user: Vector = (),
        line: str = "",
    ) -> str:
        """Add a joint to a body; joints of one body act in the order in which they are added.

        Args:
            body: the body that it moves.
            type: a registered joint type.
            name: its name; by default the body's, the type and a number.
            pos: anchor in the body's frame [m].
            axis: axis in the body's frame; normalized.
            range: lower and upper limit of the coordinate [rad or m]; unlimited if None.
            stiffness: stiffness of the joint's spring [N m/rad or N/m], one number or one per
                degree of freedom.
            stiffness_poly: coefficients of the spring's terms of second and third order: its force
                is -(stiffness x + a x² + b x³) at a displacement x.
            springref: coordinate at which the spring is at rest [rad or m].
            damping: viscous damping [N m s/rad or N s/m].
            damping_poly: coefficients of terms of second and third order, of the rate's magnitude.
            armature: rotor inertia [kg m^2 or kg].
            frictionloss: dry friction [N m or N].
            ref: coordinate in the pose in which the body is described [rad or m].
            margin: distance from a limit at which it begins to act [rad or m].
            actuator_range: bounds of the total force of its actuators [N m or N]; unlimited if
                None.
            actuator_gravcomp: True if the gravity compensation along the joint is a force of its
                actuators, which the bounds apply to.
            solref_limit: MuJoCo's time constant [s] and damping ratio of the limits.
            solimp_limit: MuJoCo's impedance of the limits.
            solref_friction: the same of the dry friction.
            solimp_friction: the same of the dry friction.
            user: numbers that the joint type asks for.
            line: its place in a file, for messages.

        Returns:
            The name.
        """
        name = name or f"{body}_{type}{len(self._joints)}"
        values: dict[str, Any] = dict(body=body, type=type, user=tuple(float(u) for u in user))
        values |= dict(range=range, actuator_range=actuator_range, margin=margin, ref=ref)
        values |= dict(actuator_gravcomp=bool(actuator_gravcomp))
        values |= dict(stiffness=stiffness, springref=springref, damping=damping)
        values |= dict(armature=armature, frictionloss=frictionloss)
        limit = dict(solref_limit=(solref_limit, 2), solimp_limit=(solimp_limit, 5))
        friction = dict(solref_friction=(solref_friction, 2), solimp_friction=(solimp_friction, 5))
        joint = Element("joint", name, values, line)
        poly = dict(stiffness_poly=(stiffness_poly, 2), damping_poly=(damping_poly, 2))
        vectors = dict(pos=(pos, 3), axis=(axis, 3)) | limit | friction | poly
        return self._add(self._joints, joint, **vectors)

    def add_geom(
        self,
        body: str = WORLD,
        type: str = DEFAULT_GEOMETRY,
        name: str = "",
        pos: Vector = (0, 0, 0),
        quat: Vector = IDENTITY_QUAT,
        *,
        size: Vector = (),
        points: Table = (),
        heights: Table = (),
        friction: Vector = (1.0, 0.005, 0.0001),
        elasticity: float = 0.0,
        condim: int = 3,
        priority: int = 0,
        solref: Vector = SOLREF,
        solimp: Vector = SOLIMP,
        solmix: float = 1.0,
        margin: float = 0.0,
        gap: float = 0.0,
        adhesion: float = 0.0,
        surface_velocity: Vector = (0, 0, 0, 0, 0, 0),
        fluidcoef: Vector | None = None,
        fluid_added: Vector | None = None,
        rgba: Vector = (0.5, 0.5, 0.5, 1.0),
        contype: int = 1,
        conaffinity: int = 1,
        line: str = "",
    ) -> str:
        """Add a shape to a body or to the world.

        Args:
            body: the body that carries it.
            type: a registered geometry type.
            name: its name; by default the body's, the type and a number.
            pos: frame in the body's frame [m].
            quat: orientation in the body's frame.
            size: MuJoCo's size parameters of the type [m].
            points: vertices in the geom's frame [m], (n, 3), of a type that has some.
            heights: heights of a height field over the plane z = 0 of its frame [m], (rows,
                columns): rows along y, columns along x, from the least to the largest. Of a grid
                of signed distances, its coefficients, n * n rows of n: rows along x and y.
            friction: sliding, torsional and rolling friction.
            elasticity: coefficient of restitution, 0 to 1.
            condim: 1 without friction, 3 with sliding friction, 4 with torsional friction as well,
                6 with rolling friction as well; a pair has the larger.
            priority: of two geoms with different priorities, the higher one's friction, `condim`,
                `solref` and `solimp` count.
            solref: MuJoCo's time constant [s] and damping ratio of contacts.
            solimp: MuJoCo's impedance of contacts.
            solmix: weight of `solref` and `solimp` in a pair.
            margin: distance at which contacts begin to act [m]; a pair has the sum.
            gap: distance beyond the margin up to which adhesion acts [m]; a pair has the sum.
            adhesion: force with which its surface pulls what it touches [N]; a pair has the sum, or
                that of the geom of higher priority.
            surface_velocity: linear [m/s] and angular velocity [rad/s] of its surface about its
                origin, in its frame, as contacts see it: a conveyor belt or a turntable.
            fluidcoef: blunt drag, slender drag, angular drag, Kutta lift and Magnus lift of the
                ellipsoid model, MuJoCo's `fluidshape` and `fluidcoef`; None for the inertia-box
                model. Bodies of the link without such geoms act as boxes.
            fluid_added: added mass and inertia of the ellipsoid at density one [kg, kg m^2], (6,);
                computed if None.
            rgba: colour and opacity, 0 to 1.
            contype: bits of its collision types; two geoms are tested if the bits of one meet the
                `conaffinity` of the other.
            conaffinity: bits of the types that it collides with; with both 0 it is only drawn.
            line: its place in a file, for messages.

        Returns:
            The name.
        """
        name = name or f"{body}_{type}{len(self._geoms)}"
        values: dict[str, Any] = dict(body=body, type=type, condim=condim, solmix=solmix)
        values |= dict(elasticity=elasticity, margin=margin, gap=gap, adhesion=adhesion)
        values |= dict(priority=int(priority))
        values |= dict(contype=int(contype), conaffinity=int(conaffinity))
        values |= dict(streamed=fluidcoef is not None, fluid_added=None)
        geom = Element("geom", name, values, line)
        values["points"] = rows(self._problems, geom, points)
        values["heights"] = grid(self._problems, geom, heights)
        given = dict(pos=(pos, 3), quat=(quat, 4), size=(padded(size, 3), 3), rgba=(rgba, 4))
        given |= dict(friction=(friction, 3), solref=(solref, 2), solimp=(solimp, 5))
        given |= dict(surface_velocity=(surface_velocity, 6))
        given |= dict(fluidcoef=((0.0,) * 5 if fluidcoef is None else fluidcoef, 5))
        given |= {} if fluid_added is None else dict(fluid_added=(fluid_added, 6))
        return self._add(self._geoms, geom, **given)

    def add_site(
        self,
        body: str,
        name: str,
        pos: Vector = (0, 0, 0),
        quat: Vector = IDENTITY_QUAT,
        *,
        type: str = DEFAULT_GEOMETRY,
        size: Vector = (0.005,),
        line: str = "",
    ) -> str:
        """Add a named frame on a body or on the world, where sensors measure and actuators act.

        Args:
            body: the body that carries it.
            name: its name.
            pos: frame in the body's frame [m].
            quat: orientation in the body's frame.
            type: a registered geometry type, the shape that it is drawn as.
            size: MuJoCo's size parameters of the type [m].
            line: its place in a file, for messages.

        Returns:
            The name.
        """
        return self._add(
            self._sites,
            Element("site", name, dict(body=body, type=type), line),
            pos=(pos, 3),
            quat=(quat, 4),
            size=(padded(size, 3), 3),
        )

    def exclude(self, body1: str, body2: str) -> None:
        """Exclude the pairs of geoms of two bodies from collision detection."""
        self._excluded.add(frozenset((body1, body2)))

    def add_problem(self, problem: str) -> None:
        """Record a problem that a reader has found; `build` raises with it and all the others."""
        self._problems.append(problem)
