"""Checks of the leaves of a `System` that may have been replaced: shapes, ranges, and effect.

`brax.contracts.check_system` reports the problems.
"""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from brax.base import System, Transform

_Row = tuple[str, Any, tuple[int, ...], str]
"""A leaf's path, value and shape, and its allowed values; empty if all finite ones are."""

_INFINITE_TOO = "not NaN"
"""The allowed values of bounds, which are infinite where there are none."""


def leaf_problems(sys: System) -> list[str]:
    """Return a sentence for each leaf with a wrong shape, or a known value out of range."""
    tables = (
        _option_leaves,
        _body_leaves,
        _joint_leaves,
        _geom_leaves,
        _coupling_leaves,
        _actuator_leaves,
    )
    rows = (row for table in tables for row in table(sys))
    return [problem for row in rows if (problem := _leaf_problem(*row))]


def _option_leaves(sys: System) -> list[_Row]:
    """Return the rows of the options, and of the global damping."""
    return [
        ("opt.timestep", sys.opt.timestep, (), "> 0"),
        ("opt.gravity", sys.opt.gravity, (3,), ""),
        ("opt.wind", sys.opt.wind, (3,), ""),
        ("opt.density", sys.opt.density, (), ">= 0"),
        ("opt.viscosity", sys.opt.viscosity, (), ">= 0"),
        ("opt.impratio", sys.opt.impratio, (), "> 0"),
        ("baumgarte_erp", sys.baumgarte_erp, (), ""),
        ("vel_damping", sys.vel_damping, (), "<= 0"),
        ("ang_damping", sys.ang_damping, (), "<= 0"),
    ]


def _body_leaves(sys: System) -> list[_Row]:
    """Return the rows of links, and of their boxes in a fluid."""
    n, boxes = sys.num_links(), len(sys.box_link)
    return [
        ("link.inertia.mass", sys.link.inertia.mass, (n,), "> 0"),
        ("link.inertia.moments", sys.link.inertia.moments, (n, 3), "> 0"),
        *_frames("link.transform", sys.link.transform, n),
        *_frames("link.inertia.transform", sys.link.inertia.transform, n),
        ("link.invweight", sys.link.invweight, (n, 2), ""),
        ("link.gravcomp", sys.link.gravcomp, (n,), ""),
        ("link.gravcomp_arm", sys.link.gravcomp_arm, (n, 3), ""),
        *_frames("fixed", sys.fixed, len(sys.fixed_names)),
        *_frames("box.transform", sys.box.transform, boxes),
        ("box.mass", sys.box.mass, (boxes,), "> 0"),
        ("box.i", sys.box.i, (boxes, 3), ">= 0"),
    ]


def _frames(name: str, frames: Transform, count: int) -> list[_Row]:
    """Return the rows of so many frames."""
    return [
        (f"{name}.pos", frames.pos, (count, 3), ""),
        (f"{name}.rot", frames.rot, (count, 4), ""),
    ]


def _joint_leaves(sys: System) -> list[_Row]:
    """Return the rows of joints, degrees of freedom and coordinates."""
    nq, nv, nj = sys.q_size(), sys.qd_size(), len(sys.joint_names)
    return [
        ("init_q", sys.init_q, (nq,), ""),
        *((f"dof.limit.{k}", x, (nv,), _INFINITE_TOO) for k, x in enumerate(sys.dof.limit)),
        ("dof.springref", sys.dof.springref, (nv,), ""),
        ("dof.invweight", sys.dof.invweight, (nv,), ""),
        ("dof.armature", sys.dof.armature, (nv,), ">= 0"),
        ("dof.damping", sys.dof.damping, (nv,), ">= 0"),
        ("dof.stiffness", sys.dof.stiffness, (nv,), ">= 0"),
        ("dof.stiffness_poly", sys.dof.stiffness_poly, (nv, 2), ""),
        ("dof.damping_poly", sys.dof.damping_poly, (nv, 2), ""),
        ("dof.frictionloss", sys.dof.frictionloss, (nv,), ">= 0"),
        ("dof.solref", sys.dof.solref, (nv, 2), ""),
        ("dof.solimp", sys.dof.solimp, (nv, 5), ""),
        ("joint.pos", sys.joint.pos, (nj, 3), ""),
        ("joint.axis", sys.joint.axis, (nj, 3), ""),
        ("joint.actuator_range", sys.joint.actuator_range, (nj, 2), _INFINITE_TOO),
        ("joint.solref", sys.joint.solref, (nj, 2), ""),
        ("joint.solimp", sys.joint.solimp, (nj, 5), ""),
        ("joint.margin", sys.joint.margin, (nj,), ""),
        ("ref", sys.ref, (nq,), ""),
    ]


