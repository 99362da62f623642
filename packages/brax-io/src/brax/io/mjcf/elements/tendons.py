"""Tendons of MuJoCo's compiled model."""

from collections.abc import Mapping

import mujoco

from brax.builder import ModelBuilder
from brax.io.mjcf.elements.actuators import reflected
from brax.io.mjcf.names import Names, disabled, polynomials


def tendons(
    builder: ModelBuilder, model: mujoco.MjModel, places: Mapping[tuple[str, int], str]
) -> None:
    """Add all tendons.

    Args:
        builder: the model builder.
        model: MuJoCo's model.
        places: the place of each element in the file.
    """
    named = Names(model)
    joints = named["joint"]
    no_spring = disabled(model, "SPRING", "PASSIVE")
    no_damper = disabled(model, "DAMPER", "PASSIVE")
    limited = model.tendon_limited * (not disabled(model, "LIMIT", "CONSTRAINT"))
    brake, steep, rotor = (
        reflected(model, "tendon", key) for key in ("damping", "dampingpoly", "armature")
    )
    springs, dampers = (polynomials(model, f"tendon_{key}") for key in ("stiffness", "damping"))
    inert = getattr(model, "tendon_armature", None)  # MuJoCo has it since 3.3.1
    bounded = model.tendon_actfrclimited
    has_friction = not disabled(model, "FRICTIONLOSS", "CONSTRAINT")
    for t, first in enumerate(model.tendon_adr):
        wraps = range(first, first + model.tendon_num[t])
        fixed = is_fixed(model, t)
        builder.add_tendon(
            {joints[model.wrap_objid[w]]: float(model.wrap_prm[w]) for w in wraps if fixed},
            named["tendon"][t],
            path=[] if fixed else [_path_part(model, w, named) for w in wraps],
            stiffness=0.0 if no_spring else float(model.tendon_stiffness[t]),
            damping=0.0 if no_damper else float(model.tendon_damping[t] + brake[t]),
            stiffness_poly=springs[t] * (not no_spring),
            damping_poly=(dampers[t] + steep[t]) * (not no_damper),
            armature=float(rotor[t] + (0.0 if inert is None else inert[t])),
            lengthspring=model.tendon_lengthspring[t].tolist(),
            range=model.tendon_range[t].tolist() if limited[t] else None,
            margin=float(model.tendon_margin[t]),
            actuator_range=model.tendon_actfrcrange[t] if bounded[t] else None,
            frictionloss=float(model.tendon_frictionloss[t]) if has_friction else 0.0,
            solref_limit=model.tendon_solref_lim[t],
            solimp_limit=model.tendon_solimp_lim[t],
            solref_friction=model.tendon_solref_fri[t],
            solimp_friction=model.tendon_solimp_fri[t],
            line=places.get(("tendon", t), ""),
        )


def _path_part(model: mujoco.MjModel, wrap: int, named: Names) -> str | tuple[str, str] | float:
    """Return one element of a spatial tendon's path, as the builder takes it."""
    sites, number = named["site"], float(model.wrap_prm[wrap])
    what, index = model.wrap_type[wrap], model.wrap_objid[wrap]
    # `wrap_prm` is the divisor of a pulley, the weight of a joint, and the id of a side site.
    if what == mujoco.mjtWrap.mjWRAP_PULLEY:
        return number
    if what == mujoco.mjtWrap.mjWRAP_SITE:
        return sites[index]
    return named["geom"][index], sites[int(number)] if number >= 0 else ""


def is_fixed(model: mujoco.MjModel, tendon: int) -> bool:
    """Return whether a tendon is fixed, a weighted sum of joint coordinates, and not spatial."""
    first = model.wrap_type[model.tendon_adr[tendon]]
    return bool(first == mujoco.mjtWrap.mjWRAP_JOINT)
