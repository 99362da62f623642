"""Flat names for the numbers of a `System`: MuJoCo's, such as `body_mass`, and Google brax's.

A quantity is stored once, under our nested name. These tables translate.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_BODY = {
    "body_mass": ("link.inertia.mass", 0.0, -1),
    "body_inertia": ("link.inertia.moments", 0.0, -2),
    "body_ipos": ("link.inertia.transform.pos", 0.0, -2),
    "body_iquat": ("link.inertia.transform.rot", (1.0, 0.0, 0.0, 0.0), -2),
    "body_pos": ("link.transform.pos", 0.0, -2),
    "body_quat": ("link.transform.rot", (1.0, 0.0, 0.0, 0.0), -2),
    "body_invweight0": ("link.invweight", 0.0, -2),
    "body_gravcomp": ("link.gravcomp", 0.0, -1),
}
"""MuJoCo's per-body names: our path, the value of the world's row, and the axis of the bodies,
counted from the end because leading axes may be those of a batch."""

_SAME = {
    "geom_pos": "geom.transform.pos",
    "geom_quat": "geom.transform.rot",
    "geom_size": "geom.size",
    "geom_friction": "geom.friction",
    "geom_rgba": "geom.rgba",
    "geom_solref": "geom.solref",
    "geom_solimp": "geom.solimp",
    "geom_solmix": "geom.solmix",
    "geom_margin": "geom.margin",
    "geom_gap": "geom.gap",
    "geom_adhesion": "geom.adhesion",
    "geom_surfacevel": "geom.surface_velocity",
    "pair_friction": "pair.friction",
    "pair_solref": "pair.solref",
    "pair_solreffriction": "pair.solref_friction",
    "pair_solimp": "pair.solimp",
    "pair_margin": "pair.margin",
    "pair_gap": "pair.gap",
    "pair_adhesion": "pair.adhesion",
    "elasticity": "geom.elasticity",
    "jnt_pos": "joint.pos",
    "jnt_axis": "joint.axis",
    "jnt_solref": "joint.solref",
    "jnt_solimp": "joint.solimp",
    "jnt_margin": "joint.margin",
    "dof_armature": "dof.armature",
    "dof_damping": "dof.damping",
    "dof_stiffness": "dof.stiffness",
    "dof_stiffnesspoly": "dof.stiffness_poly",
    "dof_dampingpoly": "dof.damping_poly",
    "dof_frictionloss": "dof.frictionloss",
    "dof_invweight0": "dof.invweight",
    "dof_solref": "dof.solref",
    "dof_solimp": "dof.solimp",
    "jnt_actfrcrange": "joint.actuator_range",
    "site_pos": "site.transform.pos",
    "site_quat": "site.transform.rot",
    "site_size": "site.size",
    "wrap_prm": "tendon.coef",
    "tendon_length0": "tendon.length0",
    "tendon_stiffness": "tendon.stiffness",
    "tendon_damping": "tendon.damping",
    "tendon_stiffnesspoly": "tendon.stiffness_poly",
    "tendon_dampingpoly": "tendon.damping_poly",
    "tendon_lengthspring": "tendon.lengthspring",
    "tendon_margin": "tendon.margin",
    "tendon_armature": "tendon.armature",
    "tendon_actfrcrange": "tendon.actuator_range",
    "tendon_frictionloss": "tendon.frictionloss",
    "tendon_invweight0": "tendon.invweight",
    "tendon_solref_lim": "tendon.solref_limit",
    "tendon_solimp_lim": "tendon.solimp_limit",
    "tendon_solref_fri": "tendon.solref_friction",
    "tendon_solimp_fri": "tendon.solimp_friction",
    "eq_data": "equality.data",
    "eq_solref": "equality.solref",
    "eq_solimp": "equality.solimp",
    "actuator_gear": "actuator.gear",
    "actuator_cranklength": "actuator.crank_length",
    "actuator_gainprm": "actuator.gainprm",
    "actuator_biasprm": "actuator.biasprm",
    "actuator_dynprm": "actuator.dynprm",
    "actuator_lengthrange": "actuator.length_range",
    "actuator_actrange": "actuator.activation_range",
    "actuator_ctrlrange": "actuator.ctrl_range",
    "actuator_forcerange": "actuator.force_range",
    "sensor_cutoff": "sensor.cutoff",
    "cam_pos": "camera.transform.pos",
    "cam_quat": "camera.transform.rot",
    "cam_fovy": "camera.fovy",
    "key_qpos": "keyframes.q",
    "key_qvel": "keyframes.qd",
    "key_act": "keyframes.activation",
    "key_ctrl": "keyframes.ctrl",
    "opt_timestep": "opt.timestep",
    "opt_gravity": "opt.gravity",
    "gravity": "opt.gravity",
    "dt": "opt.timestep",
    "density": "opt.density",
    "viscosity": "opt.viscosity",
    "solver_iterations": "opt.iterations",
    "solver_maxls": "opt.ls_iterations",
    "qpos0": "init_q",
}
"""Flat names whose numbers are stored in the same shape: the flat name and our path."""

NAMES = (*_BODY, *_SAME, "jnt_range", "jnt_stiffness")
"""All flat names of numbers that a `System` stores."""

COUNTS: dict[str, Callable[[Any], int]] = {
    "nq": lambda sys: sys.q_size(),
    "nv": lambda sys: sys.qd_size(),
    "nu": lambda sys: sys.act_size(),
    "na": lambda sys: len(sys.stateful_actuators()),
    "nbody": lambda sys: sys.num_links() + 1,
    "njnt": lambda sys: len(sys.joint_names),
    "ngeom": lambda sys: len(sys.geom_names),
    "nsite": lambda sys: len(sys.site_names),
    "ncam": lambda sys: len(sys.camera_names),
    "ntendon": lambda sys: len(sys.tendon_names),
    "neq": lambda sys: len(sys.equality_names),
    "nsensor": lambda sys: len(sys.sensor_names),
    "nkey": lambda sys: len(sys.keyframe_names),
    "nmocap": lambda sys: len(sys.mocap_fixed),
}
"""MuJoCo's counts. `nbody` is the number of links and the world, which is the number of rows of the
tables of bodies. MuJoCo also counts bodies without joints, which are parts of links here."""


def names_by_path() -> dict[str, str]:
    """Return MuJoCo's name of the numbers at each of our paths."""
    bodies = {path: name for name, (path, _, _) in _BODY.items()}
    joints = {"dof.limit": "jnt_range", "dof.stiffness": "jnt_stiffness"}
    return bodies | {path: name for name, path in _SAME.items()} | joints


