"""Tendons: from checked elements to the arrays of a `System`."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from brax.actuators import tendons as actual
from brax.base import System, Tendon
from brax.builder.arrays.columns import array, bounds, column
from brax.builder.elements import Element
from brax.kinematics import link_frames


def tendon_numbers(tendons: Sequence[Element], joints: Sequence[Element]) -> Tendon:
    """Return the numbers of all tendons, but for those that depend on the model at rest.

    `with_tendon_lengths` fills these in. A spring without a `lengthspring` of its own is at rest
    where the springs of the tendon's joints are.
    """
    # Joints of tendons have one degree of freedom, and so one number, alone or in a vector.
    springref = {j.name: np.ravel(j.springref)[0] for j in joints}
    rest = []
    for t in tendons:
        # MuJoCo's `springlength` is by default the length at `qpos_spring`.
        length = sum(coef * springref[joint] for joint, coef in t.joints.items())
        rest.append((length, length) if t.lengthspring is None else t.lengthspring)
    lower, upper = bounds(tendons, "range").T
    return Tendon(
        coef=array([coef for t in tendons for coef in t.joints.values()], (-1,)),
        share=array([s.share for t in tendons for s in t.path], (-1,)),
        length0=array(np.zeros(len(tendons)), (-1,)),
        stiffness=column(tendons, "stiffness", 1)[:, 0],
        damping=column(tendons, "damping", 1)[:, 0],
        stiffness_poly=column(tendons, "stiffness_poly", 2),
        damping_poly=column(tendons, "damping_poly", 2),
        armature=column(tendons, "armature", 1)[:, 0],
        lengthspring=array(rest, (len(tendons), 2)),
        limit=(lower, upper),
        margin=column(tendons, "margin", 1)[:, 0],
        solref_limit=column(tendons, "solref_limit", 2),
        solimp_limit=column(tendons, "solimp_limit", 5),
        actuator_range=bounds(tendons, "actuator_range"),
        frictionloss=column(tendons, "frictionloss", 1)[:, 0],
        solref_friction=column(tendons, "solref_friction", 2),
        solimp_friction=column(tendons, "solimp_friction", 5),
        invweight=array(np.zeros(len(tendons)), (-1,)),
    )


def with_tendon_lengths(sys: System, rest: np.ndarray, tendons: Sequence[Element]) -> System:
    """Return the system with the tendons' lengths at rest and the spatial tendons' spring lengths.

    Args:
        sys: the model.
        rest: its coordinates at rest (nq,).
        tendons: as they were described.
    """
    if not tendons:
        return sys
    sprung = np.array(rest, float)
    starts = sys.joint_q_start(), sys.joint_qd_start()
    for kind, q, dof in zip(sys.joint_types, *starts, strict=True):
        if kind.is_plain:
            width = kind.q_width
            sprung[q : q + width] = sys.dof.springref[dof : dof + width]
    bare = np.array([bool(t.path) and t.lengthspring is None for t in tendons])
    # A spatial tendon's length is no weighted sum of coordinates: it needs the frames of the links,
    # and so the assembled system.
    spring = np.where(bare, _lengths(sys, sprung), sys.tendon.lengthspring.T).T
    numbers = dict(length0=array(_lengths(sys, rest), (-1,)), lengthspring=array(spring, (-1, 2)))
    return sys.replace(tendon=sys.tendon.replace(**numbers))


@jax.jit
def _lengths(sys: System, q: np.ndarray) -> jax.Array:
    """Return the lengths of all tendons at coordinates (nq,)."""
    # The functions of `brax.actuators` expect a trailing batch axis; here it has size one.
    lined = jax.tree.map(lambda a: a[..., None], sys)
    at, still = jnp.asarray(q)[:, None], jnp.zeros((sys.qd_size(), 1))
    return actual.tendons_at_state(lined, at, still, link_frames(lined, at, still)).length[:, 0]
