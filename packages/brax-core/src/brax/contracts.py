"""Checks of the arguments of public functions, made while JAX traces them."""

import numbers
from collections.abc import Callable, Iterator
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from brax.base import Force, State, System, Transform
from brax.colliders.broad_phase import uses_broad_phase
from brax.errors import ConfigError, ModelError, ShapeError


def check_vector(function: str, name: str, value: Any, size: int, what: str) -> None:
    """Check that an argument is a vector of floats of the model's size.

    Raises:
        ShapeError: naming the function, the argument, what was expected and what came.
    """
    try:
        value = jnp.asarray(value)
    except (TypeError, ValueError):
        raise ShapeError(
            f"{function}: argument '{name}' is {value!r:.60}; the model has {size} {what}, so "
            f"expected an array of shape ({size},)."
        ) from None
    try:
        chex.assert_shape(value, (size,))
    except AssertionError:
        raise ShapeError(
            f"{function}: argument '{name}' has shape {value.shape}; the model has {size} {what}, "
            f"so expected ({size},). For a batch use jax.vmap."
        ) from None
    try:
        chex.assert_type(value, float)
    except AssertionError:
        raise ShapeError(
            f"{function}: argument '{name}' has dtype {value.dtype}; expected a float."
        ) from None


def check_model(function: str, sys: Any) -> None:
    """Check that the first argument is a model.

    Raises:
        ModelError: saying what came instead.
    """
    if isinstance(sys, System):
        return
    hint = "load a model file with brax.io.mjcf.load(path)"
    if isinstance(sys, State):
        hint = "the system is the first argument and the state the second"
    raise ModelError(f"{function}: expected a System, got {_described(sys)}: {hint}.")


def check_frames(function: str, n_frames: Any) -> None:
    """Check a number of physics steps, which must be known before the step is compiled.

    Raises:
        ConfigError: unless it is an integer of at least 1.
    """
    # A traced number gets a message of its own: the cause is a missing static argument.
    if isinstance(n_frames, jax.core.Tracer):
        raise ConfigError(
            f"{function}: n_frames is traced, but must be a fixed integer. Under jax.jit, name it "
            "in static_argnames, or repeat single steps with jax.lax.fori_loop."
        )
    whole = isinstance(n_frames, numbers.Integral) and not isinstance(n_frames, bool)
    if not whole or n_frames < 1:
        raise ConfigError(f"{function}: n_frames must be an integer >= 1, got {n_frames!r}.")


def _described(value: Any) -> str:
    """Return how a message describes an argument of the wrong type."""
    return repr(value) if isinstance(value, str | None) else f"a {type(value).__name__}"


def check_state(function: str, sys: System, state: State) -> None:
    """Check that a state belongs to the model.

    Raises:
        ShapeError: naming the function, what was expected and what came.
    """
    if not isinstance(state, State):
        raise ShapeError(
            f"{function}: expected a State that init or step returned, got {_described(state)}."
        )
    n = sys.num_links()
    if state.x.pos.shape != (n, 3):
        raise ShapeError(
            f"{function}: the state has x.pos of shape {state.x.pos.shape}; the system has {n} "
            f"links, so expected ({n}, 3). Is it a state of another system, or a batch that is "
            "missing a jax.vmap?"
        )
    check_vector(function, "state.q", state.q, sys.q_size(), "coordinates")
    check_vector(function, "state.qd", state.qd, sys.qd_size(), "degrees of freedom")
    if state.activation is not None:
        n = len(sys.stateful_actuators())
        check_vector(function, "state.activation", state.activation, n, "activations")
    if state.mocap is not None:
        check_mocap(function, sys, state.mocap)


def check_mocap(function: str, sys: System, mocap: Transform) -> None:
    """Check that there is one frame for each mocap body.

    Raises:
        ShapeError: naming the function, what was expected and what came.
    """
    if not isinstance(mocap, Transform):
        raise ShapeError(
            f"{function}: mocap must be a brax.base.Transform, got {_described(mocap)}."
        )
    n = len(sys.mocap_fixed)
    for name, found, width in (("pos", mocap.pos, 3), ("rot", mocap.rot, 4)):
        if np.shape(found) != (n, width):
            raise ShapeError(
                f"{function}: mocap.{name} has shape {np.shape(found)}; the model has {n} mocap "
                f"bodies, so expected ({n}, {width}). For a batch use jax.vmap."
            )


