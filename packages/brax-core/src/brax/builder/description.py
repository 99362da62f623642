"""Description of a model, element by element."""

import numpy as np

from brax.actuators import DEFAULT_ACTUATOR
from brax.builder.coupling_description import CouplingDescription
from brax.builder.elements import IDENTITY_QUAT, Element, Vector, padded


class Description(CouplingDescription):
    """Bodies, joints, geoms, sites, tendons, equalities, actuators and sensors, one by one.

    Frames and units follow `docs/conventions.md`; angles are radians. Vectors may be any sequence
    of numbers.
    """

    def add_actuator(
        self,
        joint: str = "",
        type: str = DEFAULT_ACTUATOR,
        name: str = "",
        *,
        tendon: str = "",
        site: str = "",
        refsite: str = "",
        crank_length: float = 0.0,
        body: str = "",
        gear: float = 1.0,
        wrench: Vector | None = None,
        in_parent: bool = False,
        gainprm: Vector = (1.0,),
        biasprm: Vector = (),
        dynprm: Vector = (),
        length_range: Vector = (0.0, 0.0),
        ctrl_range: Vector | None = None,
        activation_range: Vector | None = None,
        force_range: Vector | None = None,
        early: bool = False,
        line: str = "",
    ) -> str:
        """Add an actuator, which drives a joint, a tendon, a site or the adhesion of a body.

        Args:
            joint: the joint that it drives: with one degree of freedom, or a ball or free joint.
            type: a registered actuator type; 'affine' is MuJoCo's motor, position and velocity.
            name: its name; by default that of the driven element, and the type.
            tendon: the tendon that it pulls.
            site: the site that it acts on.
            refsite: the site that it acts against; it then has a length.
            crank_length: length of a rod [m] from the site to a slider on the z axis of the
                reference site, which the actuator moves; 0 for no slider-crank.
            body: the body that adheres to everything its geoms touch. The force is shared equally
                by the contacts, along their normals; there is no gear, and length and velocity are
                zero.
            gear: transmission ratio.
            wrench: force and torque [N, N m] per unit on a site, in its axes or the reference
                site's, by default a force along z; on a free joint, the force along axes of the
                world, and the torque along those of the body; on a ball joint, a torque only.
            in_parent: True if the torque on a ball or free joint is along axes of the frame before
                the joint, MuJoCo's `jointinparent`.
            gainprm: up to ten gain parameters.
            biasprm: up to ten bias parameters.
            dynprm: up to ten parameters of the dynamics of the activation.
            length_range: smallest and largest length of a muscle [rad or m, times the gear].
            ctrl_range: bounds of the control; unlimited if None, which adhesion does not allow.
            activation_range: bounds of the activation, if it has one; unlimited if None.
            force_range: bounds of the force [N or N m]; unlimited if None.
            early: True if the force is that of the activation after the step, which avoids a delay
                of one step between control and force. MuJoCo's `actearly`.
            line: its place in a file, for messages.

        Returns:
            The name.
        """
        name = name or f"{joint or tendon or site or body}_{type}"
        driven = dict(joint=joint, tendon=tendon, site=site, refsite=refsite, body=body)
        ranges = dict(ctrl_range=ctrl_range, force_range=force_range)
        values = driven | ranges | dict(activation_range=activation_range, early=bool(early))
        values |= dict(in_parent=bool(in_parent))
        numbers = dict(type=type, gear=gear, crank_length=float(crank_length))
        actuator = Element("actuator", name, values | numbers, line)
        parameters = dict(gainprm=gainprm, biasprm=biasprm, dynprm=dynprm)
        vectors = {key: (padded(given, 10), 10) for key, given in parameters.items()}
        if wrench is None:
            wrench = (0.0, 0.0, 1.0, 0.0, 0.0, 0.0) if site and not crank_length else (0.0,) * 6
        vectors |= dict(wrench=(wrench, 6), length_range=(length_range, 2))
        return self._add(self._actuators, actuator, **vectors)

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
        """Add a sensor, which `brax.sensors.sensors` reads.

        Args:
            type: a registered sensor type.
            object: kind and name of the measured element, such as ("joint", "hip"): a joint,
                tendon, actuator, body, geom or site, or the inertia of a body.
            name: its name; by default that of the measured element, and the type.
            reference: kind and name of the element in whose frame it measures; the world if None.
            cutoff: bound of the absolute values of its numbers.
            line: its place in a file, for messages.

        Returns:
            The name.
        """
        name = name or f"{object[1]}_{type}"
        values = dict(type=type, object=tuple(object), reference=reference, cutoff=float(cutoff))
        return self._add(self._sensors, Element("sensor", name, values, line))

    def add_camera(
        self,
        body: str,
        name: str,
        pos: Vector = (0, 0, 0),
        quat: Vector = IDENTITY_QUAT,
        *,
        mode: str = "fixed",
        target: str = "",
        fovy: float = 45.0,
        line: str = "",
    ) -> str:
        """Add a camera, which looks along its -z axis, with y upwards.

        Args:
            body: the body that carries it, or the world.
            name: its name.
            pos: frame in the body's frame [m].
            quat: orientation in the body's frame.
            mode: one of MuJoCo's modes of motion; see `System.camera_modes`.
            target: the body that it is turned towards, in the modes that have one.
            fovy: vertical angle of view [degrees].
            line: its place in a file, for messages.

        Returns:
            The name.
        """
        values = dict(body=body, mode=mode, target=target, fovy=float(fovy))
        element = Element("camera", name, values, line)
        return self._add(self._cameras, element, pos=(pos, 3), quat=(quat, 4))

    def add_keyframe(
        self,
        name: str,
        q: Vector | None = None,
        *,
        qd: Vector | None = None,
        activation: Vector | None = None,
        ctrl: Vector | None = None,
        line: str = "",
    ) -> str:
        """Add a keyframe: a named state to start from, which `System.keyframe` returns.

        Args:
            name: its name.
            q: coordinates [rad or m]; by default the model's first ones.
            qd: velocities [rad/s or m/s]; by default zero.
            activation: activations of the stateful actuators; by default zero.
            ctrl: controls; by default zero.
            line: its place in a file, for messages.

        Returns:
            The name.
        """
        given = dict(q=q, qd=qd, activation=activation, ctrl=ctrl)
        values = {k: None if v is None else np.asarray(v, float) for k, v in given.items()}
        return self._add(self._keys, Element("keyframe", name, values, line))
