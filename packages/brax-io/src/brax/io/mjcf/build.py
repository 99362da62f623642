"""Builds a `System` from MuJoCo's compiled model, through the model builder."""

import warnings
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from brax import plugins
from brax.base import System
from brax.builder import ModelBuilder
from brax.colliders import DEFAULT_GEOMETRY
from brax.errors import ModelProblem
from brax.io.mjcf import custom_elements, support
from brax.io.mjcf.elements.actuators import (
    JOINT_TRANSMISSIONS,
    activation_range,
    actuator_law,
    dynamics_numbers,
    force_range,
    is_disabled,
    is_early,
    reflected,
)
from brax.io.mjcf.elements.cameras import cameras
from brax.io.mjcf.elements.collision_filter import no_contact
from brax.io.mjcf.elements.equality import equalities
from brax.io.mjcf.elements.geoms import Places, geoms, pairs
from brax.io.mjcf.elements.keyframes import keyframes
from brax.io.mjcf.elements.sensors import sensors
from brax.io.mjcf.elements.tendons import tendons
from brax.io.mjcf.file_model import FileModel
from brax.io.mjcf.names import (
    Names,
    body_names,
    count,
    disabled,
    joint_q_widths,
    joint_qd_widths,
    keyword,
    names,
    polynomials,
)
from brax.io.mjcf.support import TRANSMISSIONS


def build(model: mujoco.MjModel, places: Places) -> System:
    """Return the `System` of a compiled model, which is not changed.

    Args:
        model: MuJoCo's model.
        places: the place of each element in the file, for messages.

    Returns:
        The system.

    Raises:
        ModelError: listing everything that is not supported.

    Warns:
        UserWarning: if a custom field is unknown, for example because it is misspelt.
    """
    custom, named = custom_elements.read_custom(model), Names(model)
    for kind, number, reason in custom.unknown:
        note = support.Note(kind, number, "ignored", reason)
        warnings.warn(describe(named, note, places), stacklevel=3)
    builder = ModelBuilder()
    refused = [n for n in support.notes(model, custom) if n.status == "refused"]
    for note in refused:
        builder.add_problem(describe(named, note, places))
    _options(builder, model, custom)
    _bodies(builder, model, places)
    _joints(builder, model, custom, places)
    geoms(builder, model, custom, places)
    if not no_contact(model):
        pairs(builder, model, places)
    _sites(builder, model, places)
    cameras(builder, model, places)
    tendons(builder, model, places)
    if not disabled(model, "EQUALITY", "CONSTRAINT"):
        equalities(builder, model, places)
    _actuators(builder, model, custom, places)
    sensors(builder, model, custom.types["sensor"], places)
    # A refused joint or actuator changes the lengths of a keyframe's arrays, which would add
    # misleading errors.
    if not refused:
        keyframes(builder, model, custom, places)
    if custom.init_q is not None:
        builder.set_init_q(custom.init_q.tolist())
    system = builder.build()
    # MuJoCo's model lacks what custom fields add: types of other packages.
    if any(custom.types.values()):
        return system
    return system.replace(file_model=FileModel(model, system))


def describe(named: Names, note: support.Note, places: Places) -> ModelProblem:
    """Return a note as one sentence that names its element."""
    name = named[note.kind][note.number] if note.number >= 0 else ""
    place = places.get((note.kind, note.number), "")
    return ModelProblem.of(note.reason, note.kind, name, place)


def _options(builder: ModelBuilder, model: mujoco.MjModel, custom: custom_elements.Custom) -> None:
    passive = not _without_passive(model)
    options = dict(
        timestep=float(model.opt.timestep),
        gravity=np.zeros(3) if disabled(model, "GRAVITY") else model.opt.gravity.copy(),
        integrator=keyword(mujoco.mjtIntegrator, model.opt.integrator),
        cone=keyword(mujoco.mjtCone, model.opt.cone),
        eulerdamp=not disabled(model, "EULERDAMP"),
        filterparent=not disabled(model, "FILTERPARENT"),
        **{key: getattr(model.opt, key) for key in ("wind", "impratio")},
        **{key: getattr(model.opt, key) * passive for key in ("density", "viscosity")},
        **_solver_steps(model),
    )
    builder.set_option(**(options | custom.options))


