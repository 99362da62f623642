"""Checks of the arguments of public functions, made while JAX traces them."""

import numbers
import operator
from collections.abc import Callable
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from brax.actuators.actuator_forces import acts_on_links
from brax.base import Force, State, System, Transform
from brax.colliders.broad_phase import uses_broad_phase
from brax.errors import ConfigError, ModelError, ShapeError
from brax.system_leaves import ignored_numbers, is_known_nonzero, leaf_problems


def check_vector(function: str, name: str, value: object, size: int, what: str) -> jax.Array:
    """Return an argument as floats, if it is a vector of numbers of the model's size.

    Raises:
        ShapeError: naming the function, the argument, what was expected and what came.
    """
    try:
        # Lists of numbers are accepted as well.
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
    if jnp.issubdtype(value.dtype, jnp.floating):
        return value
    if jnp.issubdtype(value.dtype, jnp.integer):
        return value.astype(float)
    raise ShapeError(f"{function}: argument '{name}' has dtype {value.dtype}; expected a float.")


def check_model(function: str, sys: object) -> None:
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


def _described(value: object) -> str:
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
    # A state of another system and a missing `jax.vmap`, the usual mistakes, both show in this
    # shape.
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
    function: str, sys: System, state: State, act: object, n_frames: object, external: Force | None
) -> jax.Array:
    """Check the arguments of a step: model, state, controls, their duration and external forces.

    Returns:
        The controls, as floats.

    Raises:
        ConfigError: if `n_frames` is not a fixed integer of at least 1.
        ModelError: if `sys` is not a system.
        ShapeError: naming the function, what was expected and what came.
    """
    check_model(function, sys)
    check_frames(function, n_frames)
    act = check_vector(function, "act", act, sys.act_size(), "actuators")
    check_state(function, sys, state)
    check_external(function, sys, external)
    return act


DEFAULT_SWEEPS = 4
"""Sweeps of `spring` and `positional` over contacts and limits, unless a model sets them."""

DEFAULT_BAUMGARTE_ERP = 0.1
"""Share of a penetration that a step of `spring` takes back, unless a model sets it."""

UNTESTED_CONTACTS = "more candidate pairs than are tested (max_geom_pairs, max_contact_points)"
TIME_OF_IMPACT = "impacts at their time within a step (time_of_impact)"
SOFTNESS = "soft contacts, limits, dry friction and equality constraints (solref, solimp, margin)"
PYRAMID = "pyramidal friction cones"
ELASTICITY = "elasticity"
DAMPING = "damping of velocities (vel_damping, ang_damping)"
BAUMGARTE = "another share of a penetration that a step corrects (baumgarte_erp)"
SWEEPS = "another number of sweeps over contacts and limits (sweeps)"
EXPLICIT_DAMPING = "explicit damping of joints (the flag eulerdamp)"
IMPEDANCE_RATIO = "friction stiffer than the normal force (impratio)"
SITE_LIMITS = (
    "bounds of a joint's actuators (actuatorfrcrange) together with actuators on sites, ball or "
    "free joints, or spatial tendons"
)

TORSIONAL_FRICTION = "torsional and rolling friction (condim 4 and 6)"
ANISOTROPIC_FRICTION = "pairs whose friction differs between the two tangents"
TENDON_EQUALITIES = "equality constraints between tendons"
TENDON_LIMITS = "limits and dry friction of tendons"
MOCAP_JOINTS = "joints on mocap bodies"
ADHESION = "adhesion (actuators of a body)"
ADHESION_LIMITS = "bounds of a joint's actuators (actuatorfrcrange) together with adhesion"


GRAVCOMP_LIMITS = "bounds of a joint's actuators (actuatorfrcrange) that bear gravity compensation"
ADHESIVE_SURFACES = "adhesion of geoms"
MOVING_SURFACES = "moving surfaces of geoms (surfacevel)"
POLYNOMIAL_JOINTS = "polynomial stiffness or damping of joints"
TENDON_ARMATURE = "armature of tendons"
FREE_JOINT_RESISTANCE = "damping, dry friction or armature of a free joint"