def check_external(function: str, sys: System, external: Force | None) -> None:
    """Check that there is one external force for each link.

    Raises:
        ShapeError: naming the function, what was expected and what came.
    """
    if external is None:
        return
    if not isinstance(external, Force):
        raise ShapeError(
            f"{function}: external must be a brax.base.Force(ang, vel), the torque and force on "
            f"each link, got {_described(external)}."
        )
    shape = (sys.num_links(), 3)
    for name in ("ang", "vel"):
        found = np.shape(getattr(external, name))
        if found != shape:
            raise ShapeError(
                f"{function}: external.{name} has shape {found}; the model has {shape[0]} links, "
                f"so expected {shape}. For a batch use jax.vmap."
            )


def check_step(
    function: str, sys: System, state: State, act: Any, n_frames: Any, external: Force | None
) -> None:
    """Check the arguments of a step: model, state, controls, their duration and external forces.

    Raises:
        ConfigError: if `n_frames` is not a fixed integer of at least 1.
        ModelError: if `sys` is not a system.
        ShapeError: naming the function, what was expected and what came.
    """
    check_model(function, sys)
    check_frames(function, n_frames)
    check_vector(function, "act", act, sys.act_size(), "actuators")
    check_state(function, sys, state)
    check_external(function, sys, external)


UNTESTED_CONTACTS = "more possible contacts than are followed at once"
TIME_OF_IMPACT = "impacts at their time within a step (time_of_impact)"
SOFTNESS = "soft contacts, limits, dry friction and ties (solref, solimp, margin)"
PYRAMID = "pyramidal friction cones"
ELASTICITY = "elasticity"
DAMPING = "damping of velocities (vel_damping, ang_damping)"
SITE_LIMITS = (
    "bounds of a joint's actuators (actuatorfrcrange) beside actuators on sites or spatial tendons"
)

TORSIONAL_FRICTION = "friction against twisting and rolling (condim 4 and 6)"
ANISOTROPIC_FRICTION = "pairs whose friction differs between the two tangents"
TENDON_EQUALITIES = "equality constraints between tendons"
TENDON_LIMITS = "limits and dry friction of tendons"
MOCAP_JOINTS = "joints on mocap bodies"
ADHESION = "adhesion (actuators of a body)"
ADHESION_LIMITS = "bounds of a joint's actuators (actuatorfrcrange) beside adhesion"


FREE_JOINT_RESISTANCE = "damping, dry friction or armature of a free joint"


def _has_free_joint_resistance(sys: System) -> bool:
    """Return whether resistance of a free joint's degrees of freedom is known not to be zero."""
    free = np.array([sys.joint_types[j].qd_width == 6 for j in sys.dof_joint()], bool)
    tables = sys.dof.damping, sys.dof.frictionloss, sys.dof.armature
    return bool(free.any()) and any(_is_known_nonzero(table, free) for table in tables)


FEATURES: dict[str, Callable[[System], bool]] = {
    UNTESTED_CONTACTS: uses_broad_phase,
    TIME_OF_IMPACT: lambda s: s.opt.time_of_impact,
    SOFTNESS: lambda s: (
        bool(s.collisions or s.equality_names) or any(s.joint_limited) or any(s.joint_dry)
    ),
    PYRAMID: lambda s: s.opt.cone == "pyramidal" and any(g.condim > 1 for g in s.collisions),
    TORSIONAL_FRICTION: lambda s: any(g.condim > 3 for g in s.collisions),
    ANISOTROPIC_FRICTION: lambda s: any(s.pair_uneven),
    TENDON_EQUALITIES: lambda s: "tendon" in s.equality_types,
    TENDON_LIMITS: lambda s: any(s.tendon_limited) or any(s.tendon_dry),
    MOCAP_JOINTS: lambda s: max(s.link_mocap) >= 0,
    ADHESION: lambda s: any(s.actuator_body),
    ADHESION_LIMITS: lambda s: any(s.actuator_body) and any(s.joint_actuator_limited),
    ELASTICITY: lambda s: bool(np.any(s.geom.elasticity)),
    SITE_LIMITS: lambda s: (
        any(s.joint_actuator_limited)
        and any(
            site >= 0 or (tendon >= 0 and s.tendon_path[tendon])
            for site, tendon in zip(s.actuator_site, s.actuator_tendon, strict=True)
        )
    ),
    FREE_JOINT_RESISTANCE: _has_free_joint_resistance,
    DAMPING: lambda s: bool(np.any(s.vel_damping) or np.any(s.ang_damping)),
}
"""Features of models that a pipeline may lack or approximate, each with a test for it."""

UNCOUPLED = (MOCAP_JOINTS, ADHESION, ADHESION_LIMITS, FREE_JOINT_RESISTANCE)
"""Features that the pipelines in maximal coordinates do not compute."""

