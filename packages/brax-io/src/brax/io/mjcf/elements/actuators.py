"""Selects the actuator type, and its parameters, for each of MuJoCo's actuators."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import mujoco
import numpy as np

from brax.errors import Reason
from brax.io.mjcf.elements.plugin_names import plugin_name, texts
from brax.io.mjcf.names import count, disabled, keyword

_TYPES = {
    ("none", "fixed"): "affine",
    ("none", "affine"): "general",
    ("integrator", "fixed"): "integral",
    ("integrator", "affine"): "integral",
    ("filter", "fixed"): "filter",
    ("filter", "affine"): "filter",
    ("filterexact", "fixed"): "filterexact",
    ("filterexact", "affine"): "filterexact",
    ("muscle", "muscle"): "muscle",
    ("none", "pid"): "general",
    ("pid", "pid"): "pid",
    ("dcmotor", "dcmotor"): "dcmotor",
}
"""Actuator types by MuJoCo's dynamics and gain; muscles and DC motors have their own bias."""

_PID_PLUGIN = "mujoco.pid"

_POSITION, _VELOCITY, _FEEDFORWARD, _VOLTAGE = 1, 2, 4, 8
"""MuJoCo's numbers of the inputs `pos`, `vel`, `ff` and `voltage`; several inputs are their sum."""

JOINT_TRANSMISSIONS = ("joint", "jointinparent")
"""Transmissions through a joint; for a joint with one degree of freedom they are the same."""

_PEAK, _SCALE, _MUSCLE = 2, 3, 9
# Indices of a muscle's peak force and of its scale, and the number of its parameters.


class Law(NamedTuple):
    """An actuator type and its parameters."""

    type: str
    gainprm: list[float]
    biasprm: list[float]


def actuator_law(model: mujoco.MjModel, actuator: int, plugin_type: str = "") -> Law | None:
    """Return the force law of an actuator; None if it is not supported.

    An actuator with a plugin type (`plugin_type`) keeps the file's parameters unchanged.
    """
    if plugin_type:
        gain, bias = model.actuator_gainprm[actuator], model.actuator_biasprm[actuator]
        return Law(plugin_type, gain.tolist(), bias.tolist())
    if is_disabled(model, actuator) and model.actuator_actnum[actuator]:
        return Law("frozen", [], [])
    if any(_problems(model, actuator)):
        return None
    if is_pid_plugin(model, actuator):
        return _pid_plugin_law(model, actuator)
    dynamics, gain, bias = _words(model, actuator)
    if gain == "dcmotor":
        return _dc_motor_law(model, actuator)
    numbers = model.actuator_gainprm[actuator].copy(), model.actuator_biasprm[actuator].copy()
    if gain == "muscle":
        # MuJoCo's documentation, actuator/muscle: a negative `force` means that the peak force is
        # `scale` divided by the actuator's acceleration at unit force in the initial configuration
        # (`actuator_acc0`).
        peak = model.actuator_gainprm[actuator, _SCALE] / model.actuator_acc0[actuator]
        for prm in numbers:
            prm[_PEAK] = peak if prm[_PEAK] < 0 else prm[_PEAK]
    # MuJoCo ignores these parameters, so values that a file leaves in them must not act here.
    if gain == "fixed":
        numbers[0][1:] = 0
    if bias == "none":
        numbers[1][:] = 0
    if (dynamics, gain) == ("none", "pid"):
        numbers[0][0] = -numbers[1][1]  # kp times the control, and the bias -kp times the length
    gainprm, biasprm = (prm.tolist() for prm in numbers)
    return Law(_TYPES[dynamics, gain], gainprm, biasprm)


def is_pid_plugin(model: mujoco.MjModel, actuator: int) -> bool:
    """Return whether MuJoCo's plugin `mujoco.pid` computes an actuator's force."""
    return plugin_name(model, model.actuator_plugin[actuator]) == _PID_PLUGIN


def _pid_gains(model: mujoco.MjModel, actuator: int) -> tuple[float, ...]:
    """Return kp, ki, kd, and the bound of the integral's force and of the control's rate.

    Source: the documentation of MuJoCo's plugins, `plugin/actuator/README.md`.
    """
    given = texts(model, model.actuator_plugin[actuator])[:5]
    return tuple(float(text) if text else 0.0 for text in given)


def _pid_plugin_law(model: mujoco.MjModel, actuator: int) -> Law:
    """Return the force law of an actuator of MuJoCo's plugin `mujoco.pid`."""
    kp, ki, kd, _, _ = _pid_gains(model, actuator)
    return Law("pid", [ki], [0, -kp, -kd]) if ki else Law("general", [kp], [0, -kp, -kd])