def _has_free_joint_resistance(sys: System) -> bool:
    """Return whether resistance of a free joint's degrees of freedom is known not to be zero."""
    free = np.array([sys.joint_types[j].qd_width == 6 for j in sys.dof_joint()], bool)
    tables = sys.dof.damping, sys.dof.frictionloss, sys.dof.armature
    return bool(free.any()) and any(is_known_nonzero(table, free) for table in tables)


FEATURES: dict[str, Callable[[System], bool]] = {
    UNTESTED_CONTACTS: uses_broad_phase,
    TIME_OF_IMPACT: lambda s: s.opt.time_of_impact,
    # Everything that has a `solref` and a `solimp`.
    SOFTNESS: lambda s: (
        bool(s.collisions or s.equality_names) or any(s.joint_limited) or any(s.joint_dry)
    ),
    # A contact without friction (condim 1) has no cone.
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
        and (acts_on_links(s) or any(t >= 0 and s.tendon_path[t] for t in s.actuator_tendon))
    ),
    GRAVCOMP_LIMITS: lambda s: (
        s.opt.enable_gravcomp
        and any(map(operator.and_, s.joint_actuator_limited, s.joint_actuator_gravcomp))
    ),
    ADHESIVE_SURFACES: lambda s: any(s.geom_adhesive) or any(s.pair_adhesive),
    MOVING_SURFACES: lambda s: any(s.geom_moving),
    POLYNOMIAL_JOINTS: lambda s: any(s.joint_polynomial),
    TENDON_ARMATURE: lambda s: any(s.tendon_rotor),
    FREE_JOINT_RESISTANCE: _has_free_joint_resistance,
    DAMPING: lambda s: bool(np.any(s.vel_damping) or np.any(s.ang_damping)),
    BAUMGARTE: lambda s: not np.allclose(s.baumgarte_erp, DEFAULT_BAUMGARTE_ERP),
    SWEEPS: lambda s: s.opt.sweeps != DEFAULT_SWEEPS,
    EXPLICIT_DAMPING: lambda s: not s.opt.eulerdamp,
    IMPEDANCE_RATIO: lambda s: not np.allclose(s.opt.impratio, 1),
}
"""Features of models that a pipeline may lack or approximate, each with a test for it."""

NOT_IN_MAXIMAL = (
    MOCAP_JOINTS,
    ADHESION,
    ADHESION_LIMITS,
    GRAVCOMP_LIMITS,
    ADHESIVE_SURFACES,
    MOVING_SURFACES,
    POLYNOMIAL_JOINTS,
    TENDON_ARMATURE,
    FREE_JOINT_RESISTANCE,
)
"""Features that the pipelines in maximal coordinates do not compute."""

APPROXIMATE_IN_MAXIMAL = {
    SOFTNESS: "they are hard",
    PYRAMID: "friction cones are round",
    TORSIONAL_FRICTION: "each is bounded separately, whether or not the contact slides",
    EXPLICIT_DAMPING: "it has no effect; the damping of joints is always implicit",
    IMPEDANCE_RATIO: "it has no effect; contacts are hard",
}
"""Features that the pipelines in maximal coordinates approximate, and how."""

APPROXIMATE_IN_MUJOCOS = {
    ELASTICITY: "it has no effect; the softness of contacts takes its place",
    DAMPING: "it has no effect; joints have their own",
    BAUMGARTE: "it has no effect; solref takes its place",
    SWEEPS: "it has no effect; iterations takes its place",
}
"""Features that the pipelines with MuJoCo's soft constraints approximate, and how."""


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
    problems = leaf_problems(sys)
    # The structure is compared with numbers of the right shapes only.
    problems += [] if problems else ignored_numbers(sys)
    # The tests of features read leaves too, so they run only if all leaves are sound.
    problems += [
        f"the model has {feature}, which this pipeline does not compute; take it out, or choose "
        "another pipeline"
        for feature in lacks
        if not problems and FEATURES[feature](sys)
    ]
    if problems:
        raise ModelError.of([f"{function}: {p}" for p in problems])