HARD = {
    SOFTNESS: "they are hard",
    PYRAMID: "friction cones are round",
    TORSIONAL_FRICTION: "each is bounded by itself, whatever slides",
}
"""Features that the pipelines in maximal coordinates approximate, and how."""


def check_system(function: str, sys: System, lacks: tuple[str, ...] = ()) -> None:
    """Check a system whose leaves may have been replaced: shapes always, values where known.

    Args:
        function: the caller's name, such as 'spring.init'.
        sys: the system.
        lacks: those of `FEATURES` that the pipeline does not compute.

    Raises:
        ModelError: naming the leaf, its value and the allowed ones.
    """
    check_model(function, sys)
    n, nq, nv, nu = sys.num_links(), sys.q_size(), sys.qd_size(), sys.act_size()
    ng, nj, nt = len(sys.geom_names), len(sys.joint_names), len(sys.tendon_names)
    ne, nk = len(sys.equality_names), len(sys.keyframe_names)
    table: list[tuple[str, Any, tuple[int, ...], str]] = [
        ("opt.timestep", sys.opt.timestep, (), "> 0"),
        ("opt.gravity", sys.opt.gravity, (3,), ""),
        ("opt.wind", sys.opt.wind, (3,), ""),
        ("opt.density", sys.opt.density, (), ">= 0"),
        ("opt.viscosity", sys.opt.viscosity, (), ">= 0"),
        ("opt.impratio", sys.opt.impratio, (), "> 0"),
        ("link.inertia.mass", sys.link.inertia.mass, (n,), "> 0"),
        ("link.inertia.i", sys.link.inertia.i, (n, 3), "> 0"),
        ("link.gravcomp", sys.link.gravcomp, (n,), ""),
        ("link.gravcomp_arm", sys.link.gravcomp_arm, (n, 3), ""),
        ("box.mass", sys.box.mass, (len(sys.box_link),), "> 0"),
        ("box.i", sys.box.i, (len(sys.box_link), 3), ">= 0"),
        ("init_q", sys.init_q, (nq,), ""),
        ("dof.armature", sys.dof.armature, (nv,), ">= 0"),
        ("dof.damping", sys.dof.damping, (nv,), ">= 0"),
        ("dof.stiffness", sys.dof.stiffness, (nv,), ">= 0"),
        ("dof.frictionloss", sys.dof.frictionloss, (nv,), ">= 0"),
        ("dof.solref", sys.dof.solref, (nv, 2), ""),
        ("dof.solimp", sys.dof.solimp, (nv, 5), ""),
        ("joint.solref", sys.joint.solref, (nj, 2), ""),
        ("joint.solimp", sys.joint.solimp, (nj, 5), ""),
        ("joint.margin", sys.joint.margin, (nj,), ""),
        ("site.size", sys.site.size, (len(sys.site_names), 3), ">= 0"),
        ("ref", sys.ref, (nq,), ""),
        ("heights", sys.heights, (sum(r * c for r, c in sys.geom_grid),), ""),
        ("geom.size", sys.geom.size, (ng, 3), ">= 0"),
        ("geom.friction", sys.geom.friction, (ng, 3), ">= 0"),
        ("geom.elasticity", sys.geom.elasticity, (ng,), ">= 0"),
        ("geom.solref", sys.geom.solref, (ng, 2), ""),
        ("geom.solimp", sys.geom.solimp, (ng, 5), ""),
        ("geom.solmix", sys.geom.solmix, (ng,), ">= 0"),
        ("geom.margin", sys.geom.margin, (ng,), ""),
        ("geom.gap", sys.geom.gap, (ng,), ">= 0"),
        ("geom.fluid", sys.geom.fluid, (ng, 11), ""),
        ("pair.friction", sys.pair.friction, (len(sys.pair_names), 5), ">= 0"),
        ("pair.solref", sys.pair.solref, (len(sys.pair_names), 2), ""),
        ("pair.solimp", sys.pair.solimp, (len(sys.pair_names), 5), ""),
        ("pair.margin", sys.pair.margin, (len(sys.pair_names),), ""),
        ("pair.gap", sys.pair.gap, (len(sys.pair_names),), ">= 0"),
        ("tendon.coef", sys.tendon.coef, (sum(map(len, sys.tendon_joints)),), ""),
        ("tendon.share", sys.tendon.share, (sum(map(len, sys.tendon_path)),), ""),
        ("tendon.length0", sys.tendon.length0, (nt,), ""),
        ("tendon.stiffness", sys.tendon.stiffness, (nt,), ">= 0"),
        ("tendon.damping", sys.tendon.damping, (nt,), ">= 0"),
        ("tendon.lengthspring", sys.tendon.lengthspring, (nt, 2), ""),
        ("tendon.margin", sys.tendon.margin, (nt,), ""),
        ("tendon.solref_limit", sys.tendon.solref_limit, (nt, 2), ""),
        ("tendon.solimp_limit", sys.tendon.solimp_limit, (nt, 5), ""),
        ("tendon.frictionloss", sys.tendon.frictionloss, (nt,), ">= 0"),
        ("tendon.solref_friction", sys.tendon.solref_friction, (nt, 2), ""),
        ("tendon.solimp_friction", sys.tendon.solimp_friction, (nt, 5), ""),
        ("equality.data", sys.equality.data, (ne, 11), ""),
        ("equality.solref", sys.equality.solref, (ne, 2), ""),
        ("equality.solimp", sys.equality.solimp, (ne, 5), ""),
        ("actuator.gear", sys.actuator.gear, (nu,), ""),
        ("actuator.wrench", sys.actuator.wrench, (nu, 6), ""),
        ("actuator.gainprm", sys.actuator.gainprm, (nu, 10), ""),
        ("actuator.biasprm", sys.actuator.biasprm, (nu, 10), ""),
        ("actuator.dynprm", sys.actuator.dynprm, (nu, 10), ""),
        ("actuator.length_range", sys.actuator.length_range, (nu, 2), ""),
        ("camera.fovy", sys.camera.fovy, (len(sys.camera_names),), "> 0"),
        ("keyframes.q", sys.keyframes.q, (nk, nq), ""),
        ("keyframes.qd", sys.keyframes.qd, (nk, nv), ""),
        ("keyframes.ctrl", sys.keyframes.ctrl, (nk, nu), ""),
        ("vel_damping", sys.vel_damping, (), "<= 0"),
        ("ang_damping", sys.ang_damping, (), "<= 0"),
    ]
    problems = [p for row in table if (p := _leaf_problem(*row))]
    # The checks below read leaves by their shapes, so they run only if all shapes are right.
    problems += [] if problems else _without_effect(sys)
    problems += [
        f"the model has {feature}, which this pipeline does not compute; take it out, or choose "
        "another pipeline"
        for feature in lacks
        if not problems and FEATURES[feature](sys)
    ]
    if problems:
        raise ModelError.of([f"{function}: {p}" for p in problems])


