"""Selects the actuator type, and its parameters, for each of MuJoCo's actuators."""

from collections.abc import Iterator
from typing import NamedTuple

import mujoco
import numpy as np

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
}
"""Actuator types by MuJoCo's dynamics and gain; only a muscle has a muscle's bias."""

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
    dynamics, gain, bias = _words(model, actuator)
    if any(_problems(model, actuator)):
        return None
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
    gainprm, biasprm = (prm.tolist() for prm in numbers)
    return Law(_TYPES[dynamics, gain], gainprm, biasprm)


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


def _problems(model: mujoco.MjModel, actuator: int) -> Iterator[str]:
    dynamics, gain, bias = _words(model, actuator)
    allowed = (
        ("dyntype", dynamics, dict.fromkeys(d for d, _ in _TYPES)),
        ("gaintype", gain, dict.fromkeys(g for _, g in _TYPES)),
        ("biastype", bias, ("none", "affine", "muscle")),
    )
    unknown = [
        f"{what} '{word}' is not supported; allowed: {', '.join(words)}"
        + ", or a type of another package, by a tuple 'actuator:NAME'" * (word == "user")
        for what, word, words in allowed
        if word not in words
    ]
    yield from unknown
    if unknown:
        return
    if (dynamics, gain) not in _TYPES or (gain == "muscle") != (bias == "muscle"):
        yield (
            f"dyntype '{dynamics}' with gaintype '{gain}' and biastype '{bias}' is not supported; "
            "a muscle has all three of a muscle, others none"
        )