def _geom_leaves(sys: System) -> list[_Row]:
    """Return the rows of geoms, described pairs and sites."""
    ng, npairs, ns = len(sys.geom_names), len(sys.pair_names), len(sys.site_names)
    return [
        *_frames("site.transform", sys.site.transform, ns),
        *_frames("geom.transform", sys.geom.transform, ng),
        ("geom.invweight", sys.geom.invweight, (ng,), ""),
        ("geom.rgba", sys.geom.rgba, (ng, 4), ""),
        ("points", sys.points, (sum(sys.geom_points), 3), ""),
        ("site.size", sys.site.size, (ns, 3), ">= 0"),
        ("heights", sys.heights, (sum(r * c for r, c in sys.geom_grid),), ""),
        ("geom.size", sys.geom.size, (ng, 3), ">= 0"),
        ("geom.friction", sys.geom.friction, (ng, 3), ">= 0"),
        ("geom.elasticity", sys.geom.elasticity, (ng,), ">= 0"),
        ("geom.solref", sys.geom.solref, (ng, 2), ""),
        ("geom.solimp", sys.geom.solimp, (ng, 5), ""),
        ("geom.solmix", sys.geom.solmix, (ng,), ">= 0"),
        ("geom.margin", sys.geom.margin, (ng,), ""),
        ("geom.gap", sys.geom.gap, (ng,), ">= 0"),
        ("geom.adhesion", sys.geom.adhesion, (ng,), ">= 0"),
        ("geom.surface_velocity", sys.geom.surface_velocity, (ng, 6), ""),
        ("geom.fluid", sys.geom.fluid, (ng, 11), ""),
        ("pair.friction", sys.pair.friction, (npairs, 5), ">= 0"),
        ("pair.solref", sys.pair.solref, (npairs, 2), ""),
        ("pair.solref_friction", sys.pair.solref_friction, (npairs, 2), ""),
        ("pair.solimp", sys.pair.solimp, (npairs, 5), ""),
        ("pair.margin", sys.pair.margin, (npairs,), ""),
        ("pair.gap", sys.pair.gap, (npairs,), ">= 0"),
        ("pair.adhesion", sys.pair.adhesion, (npairs,), ">= 0"),
    ]


def _coupling_leaves(sys: System) -> list[_Row]:
    """Return the rows of tendons and equality constraints."""
    nt, ne = len(sys.tendon_names), len(sys.equality_names)
    return [
        ("tendon.coef", sys.tendon.coef, (sum(map(len, sys.tendon_joints)),), ""),
        ("tendon.share", sys.tendon.share, (sum(map(len, sys.tendon_path)),), ""),
        *((f"tendon.limit.{k}", x, (nt,), _INFINITE_TOO) for k, x in enumerate(sys.tendon.limit)),
        ("tendon.actuator_range", sys.tendon.actuator_range, (nt, 2), _INFINITE_TOO),
        ("tendon.invweight", sys.tendon.invweight, (nt,), ""),
        ("tendon.length0", sys.tendon.length0, (nt,), ""),
        ("tendon.stiffness", sys.tendon.stiffness, (nt,), ">= 0"),
        ("tendon.damping", sys.tendon.damping, (nt,), ">= 0"),
        ("tendon.stiffness_poly", sys.tendon.stiffness_poly, (nt, 2), ""),
        ("tendon.damping_poly", sys.tendon.damping_poly, (nt, 2), ""),
        ("tendon.armature", sys.tendon.armature, (nt,), ">= 0"),
        ("tendon.lengthspring", sys.tendon.lengthspring, (nt, 2), ""),
        ("tendon.margin", sys.tendon.margin, (nt,), ""),
        ("tendon.solref_limit", sys.tendon.solref_limit, (nt, 2), ""),
        ("tendon.solimp_limit", sys.tendon.solimp_limit, (nt, 5), ""),
        ("tendon.frictionloss", sys.tendon.frictionloss, (nt,), ">= 0"),
        ("tendon.solref_friction", sys.tendon.solref_friction, (nt, 2), ""),
        ("tendon.solimp_friction", sys.tendon.solimp_friction, (nt, 5), ""),
        ("equality.invweight", sys.equality.invweight, (ne, 2), ""),
        ("equality.data", sys.equality.data, (ne, 11), ""),
        ("equality.solref", sys.equality.solref, (ne, 2), ""),
        ("equality.solimp", sys.equality.solimp, (ne, 5), ""),
    ]