def _without_effect(sys: System) -> Iterator[str]:
    """Yield a problem for each number that the model's structure ignores.

    `System.replace` and `tree_replace` change the structure together with the numbers.
    """
    joint, tendon = list(sys.dof_joint()), sys.tendon
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
        ("tendon.frictionloss", tendon.frictionloss, _flags(sys.tendon_dry), "dry friction of it"),
        ("tendon.limit", _finite(tendon.limit), _flags(sys.tendon_limited), "limits of it"),
        ("joint.margin", sys.joint.margin, _flags(sys.joint_two_sided), "margins of limits"),
        ("tendon.margin", tendon.margin, _flags(sys.tendon_two_sided), "margins of limits"),
        *(("pair.friction", x, _flags(sys.pair_uneven), "uneven friction") for x in uneven),
        ("link.gravcomp", sys.link.gravcomp, _flags(weight), "gravity compensation"),
        ("opt.density", sys.opt.density, _flags(fluid), "a medium"),
        ("opt.viscosity", sys.opt.viscosity, _flags(fluid), "a medium"),
    ]
    for name, value, built, what in table:
        if _is_known_nonzero(value, ~np.broadcast_to(built, np.shape(value))):
            yield (
                f"system leaf '{name}' says something that has no effect, because the model was "
                f"built without {what}; change it by `sys.tree_replace({{'{name}': ...}})` or "
                "`sys.replace`, which build that in, or build the model with it"
            )


def _flags(flags: Any) -> np.ndarray:
    """Return flags as an array of booleans."""
    return np.array(flags, bool)


def _finite(bounds: Any) -> Any:
    """Return where either of two bounds is finite; false for bounds that are traced."""
    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(bounds)):
        return np.zeros(np.shape(bounds[0]), bool)
    return np.isfinite(np.asarray(bounds[0])) | np.isfinite(np.asarray(bounds[1]))


def _is_known_nonzero(value: Any, where: Any = True) -> bool:
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
    good = {
        "": known == known,
        "> 0": known > 0,
        ">= 0": known >= 0,
        "<= 0": known <= 0,
    }[allowed] & np.isfinite(known)
    if good.all():
        return None
    return f"system leaf '{name}' must be finite{allowed and f' and {allowed}'}, got {known[~good]}"
