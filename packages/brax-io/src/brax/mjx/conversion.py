"""Converts a `System` to MuJoCo's own model, for MJX; what it cannot convert is refused by name."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import mujoco
import numpy as np

from brax.actuators.rotation_transmission import on_rotations
from brax.base import Actuator, DoF, Geom, Inertia, Joint, Link, Option, System, Tendon
from brax.colliders.narrow_phase import surfaces
from brax.errors import ModelError

MUJOCO_JOINT_TYPES = {
    "free": mujoco.mjtJoint.mjJNT_FREE,
    "ball": mujoco.mjtJoint.mjJNT_BALL,
    "slide": mujoco.mjtJoint.mjJNT_SLIDE,
    "hinge": mujoco.mjtJoint.mjJNT_HINGE,
}
GEOMS = {
    "plane": mujoco.mjtGeom.mjGEOM_PLANE,
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "capsule": mujoco.mjtGeom.mjGEOM_CAPSULE,
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    "ellipsoid": mujoco.mjtGeom.mjGEOM_ELLIPSOID,
}
INTEGRATORS = {
    "euler": mujoco.mjtIntegrator.mjINT_EULER,
    "implicitfast": mujoco.mjtIntegrator.mjINT_IMPLICITFAST,
    "rk4": mujoco.mjtIntegrator.mjINT_RK4,
}
CONES = {"pyramidal": mujoco.mjtCone.mjCONE_PYRAMIDAL, "elliptic": mujoco.mjtCone.mjCONE_ELLIPTIC}

TRANSLATED = {
    System: "opt link box box_link joint dof geom site tendon actuator sensor fixed init_q ref "
    "vel_damping ang_damping baumgarte_erp link_names link_parents fixed_names fixed_link "
    "fixed_mocap mocap_fixed link_mocap geom_mocap geom_body site_body site_mocap "
    "equality_mocap joint_names joint_types joint_link joint_limited joint_two_sided joint_dry "
    "geom_names geom_types geom_link geom_priority "
    "collisions pair pair_names pair_uneven site_names site_types site_link tendon_names "
    "tendon_joints tendon_path actuator_names actuator_types actuator_joint actuator_in_parent "
    "actuator_tendon actuator_site actuator_refsite actuator_crank actuator_body sensor_names "
    "sensor_types sensor_object sensor_reference camera camera_names camera_link camera_mocap "
    "camera_modes camera_target camera_aim keyframes keyframe_names integrator file_model",
    Option: "timestep gravity wind density viscosity impratio cone iterations ls_iterations "
    "sweeps max_geom_pairs max_contact_points eulerdamp enable_fluid",
    Link: "transform inertia invweight",
    Inertia: "transform moments mass",
    Joint: "pos axis user solref solimp margin actuator_range",
    DoF: "armature damping stiffness springref limit frictionloss invweight solref solimp",
    Geom: "transform size friction elasticity solref solimp solmix margin gap invweight fluid rgba",
    Tendon: "coef share length0 stiffness damping lengthspring limit margin actuator_range "
    "solref_limit solimp_limit solref_friction solimp_friction invweight",
    Actuator: "gear crank_length gainprm biasprm dynprm length_range ctrl_range activation_range "
    "force_range",
}
"""Fields that are converted, or that MuJoCo's model does not need.