def _dc_motor_law(model: mujoco.MjModel, actuator: int) -> Law:
    """Return the force law of a DC motor, whose voltage is a combination of control and motion."""
    resistance, constant, _, _, kp, _, kd, most = model.actuator_gainprm[actuator][:8]
    # A controller's voltage R/K (kp (ctrl - l) + kd (ctrl - v)) + K v has one of the two controls,
    # or instead of both a torque; the last term makes up for the back-EMF.
    spec = model.actuator_ctrlspec[actuator]
    if spec == _VOLTAGE:
        voltage = [1.0, 0.0, 0.0, 0.0]
    else:
        per_torque = resistance / constant
        by_ctrl = {_POSITION: kp, _VELOCITY: kd, _FEEDFORWARD: 1.0}[int(spec)]
        gains = (by_ctrl, -kp, -kd + constant**2 / resistance)
        voltage = [*(per_torque * gain for gain in gains), most]
    limited = model.actuator_forcelimited[actuator]
    torque = float(model.actuator_forcerange[actuator, 1]) if limited else 0.0
    name = "dcmotor_inductance" if model.actuator_actnum[actuator] else "dcmotor"
    bias = model.actuator_biasprm[actuator, :3].tolist()
    return Law(name, [*voltage, float(resistance), float(constant), torque], bias)


def force_range(model: mujoco.MjModel, actuator: int) -> Sequence[float] | None:
    """Return the bounds of an actuator's force; None for none."""
    # The bound of a DC motor is part of its law, because its cogging torque has none.
    if not model.actuator_forcelimited[actuator] or _words(model, actuator)[1] == "dcmotor":
        return None
    return model.actuator_forcerange[actuator]


def activation_range(model: mujoco.MjModel, actuator: int) -> Sequence[float] | None:
    """Return the bounds of an actuator's activation; None for none."""
    if is_pid_plugin(model, actuator):
        _, ki, _, most, _ = _pid_gains(model, actuator)
        return (-most / abs(ki), most / abs(ki)) if ki and most else None
    limited = model.actuator_actlimited[actuator]
    return model.actuator_actrange[actuator] if limited else None


def is_early(model: mujoco.MjModel, actuator: int) -> bool:
    """Return whether an actuator's force is that of the activation at the end of the step."""
    if is_pid_plugin(model, actuator):
        # The plugin's integral has the error of the present step.
        return bool(_pid_gains(model, actuator)[1])
    if _words(model, actuator)[1] == "dcmotor" and not model.actuator_actnum[actuator]:
        return False  # it has no activation
    return bool(model.actuator_actearly[actuator])


def dynamics_numbers(model: mujoco.MjModel, actuator: int) -> np.ndarray:
    """Return the parameters of an actuator's activation."""
    numbers = model.actuator_dynprm[actuator]
    return np.zeros_like(numbers) if is_pid_plugin(model, actuator) else numbers


def law_problems(model: mujoco.MjModel) -> Iterator[tuple[int, str]]:
    """Yield the actuators whose law is not supported, and why."""
    for actuator in range(len(model.actuator_trntype)):
        for problem in _problems(model, actuator):
            yield actuator, problem


def sees_rate(model: mujoco.MjModel, actuator: int) -> bool:
    """Return whether an actuator's force depends on its velocity."""
    _, gain, bias = _words(model, actuator)
    slopes = (
        (gain != "fixed", model.actuator_gainprm[actuator, 2]),
        (bias != "none", model.actuator_biasprm[actuator, 2]),
    )
    return any(counts and slope for counts, slope in slopes)


def is_disabled(model: mujoco.MjModel, actuator: int) -> bool:
    """Return whether an actuator is disabled, alone or with its group or all others.

    It then exerts no force, and its activation does not change.
    """
    if disabled(model, "ACTUATION"):
        return True
    group = int(model.actuator_group[actuator])
    # MuJoCo's documentation, option/actuatorgroupdisable: only groups 0 to 30 can be disabled.
    return 0 <= group < 31 and bool(model.opt.disableactuator & (1 << group))


def reflected(model: mujoco.MjModel, kind: str, name: str) -> np.ndarray:
    """Return what actuators add to a property of the joints or tendons that they drive.

    A damper or rotor inside an actuator acts on the driven element with the square of the gear
    (MuJoCo's documentation, actuator/general/damping and armature).

    Args:
        model: MuJoCo's model.
        kind: 'joint' or 'tendon'.
        name: 'damping', 'dampingpoly' or 'armature'.

    Returns:
        One number, or one row, for each joint or tendon.
    """
    # MuJoCo 3 has no such attributes.
    width = (2,) if name.endswith("poly") else ()
    none = np.zeros((count(model, "actuator"), *width))
    values = getattr(model, f"actuator_{name}", none)
    out = np.zeros((count(model, kind), *values.shape[1:]))
    driving = JOINT_TRANSMISSIONS if kind == "joint" else (kind,)
    for a, transmission in enumerate(model.actuator_trntype):
        if keyword(mujoco.mjtTrn, transmission) in driving:
            out[model.actuator_trnid[a, 0]] += values[a] * model.actuator_gear[a, 0] ** 2
    return out