def _actuator_leaves(sys: System) -> list[_Row]:
    """Return the rows of actuators, sensors, cameras and keyframes."""
    nq, nv, nu, nk = sys.q_size(), sys.qd_size(), sys.act_size(), len(sys.keyframe_names)
    return [
        *(
            (f"actuator.{name}", getattr(sys.actuator, name), (nu, 2), _INFINITE_TOO)
            for name in ("ctrl_range", "activation_range", "force_range")
        ),
        ("actuator.gear", sys.actuator.gear, (nu,), ""),
        ("actuator.wrench", sys.actuator.wrench, (nu, 6), ""),
        ("actuator.crank_length", sys.actuator.crank_length, (nu,), ">= 0"),
        ("actuator.gainprm", sys.actuator.gainprm, (nu, 10), ""),
        ("actuator.biasprm", sys.actuator.biasprm, (nu, 10), ""),
        ("actuator.dynprm", sys.actuator.dynprm, (nu, 10), ""),
        ("actuator.length_range", sys.actuator.length_range, (nu, 2), ""),
        ("sensor.cutoff", sys.sensor.cutoff, (len(sys.sensor_names),), _INFINITE_TOO),
        *_frames("camera.transform", sys.camera.transform, len(sys.camera_names)),
        ("camera.fovy", sys.camera.fovy, (len(sys.camera_names),), "> 0"),
        ("keyframes.q", sys.keyframes.q, (nk, nq), ""),
        ("keyframes.activation", sys.keyframes.activation, (nk, len(sys.stateful_actuators())), ""),
        ("keyframes.qd", sys.keyframes.qd, (nk, nv), ""),
        ("keyframes.ctrl", sys.keyframes.ctrl, (nk, nu), ""),
    ]