def _without_passive(model: mujoco.MjModel) -> bool:
    """Return whether passive forces are disabled: springs and dampers both are.

    Fluid forces and gravity compensation are passive forces in MuJoCo, and are disabled with them
    (MuJoCo's documentation, option/flag).
    """
    return disabled(model, "SPRING") and disabled(model, "DAMPER")


def _solver_steps(model: mujoco.MjModel) -> dict[str, int]:
    """Return the iterations that the file itself sets.

    MuJoCo's defaults are upper bounds that its solver does not reach, so they are no wish of the
    author. In a compiled model, `iterations="100"` in the file cannot be told from the default.
    """
    standard = mujoco.MjOption()
    asked = {key: int(getattr(model.opt, key)) for key in ("iterations", "ls_iterations")}
    return {key: n for key, n in asked.items() if n != getattr(standard, key)}


def _bodies(builder: ModelBuilder, model: mujoco.MjModel, places: Places) -> None:
    named, passive_off = body_names(model), _without_passive(model)
    for body in range(1, model.nbody):
        builder.add_body(
            named[body],
            named[model.body_parentid[body]],
            model.body_pos[body],
            model.body_quat[body],
            mass=float(model.body_mass[body]),
            inertia=model.body_inertia[body],
            ipos=model.body_ipos[body],
            iquat=model.body_iquat[body],
            # MuJoCo counts gravity compensation among the passive forces.
            gravcomp=0.0 if passive_off else float(model.body_gravcomp[body]),
            mocap=model.body_mocapid[body] >= 0,
            line=places.get(("body", body), ""),
        )


def _joints(
    builder: ModelBuilder, model: mujoco.MjModel, custom: custom_elements.Custom, places: Places
) -> None:
    named, joints = body_names(model), names(model, "joint")
    q_width, qd_width = joint_q_widths(model), joint_qd_widths(model)
    no_limit = disabled(model, "LIMIT", "CONSTRAINT")
    no_friction = disabled(model, "FRICTIONLOSS", "CONSTRAINT")
    no_spring = disabled(model, "SPRING", "PASSIVE")
    no_damper = disabled(model, "DAMPER", "PASSIVE")
    rotor, brake, steep = (
        reflected(model, "joint", key) for key in ("armature", "damping", "dampingpoly")
    )
    springs, dampers = (polynomials(model, key) for key in ("jnt_stiffness", "dof_damping"))
    for j, q in enumerate(model.jnt_qposadr):
        dof = slice(model.jnt_dofadr[j], model.jnt_dofadr[j] + qd_width[j])
        limited = model.jnt_limited[j] and not no_limit
        builder.add_joint(
            named[model.jnt_bodyid[j]],
            custom.joint_types.get(j, keyword(mujoco.mjtJoint, model.jnt_type[j])),
            joints[j],
            model.jnt_pos[j],
            model.jnt_axis[j],
            range=model.jnt_range[j].tolist() if limited else None,
            stiffness=0.0 if no_spring else float(model.jnt_stiffness[j]),
            # A ball joint's and a free joint's spring pulls towards `qpos0`; they have no
            # `springref`.
            springref=float(model.qpos_spring[q]) if q_width[j] == 1 else 0.0,
            damping=0.0 if no_damper else (model.dof_damping[dof] + brake[j]).tolist(),
            stiffness_poly=springs[j] * (not no_spring),
            damping_poly=(dampers[dof.start] + steep[j]) * (not no_damper),
            armature=(model.dof_armature[dof] + rotor[j]).tolist(),
            frictionloss=0.0 if no_friction else model.dof_frictionloss[dof].tolist(),
            ref=float(model.qpos0[q]) if q_width[j] == 1 else 0.0,
            margin=float(model.jnt_margin[j]),
            actuator_range=_actuator_range(model, j),
            actuator_gravcomp=bool(model.jnt_actgravcomp[j]),
            solref_limit=model.jnt_solref[j],
            solimp_limit=model.jnt_solimp[j],
            solref_friction=model.dof_solref[dof.start],
            solimp_friction=model.dof_solimp[dof.start],
            user=model.jnt_user[j].tolist(),
            line=places.get(("joint", j), ""),
        )