def _words(model: mujoco.MjModel, actuator: int) -> tuple[str, str, str]:
    """Return an actuator's dynamics, gain and bias, as files name them."""
    return (
        keyword(mujoco.mjtDyn, model.actuator_dyntype[actuator]),
        keyword(mujoco.mjtGain, model.actuator_gaintype[actuator]),
        keyword(mujoco.mjtBias, model.actuator_biastype[actuator]),
    )


def _pid_problems(model: mujoco.MjModel, actuator: int) -> Iterator[str]:
    """Yield what is not supported of an actuator of MuJoCo's plugin `mujoco.pid`, or of `pid`."""
    plugin = is_pid_plugin(model, actuator)
    if not plugin and _words(model, actuator)[1] != "pid":
        return
    slews = _pid_gains(model, actuator)[4] if plugin else model.actuator_dynprm[actuator, 1]
    if slews:
        yield Reason.of("slewmax of a PID controller is not supported", remedy="leave it out")
    # Only MuJoCo 4 has controllers with several inputs.
    alone = np.full(len(model.actuator_trntype), _POSITION)
    inputs = getattr(model, "actuator_ctrlspec", alone)[actuator]
    if not plugin and inputs != _POSITION:
        what = "a PID controller with other inputs is not supported"
        yield Reason.of(what, remedy='write input="pos"')
    if _drives_rotation(model, actuator):
        yield "a PID controller is only supported on hinges, slides, tendons and slider-cranks"
    implicit = (mujoco.mjtIntegrator.mjINT_IMPLICIT, mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
    if plugin and model.opt.integrator in implicit:
        what = "a PID plugin under an implicit integrator is not supported"
        yield Reason.of(what, remedy="use the actuator 'pid'")


def _drives_rotation(model: mujoco.MjModel, actuator: int) -> bool:
    """Return whether an actuator is on a site, or on a ball or free joint.

    MuJoCo moves setpoints of rotations in space to the nearest turn.
    """
    on, _ = model.actuator_trnid[actuator]
    drives = keyword(mujoco.mjtTrn, model.actuator_trntype[actuator])
    on_joint = drives in JOINT_TRANSMISSIONS
    kind = keyword(mujoco.mjtJoint, model.jnt_type[on]) if on_joint else ""
    return drives == "site" or kind in ("ball", "free")


def _dc_motor_problems(model: mujoco.MjModel, actuator: int) -> Iterator[str]:
    """Yield what is not supported of a DC motor."""
    if _words(model, actuator)[1] != "dcmotor":
        return
    gain, dynamics = model.actuator_gainprm[actuator], model.actuator_dynprm[actuator]
    features = (
        ("thermal", dynamics[2] or dynamics[3] or gain[2]),
        ("lugre", dynamics[5]),
        ("the integral gain (ki)", gain[5]),
        ("slewmax", dynamics[7]),
    )
    for what, given in features:
        if given:
            yield Reason.of(f"{what} of a DC motor is not supported", remedy="leave it out")
    single = (_POSITION, _VELOCITY, _FEEDFORWARD, _VOLTAGE)
    if model.actuator_ctrlspec[actuator] not in single:
        what = "a DC motor with several inputs or none is not supported"
        yield Reason.of(what, remedy='give it one of input="voltage", "pos", "vel" and "ff"')
    if not gain[0] > 0:
        yield Reason.of("a DC motor without resistance is not supported", remedy="give it one")
    if _drives_rotation(model, actuator):
        yield "a DC motor is only supported on hinges, slides, tendons and slider-cranks"


def _problems(model: mujoco.MjModel, actuator: int) -> Iterator[str]:
    dynamics, gain, bias = _words(model, actuator)
    allowed = (
        ("dyntype", dynamics, dict.fromkeys(d for d, _ in _TYPES)),
        ("gaintype", gain, dict.fromkeys(g for _, g in _TYPES)),
        ("biastype", bias, ("none", "affine", "muscle", "dcmotor")),
    )
    yield from _pid_problems(model, actuator)
    yield from _dc_motor_problems(model, actuator)
    unknown = [
        Reason.of(
            f"{what} '{word}' is not supported",
            words,
            hint=", or a type of another package, by a tuple 'actuator:NAME'" * (word == "user"),
        )
        for what, word, words in allowed
        if word not in words
    ]
    yield from unknown
    if unknown:
        return
    own = any((gain == word) != (bias == word) for word in ("muscle", "dcmotor"))
    if (dynamics, gain) not in _TYPES or own:
        yield (
            f"dyntype '{dynamics}' with gaintype '{gain}' and biastype '{bias}' is not supported; "
            "a muscle has all three of a muscle, a DC motor all three of one, others none"
        )