A model in which any other field is neither empty nor zero is refused.
"""

_FAR = 1e10  # MuJoCo treats this as infinite


def mujoco_model(sys: System) -> mujoco.MjModel:
    """Return MuJoCo's model of a system.

    Contacts are explicit pairs with the parameters that Brax combines from those of the geoms, so
    that MuJoCo's own rules for combining them do not apply.

    Args:
        sys: the system of one environment, with concrete numbers.

    Raises:
        ModelError: listing everything that MJX, or this conversion, does not support.
    """
    problems = list(lacking(sys))
    if problems:
        raise ModelError.of([f"mjx: {problem}" for problem in problems])
    spec = mujoco.MjSpec()
    # The angles of a `System` are in radians.
    spec.compiler.degree = False
    _options(spec.option, sys)
    bodies = _bodies(spec, sys)
    _joints(bodies, sys)
    _contacts(spec, bodies, sys)
    _tendons(spec, sys)
    _actuators(spec, sys)
    try:
        model = spec.compile()
    except ValueError as error:
        raise ModelError(f"mjx: MuJoCo rejects the model: {error}") from None
    if tuple(model.body(i + 1).name for i in range(sys.num_links())) != sys.link_names:
        raise ModelError(
            "mjx: the model's links are not in depth-first order, as MuJoCo's are; write each link "
            "after its parent's previous children and all of their descendants"
        )
    return model


def lacking(sys: System) -> Iterator[str]:
    """Yield what the conversion does not support in a model, one sentence each."""
    touching = sorted({g for group in sys.collisions for g in (*group.geom1, *group.geom2)})
    shapes = [(sys.geom_names[g], sys.geom_types[g]) for g in touching]
    joints = list(zip(sys.joint_names, sys.joint_types, strict=True))
    actuators = list(zip(sys.actuator_names, sys.actuator_types, strict=True))
    for what, named, allowed in (
        ("joint", joints, MUJOCO_JOINT_TYPES),
        ("geom", shapes, GEOMS),
        ("actuator", actuators, ("affine",)),
        ("option", [("integrator", sys.integrator)], INTEGRATORS),
    ):
        for name, kind in named:
            if kind.name not in allowed:
                yield f"{what} '{name}': '{kind.name}' is not one of {', '.join(allowed)}"
    for name, path in zip(sys.tendon_names, sys.tendon_path, strict=True):
        if path:
            yield f"tendon '{name}': spatial tendons are not translated"
    if sys.opt.enable_fluid and sys.box_link:
        names = ", ".join(f"'{sys.link_names[link]}'" for link in sorted({*sys.box_link}))
        yield f"the fluid drag on parts of {names} is not translated"
    for fixed in sys.mocap_fixed:
        yield f"body '{sys.fixed_names[fixed]}': mocap bodies are not translated"
    for name, site in zip(sys.actuator_names, sys.actuator_site, strict=True):
        if site >= 0:
            yield f"actuator '{name}': it acts on a site, which is not translated"
    for actuator in on_rotations(sys):
        name = sys.actuator_names[actuator]
        yield f"actuator '{name}': it acts on a ball or free joint, which is not translated"
    for name, body in zip(sys.actuator_names, sys.actuator_body, strict=True):
        if body is not None:
            yield f"actuator '{name}': adhesion is not translated"
    for group in sys.collisions:
        if group.condim not in (1, 3):
            yield f"contacts of condim {group.condim} are not translated; only 1 and 3 are"
    for name in ("armature", "damping", "stiffness", "frictionloss"):
        for j, values in enumerate(_by_joint(sys, getattr(sys.dof, name))):
            if np.ptp(values) > 0:
                yield f"joint '{sys.joint_names[j]}': {name} differs between its axes"
    yield from _unknown(sys)


def _unknown(part: Any) -> Iterator[str]:
    """Yield the fields that this conversion does not know and that are not zero."""
    if type(part) not in TRANSLATED:
        return
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if field.name in TRANSLATED[type(part)].split():
            yield from _unknown(value)
        elif any(np.any(np.asarray(leaf) != 0) for leaf in jax.tree.leaves((value,))):
            yield f"{type(part).__name__}.{field.name} is not translated"


def _by_joint(sys: System, values: object) -> list[np.ndarray]:
    """Return numbers of the degrees of freedom, split by joint."""
    starts = sys.joint_qd_start()
    return np.split(np.asarray(values, float), starts[1:]) if starts else []


def _options(option: Any, sys: System) -> None:
    for name in ("timestep", "density", "viscosity", "impratio"):
        setattr(option, name, float(getattr(sys.opt, name)))
    option.gravity, option.wind = np.asarray(sys.opt.gravity), np.asarray(sys.opt.wind)
    option.cone, option.integrator = CONES[sys.opt.cone], INTEGRATORS[sys.integrator.name]
    if not sys.opt.eulerdamp:
        option.disableflags |= mujoco.mjtDisableBit.mjDSBL_EULERDAMP


def _bodies(spec: mujoco.MjSpec, sys: System) -> dict[int, Any]:
    """Add the links' bodies, and return all bodies by link, the world's by -1."""
    bodies = {-1: spec.worldbody}
    frame, inertia = sys.link.transform, sys.link.inertia
    for i, (name, parent) in enumerate(zip(sys.link_names, sys.link_parents, strict=True)):
        body = bodies[parent].add_body(name=name, explicitinertial=True)
        body.pos, body.quat = np.asarray(frame.pos[i]), np.asarray(frame.rot[i])
        body.ipos = np.asarray(inertia.transform.pos[i])
        body.iquat = np.asarray(inertia.transform.rot[i])
        body.mass, body.inertia = float(inertia.mass[i]), np.asarray(inertia.moments[i])
        bodies[i] = body
    return bodies


def _joints(bodies: dict[int, Any], sys: System) -> None:
    starts, q = sys.joint_qd_start(), sys.joint_q_start()
    low, high = (np.asarray(bound, float) for bound in sys.dof.limit)
    for j, (name, kind) in enumerate(zip(sys.joint_names, sys.joint_types, strict=True)):
        at, dof = starts[j], sys.dof
        joint = bodies[sys.joint_link[j]].add_joint(name=name, type=MUJOCO_JOINT_TYPES[kind.name])
        joint.pos, joint.axis = np.asarray(sys.joint.pos[j]), np.asarray(sys.joint.axis[j])
        joint.armature, joint.frictionloss = float(dof.armature[at]), float(dof.frictionloss[at])
        _first(joint, "damping", float(dof.damping[at]))
        _first(joint, "stiffness", float(dof.stiffness[at]))
        joint.springref, joint.margin = float(dof.springref[at]), float(sys.joint.margin[j])
        joint.solref_limit = np.asarray(sys.joint.solref[j])
        joint.solimp_limit = np.asarray(sys.joint.solimp[j])
        joint.solref_friction = np.asarray(dof.solref[at])
        joint.solimp_friction = np.asarray(dof.solimp[at])
        if kind.q_width == kind.qd_width:
            joint.ref = float(sys.ref[q[j]])
        if sys.joint_limited[j]:
            # The angle of a ball joint is never negative, and MuJoCo requires 0 as its lower limit.
            joint.range = max(low[at], -_FAR if kind.q_width == kind.qd_width else 0.0), high[at]


def _contacts(spec: mujoco.MjSpec, bodies: dict[int, Any], sys: System) -> None:
    """Add the geoms that can collide, and all pairs of them."""
    added: set[int] = set()
    # `surfaces` takes arrays of (elements, batch), so a batch axis of one is added.
    batched = jax.tree.map(lambda a: np.asarray(a)[..., None], sys)
    for group, surface in zip(sys.collisions, surfaces(batched), strict=True):
        numbers = jax.tree.map(np.asarray, surface)
        for k, pair in enumerate(zip(group.geom1, group.geom2, strict=True)):
            for g in set(pair) - added:
                _geom(bodies[sys.geom_link[g]], sys, g)
                added.add(g)
            made = spec.add_pair(geomname1=_name(pair[0]), geomname2=_name(pair[1]))
            made.condim, made.margin = group.condim, float(numbers.margin[k, 0])
            tangent1 = float(numbers.friction[k, 0])
            tangent2 = float(numbers.sideways[k, 0])
            made.friction = [tangent1, tangent2, 0.0, 0.0, 0.0]
            made.solref = [row[k, 0] for row in numbers.solref]
            made.solimp = [row[k, 0] for row in numbers.solimp]


def _geom(body: Any, sys: System, g: int) -> None:
    kind = sys.geom_types[g]
    # Only the explicit pairs collide, and the links' inertias are complete without the geoms.
    geom = body.add_geom(name=_name(g), type=GEOMS[kind.name], contype=0, conaffinity=0, mass=0)
    geom.pos = np.asarray(sys.geom.transform.pos[g])
    geom.quat = np.asarray(sys.geom.transform.rot[g])
    # An infinite plane; MuJoCo's third size is the spacing of its drawn grid.
    geom.size = (0, 0, 1) if kind.name == "plane" else np.asarray(sys.geom.size[g])


def _name(geom: int) -> str:
    return f"geom{geom}"


def _tendons(spec: mujoco.MjSpec, sys: System) -> None:
    coefs = iter(np.asarray(sys.tendon.coef, float))
    for i, (name, joints) in enumerate(zip(sys.tendon_names, sys.tendon_joints, strict=True)):
        tendon = spec.add_tendon(name=name)
        for joint in joints:
            tendon.wrap_joint(sys.joint_names[joint], next(coefs))
        _first(tendon, "stiffness", float(sys.tendon.stiffness[i]))
        _first(tendon, "damping", float(sys.tendon.damping[i]))
        tendon.springlength = np.asarray(sys.tendon.lengthspring[i])


def _actuators(spec: mujoco.MjSpec, sys: System) -> None:
    numbers = sys.actuator
    for i, name in enumerate(sys.actuator_names):
        joint, tendon = sys.actuator_joint[i], sys.actuator_tendon[i]
        made = spec.add_actuator(name=name)
        made.target = sys.joint_names[joint] if joint >= 0 else sys.tendon_names[tendon]
        made.trntype = mujoco.mjtTrn.mjTRN_JOINT if joint >= 0 else mujoco.mjtTrn.mjTRN_TENDON
        made.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        made.gear[0] = float(numbers.gear[i])
        made.gainprm, made.biasprm = numbers.gainprm[i], numbers.biasprm[i]
        for key, bounds in (("ctrl", numbers.ctrl_range), ("force", numbers.force_range)):
            bound = np.clip(np.asarray(bounds[i], float), -_FAR, _FAR)
            if (abs(bound) < _FAR).any():
                setattr(made, f"{key}limited", True)
                setattr(made, f"{key}range", bound)


def _first(element: object, name: str, value: float) -> None:
    """Set a coefficient, which newer versions of MuJoCo extend to a polynomial's coefficients."""
    now = getattr(element, name)
    setattr(element, name, value if np.ndim(now) == 0 else [value, *np.zeros(len(now) - 1)])