def read(sys: Any, name: str) -> Any:
    """Return the numbers of a flat name.

    Args:
        sys: the system.
        name: one of `NAMES`.
    """
    if name in _BODY:
        path, world, axis = _BODY[name]
        return _with_world(_at(sys, path), world, axis)
    if name in _SAME:
        return _at(sys, _SAME[name])
    # MuJoCo has ranges and stiffnesses for each joint, we for each degree of freedom.
    first = np.asarray(sys.joint_qd_start(), int)
    if name == "jnt_range":
        return jnp.stack([bound[..., first] for bound in sys.dof.limit], axis=-1)
    return sys.dof.stiffness[..., first]


def paths(sys: Any, name: str, value: Any) -> dict[str, Any]:
    """Return our paths and their values for a new value of a flat name.

    Args:
        sys: the system.
        name: one of `NAMES`.
        value: an array, or what else a leaf may be replaced by, such as an axis for `jax.vmap`.
    """
    if name in _BODY:
        path, _, axis = _BODY[name]
        return {path: _without_world(value, axis)}
    if name in _SAME:
        return {_SAME[name]: value}
    joint = np.asarray(sys.dof_joint(), int)
    if name == "jnt_stiffness":
        return {"dof.stiffness": value[..., joint] if np.ndim(value) else value}
    limit = (value[..., joint, 0], value[..., joint, 1]) if np.ndim(value) else (value, value)
    return {"dof.limit": limit}


def _at(value: object, path: str) -> Any:
    """Return the attribute at a dotted path."""
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _with_world(table: Any, first: object, axis: int) -> Any:
    """Prepend MuJoCo's row of the world to the rows of the links."""
    first = jnp.asarray(first, table.dtype)
    shape = list(table.shape)
    shape[axis] = 1
    return jnp.concatenate([jnp.broadcast_to(first, shape), table], axis=axis)


def _without_world(table: Any, axis: int) -> Any:
    """Remove MuJoCo's row of the world from an array."""
    # An axis for `jax.vmap`, or None, is returned as it is.
    if np.ndim(table) < -axis:
        return table
    return jax.lax.slice_in_dim(jnp.asarray(table), 1, None, axis=axis)
