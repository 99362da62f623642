"""Forces of a model's actuators along its degrees of freedom."""

import jax
import jax.numpy as jnp

from brax.base import System
from brax.contracts import check_model, check_vector
from brax.generalized.pipeline import GENERALIZED
from brax.generalized.problem import StepState
from brax.kernels.batch_last import batch_last
from brax.sensors.evaluation_context import EvaluationContext


def to_tau(sys: System, act: jax.Array, q: jax.Array, qd: jax.Array) -> jax.Array:
    """Return the forces of all actuators at given controls, as the pipelines apply them.

    Activations are zero, as at the start of an episode.

    Args:
        sys: the model.
        act: controls, shape (nu,), which are clipped to their ranges.
        q: joint coordinates [rad or m], shape (nq,).
        qd: joint velocities [rad/s or m/s], shape (nv,).

    Returns:
        Joint forces [N or N m], MuJoCo's `qfrc_actuator`, shape (nv,).

    Raises:
        ModelError: if `sys` is not a system.
        ShapeError: if an array does not fit the model.
    """
    check_model("to_tau", sys)
    act = check_vector("to_tau", "act", act, sys.act_size(), "actuators")
    q = check_vector("to_tau", "q", q, sys.q_size(), "coordinates")
    qd = check_vector("to_tau", "qd", qd, sys.qd_size(), "degrees of freedom")
    if not sys.actuator_names:
        return jnp.zeros_like(qd)
    return _to_tau(sys, act, q, qd)


@batch_last
def _to_tau(sys: System, act: jax.Array, q: jax.Array, qd: jax.Array) -> jax.Array:
    """Return the forces, for arrays with a trailing batch axis."""
    resting = [jnp.zeros_like(q[:1])] * len(sys.stateful_actuators())
    motion = StepState(q, qd, jnp.zeros_like(qd), jnp.concatenate(resting) if resting else None)
    return EvaluationContext(GENERALIZED.problem(sys, act, None), motion).actuator_force