def ignored_numbers(sys: System) -> Iterator[str]:
    """Yield a problem for each number that the model's structure ignores.

    `System.replace` and `tree_replace` change the structure together with the numbers.
    """
    joint, tendon = list(sys.dof_joint()), sys.tendon
    # A free joint has no spring and no limits.
    plain = np.array([t.qd_width != 6 for t in sys.joint_types], bool)[joint]
    dof_limited, dof_dry = _flags(sys.joint_limited)[joint], _flags(sys.joint_dry)[joint]
    pairs = sys.pair.friction
    uneven = pairs[:, 0] - pairs[:, 1], pairs[:, 3] - pairs[:, 4]
    fluid, weight = sys.opt.enable_fluid, sys.opt.enable_gravcomp
    table: list[tuple[str, Any, Any, str]] = [
        ("dof.frictionloss", sys.dof.frictionloss, dof_dry, "dry friction of that joint"),
        ("dof.stiffness", sys.dof.stiffness, plain, "springs of free joints"),
        ("dof.limit", _finite(sys.dof.limit), dof_limited | ~plain, "limits of that joint"),
        (
            "joint.actuator_range",
            _finite(sys.joint.actuator_range.T),
            _flags(sys.joint_actuator_limited),
            "bounds of that joint's actuators",
        ),
        ("geom.adhesion", sys.geom.adhesion, _flags(sys.geom_adhesive), "adhesion of that geom"),
        ("pair.adhesion", sys.pair.adhesion, _flags(sys.pair_adhesive), "adhesion of that pair"),
        *(
            ("geom.surface_velocity", x, _flags(sys.geom_moving), "moving surfaces")
            for x in sys.geom.surface_velocity.T
        ),
        *(
            (f"dof.{name}", x, _flags(sys.joint_polynomial)[joint], "polynomials of that joint")
            for name in ("stiffness_poly", "damping_poly")
            for x in getattr(sys.dof, name).T
        ),
        *(
            (f"tendon.{name}", x, _flags(sys.tendon_polynomial), "polynomials of it")
            for name in ("stiffness_poly", "damping_poly")
            for x in getattr(tendon, name).T
        ),
        ("tendon.armature", tendon.armature, _flags(sys.tendon_rotor), "armature of it"),
        (
            "tendon.actuator_range",
            _finite(tendon.actuator_range.T),
            _flags(sys.tendon_actuator_limited),
            "bounds of that tendon's actuators",
        ),
        ("tendon.frictionloss", tendon.frictionloss, _flags(sys.tendon_dry), "dry friction of it"),
        ("tendon.limit", _finite(tendon.limit), _flags(sys.tendon_limited), "limits of it"),
        ("joint.margin", sys.joint.margin, _flags(sys.joint_two_sided), "margins of limits"),
        ("tendon.margin", tendon.margin, _flags(sys.tendon_two_sided), "margins of limits"),
        # Differences between the tangents: without uneven pairs, one coefficient is computed for
        # both.
        *(("pair.friction", x, _flags(sys.pair_uneven), "uneven friction") for x in uneven),
        *(
            ("pair.solref_friction", x, _flags(sys.pair_damped), "a solref of friction")
            for x in sys.pair.solref_friction.T
        ),
        ("link.gravcomp", sys.link.gravcomp, _flags(weight), "gravity compensation"),
        ("opt.density", sys.opt.density, _flags(fluid), "a fluid"),
        ("opt.viscosity", sys.opt.viscosity, _flags(fluid), "a fluid"),
    ]
    for name, value, built, what in table:
        # A number is ignored where it is not zero and its flag in the structure is off.
        if is_known_nonzero(value, ~np.broadcast_to(built, np.shape(value))):
            yield (
                f"system leaf '{name}' has a value without effect, because the model was "
                f"built without {what}; change it by `sys.tree_replace({{'{name}': ...}})` or "
                "`sys.replace`, which build that in, or build the model with it"
            )


def _flags(flags: object) -> np.ndarray:
    """Return flags as an array of booleans."""
    return np.array(flags, bool)


def _finite(bounds: Any) -> Any:
    """Return where either of two bounds is finite; false for bounds that are traced."""
    # Traced bounds are unknown, so they cause no complaint.
    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(bounds)):
        return np.zeros(np.shape(bounds[0]), bool)
    return np.isfinite(np.asarray(bounds[0])) | np.isfinite(np.asarray(bounds[1]))


def is_known_nonzero(value: object, where: Any = True) -> bool:
    """Return whether any of the chosen numbers is known and not zero."""
    return not isinstance(value, jax.core.Tracer) and bool(np.any(np.asarray(value)[where]))


def _leaf_problem(name: str, value: Any, shape: tuple[int, ...], allowed: str) -> str | None:
    # A traced leaf has a shape but no value, so only its shape can be checked.
    """Return what is wrong with a leaf's shape or values; None if nothing is."""
    if np.shape(value) != shape:
        return f"system leaf '{name}' has shape {np.shape(value)}, expected {shape}"
    if isinstance(value, jax.core.Tracer):
        return None
    known = np.asarray(value)
    if allowed == _INFINITE_TOO:
        bad = known[np.isnan(known)]
        return f"system leaf '{name}' must not be NaN, got {bad}" if bad.size else None
    good = {
        # NaN is not equal to itself.
        "": known == known,
        "> 0": known > 0,
        ">= 0": known >= 0,
        "<= 0": known <= 0,
    }[allowed] & np.isfinite(known)
    if good.all():
        return None
    return f"system leaf '{name}' must be finite{allowed and f' and {allowed}'}, got {known[~good]}"
