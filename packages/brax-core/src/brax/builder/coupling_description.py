"""Description of contact pairs, tendons and equality constraints."""

from collections.abc import Mapping, Sequence
from typing import Any

from brax.builder.body_description import BodyDescription
from brax.builder.elements import SOLIMP, SOLREF, WORLD, Element, Vector, vectors
from brax.builder.tendon_paths import path_segments


class CouplingDescription(BodyDescription):
    """Elements of a description that couple its bodies, joints and tendons.

    See `Description`.
    """

    def add_pair(
        self,
        geom1: str,
        geom2: str,
        name: str = "",
        *,
        condim: int = 3,
        friction: Vector = (1.0, 1.0, 0.005, 0.0001, 0.0001),
        solref: Vector = SOLREF,
        solref_friction: Vector = (0.0, 0.0),
        solimp: Vector = SOLIMP,
        margin: float = 0.0,
        gap: float = 0.0,
        adhesion: float = 0.0,
        line: str = "",
    ) -> str:
        """Describe the contacts of two geoms, which are tested whatever their bits.

        Args:
            geom1: the first geom.
            geom2: the second geom, on another body.
            name: its name; by default those of the geoms.
            condim: 1 without friction, 3 with sliding friction, 4 with torsional friction as well,
                6 with rolling friction as well.
            friction: sliding friction along the two tangents, torsional friction, and rolling
                friction about the two tangents.
            solref: MuJoCo's time constant [s] and damping ratio.
            solref_friction: the same for friction, under the elliptic cone; zeros for `solref`.
            solimp: MuJoCo's impedance.
            margin: distance at which the contacts begin to act [m].
            gap: distance beyond the margin up to which adhesion acts [m].
            adhesion: force with which the two pull at each other [N].
            line: its place in a file, for messages.

        Returns:
            The name.
        """
        name = name or f"{geom1}-{geom2}"
        pair = Element("pair", name, {}, line)
        numbers = vectors(
            self._problems,
            pair,
            friction=(friction, 5),
            solref=(solref, 2),
            solref_friction=(solref_friction, 2),
            solimp=(solimp, 5),
        )
        values: dict[str, Any] = dict(geom1=geom1, geom2=geom2, condim=condim)
        values |= dict(margin=float(margin), gap=float(gap), adhesion=float(adhesion))
        pair.values |= values | numbers
        self._pairs.append(pair)
        return name

    def add_tendon(
        self,
        joints: Mapping[str, float],
        name: str,
        *,
        path: Sequence[str | tuple[str, str] | float] = (),
        stiffness: float = 0.0,
        damping: float = 0.0,
        stiffness_poly: Vector = (0.0, 0.0),
        damping_poly: Vector = (0.0, 0.0),
        armature: float = 0.0,
        lengthspring: Vector | None = None,
        range: Vector | None = None,
        margin: float = 0.0,
        actuator_range: Vector | None = None,
        frictionloss: float = 0.0,
        solref_limit: Vector = SOLREF,
        solimp_limit: Vector = SOLIMP,
        solref_friction: Vector = SOLREF,
        solimp_friction: Vector = SOLIMP,
        line: str = "",
    ) -> str:
        """Add a tendon: fixed (a weighted sum of joint coordinates) or spatial (a path).

        Args:
            joints: weights of the joints of a fixed tendon, each of one degree of freedom; empty
                for a spatial tendon.
            name: its name.
            path: path of a spatial tendon. It consists of names of sites; between two of them may
                stand a geom to wrap around, with the name of a side site or an empty name; a number
                begins a new branch whose length is divided by it (a pulley).
            stiffness: stiffness of a spring along it [N/m]. The units of a fixed tendon follow from
                those of its weights.
            damping: damping along it [N s/m].
            stiffness_poly: coefficients of the spring's terms of second and third order.
            damping_poly: coefficients of the damping's terms of second and third order, of the
                rate's magnitude.
            armature: inertia of changes of its length, such as of a rotor [kg].
            lengthspring: shortest and longest length at which the spring is at rest [m]; by default
                its length with the joints at their `springref`.
            range: lower and upper limit of the length [m]; unlimited if None.
            margin: distance from a limit at which it begins to act [m].
            actuator_range: bounds of the total force of its actuators [N], before their gears;
                unlimited if None.
            frictionloss: dry friction [N].
            solref_limit: MuJoCo's time constant [s] and damping ratio of the limits.
            solimp_limit: MuJoCo's impedance of the limits.
            solref_friction: the same of the dry friction.
            solimp_friction: the same of the dry friction.
            line: its place in a file, for messages.

        Returns:
            The name.
        """
        values: dict[str, Any] = dict(joints=dict(joints), lengthspring=lengthspring, range=range)
        values |= dict(actuator_range=actuator_range)
        values |= dict(stiffness=float(stiffness), damping=float(damping), armature=float(armature))
        values |= dict(margin=float(margin), frictionloss=float(frictionloss))
        tendon = Element("tendon", name, values, line)
        values["path"] = path_segments(self._problems, tendon, path)
        limit = dict(solref_limit=(solref_limit, 2), solimp_limit=(solimp_limit, 5))
        friction = dict(solref_friction=(solref_friction, 2), solimp_friction=(solimp_friction, 5))
        poly = dict(stiffness_poly=(stiffness_poly, 2), damping_poly=(damping_poly, 2))
        return self._add(self._tendons, tendon, **limit, **friction, **poly)

    def add_connect(
        self,
        body1: str,
        body2: str = WORLD,
        name: str = "",
        *,
        anchor: Vector = (0, 0, 0),
        anchor2: Vector | None = None,
        solref: Vector = SOLREF,
        solimp: Vector = SOLIMP,
        line: str = "",
    ) -> str:
        """Add a `connect`: a point of one body coincides with a point of another.

        Args:
            body1: the first body.
            body2: the second body; by default the world.
            name: its name; by default that of the bodies.
            anchor: the point in the first body's frame [m].
            anchor2: the point in the second body's frame; by default the same point in the model as
                it is described.
            solref: MuJoCo's time constant [s] and damping ratio.
            solimp: MuJoCo's impedance.
            line: its place in a file, for messages.

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
        anchor: Vector = (0, 0, 0),
        relpose: Vector | None = None,
        torquescale: float = 1.0,
        solref: Vector = SOLREF,
        solimp: Vector = SOLIMP,
        line: str = "",
    ) -> str:
        """Add a `weld`: a soft constraint that keeps the relative pose of two bodies.

        Args:
            body1: the first body.
            body2: the second body; by default the world.
            name: its name; by default that of the bodies.
            anchor: the welded point, in the second body's frame [m].
            relpose: that point in the first body's frame [m], and the quaternion of the second body
                in the first, (7,); by default as in the model as it is described.
            torquescale: weight of a rotation against a displacement [m]; at zero only the points
                are constrained.
            solref: MuJoCo's time constant [s] and damping ratio.
            solimp: MuJoCo's impedance.
            line: its place in a file, for messages.

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
        polycoef: Vector = (0, 1, 0, 0, 0),
        solref: Vector = SOLREF,
        solimp: Vector = SOLIMP,
        line: str = "",
    ) -> str:
        """Add a coupling of a joint's coordinate, or of a tendon's length, to another's.

        The first is to be a polynomial of the second. Both are measured from their values in the
        model as it is described.

        Args:
            first: a joint of one degree of freedom, or a tendon.
            second: the other one; without it the first is held at the constant coefficient.
            name: its name; by default that of the two.
            of: 'joint' or 'tendon'.
            polycoef: the polynomial's five coefficients, the constant one first.
            solref: MuJoCo's time constant [s] and damping ratio.
            solimp: MuJoCo's impedance.
            line: its place in a file, for messages.

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
        solref: Vector,
        solimp: Vector,
    ) -> str:
        """Record an equality constraint of any type."""
        name = name or f"{first}_{second}_{kind}"
        values = dict(type=kind, first=first, second=second) | values
        element = Element("equality", name, values, line)
        given |= dict(solref=(solref, 2), solimp=(solimp, 5))
        return self._add(self._equalities, element, **given)