def _actuator_range(model: mujoco.MjModel, joint: int) -> Sequence[float] | None:
    """Return the bounds of the total force of a joint's actuators; None for none."""
    # Where MuJoCo computes no actuators, gravity compensation that counts among them is lost.
    lost = disabled(model, "ACTUATION") or count(model, "actuator") == 0
    if lost and model.jnt_actgravcomp[joint] and np.any(model.body_gravcomp):
        return (0.0, 0.0)
    return model.jnt_actfrcrange[joint] if model.jnt_actfrclimited[joint] else None


def _sites(builder: ModelBuilder, model: mujoco.MjModel, places: Places) -> None:
    bodies, sites = body_names(model), names(model, "site")
    known = plugins.names("geometry_type")
    for s, body in enumerate(model.site_bodyid):
        shape = keyword(mujoco.mjtGeom, model.site_type[s])
        builder.add_site(
            bodies[body],
            sites[s],
            model.site_pos[s],
            model.site_quat[s],
            type=shape if shape in known else DEFAULT_GEOMETRY,
            size=model.site_size[s],
            line=places.get(("site", s), ""),
        )


def _gear(model: mujoco.MjModel, actuator: int, transmission: str) -> dict[str, Any]:
    """Return the gear of an actuator, or its direction in space."""
    gear, joint = model.actuator_gear[actuator], model.actuator_trnid[actuator, 0]
    on_joint = transmission in JOINT_TRANSMISSIONS
    kind = keyword(mujoco.mjtJoint, model.jnt_type[joint]) if on_joint else ""
    rotates = kind in ("ball", "free")
    if transmission != "site" and not rotates:
        return dict(gear=float(gear[0]))
    # On a ball joint the first three numbers are the torque, in space the force.
    wrench = [0, 0, 0, *gear[:3]] if kind == "ball" else gear.tolist()
    return dict(wrench=wrench, in_parent=rotates and transmission == "jointinparent")


def _actuators(
    builder: ModelBuilder, model: mujoco.MjModel, custom: custom_elements.Custom, places: Places
) -> None:
    joints, actuators = names(model, "joint"), names(model, "actuator")
    tendons, sites = names(model, "tendon"), names(model, "site")
    bodies = body_names(model)
    clamped = not disabled(model, "CLAMPCTRL")
    for a, transmission in enumerate(model.actuator_trntype):
        what = keyword(mujoco.mjtTrn, transmission)
        on, ref = model.actuator_trnid[a]
        if what not in TRANSMISSIONS:
            continue  # refused
        crank = what == "slidercrank"
        relative = crank or (what == "site" and ref >= 0)
        law = actuator_law(model, a, custom.types["actuator"].get(a, ""))
        if law is None:
            continue  # refused
        # MuJoCo's documentation, flag/clampctrl: `disable` turns off the clamping of all controls.
        limited = clamped and model.actuator_ctrllimited[a]
        enabled = not is_disabled(model, a)
        builder.add_actuator(
            joints[on] if what in JOINT_TRANSMISSIONS else "",
            law.type,
            actuators[a],
            tendon=tendons[on] if what == "tendon" else "",
            site=sites[on] if crank or what == "site" else "",
            refsite=sites[ref] if relative else "",
            crank_length=float(model.actuator_cranklength[a]) if crank else 0.0,
            body=bodies[on] if what == "body" else "",
            **_gear(model, a, what),
            gainprm=law.gainprm,
            biasprm=law.biasprm,
            dynprm=dynamics_numbers(model, a).tolist(),
            length_range=model.actuator_lengthrange[a],
            ctrl_range=model.actuator_ctrlrange[a] if limited else None,
            activation_range=activation_range(model, a),
            # A disabled actuator stays in the model, so that controls keep their indices.
            force_range=force_range(model, a) if enabled else (0.0, 0.0),
            early=is_early(model, a),
            line=places.get(("actuator", a), ""),
        )
