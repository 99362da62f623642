"""Measurement: all sensors of a model at a state."""

import jax
import jax.numpy as jnp
import numpy as np

from brax import plugins
from brax.base import Force, State, System
from brax.components import rows
from brax.contracts import check_step
from brax.errors import BraxError, ModelError, PluginError, describe_error
from brax.generalized.pipeline import GENERALIZED
from brax.kernels.batch_last import batch_last
from brax.mocap import placed
from brax.pipeline import completed
from brax.plugins.outputs.traced import describe
from brax.sensors.evaluation_context import EvaluationContext
from brax.sensors.interface import Asked, SensorType


def sensors(sys: System, state: State, act: jax.Array, external: Force | None = None) -> jax.Array:
    """Return the numbers of all sensors, MuJoCo's `sensordata`; `slices` gives their places.

    Positions and velocities are those of `state.q` and `state.qd`. Forces and accelerations are
    means over the last step, `state.forces`, if the state has them: states of `spring` and
    `positional` do, for models with a sensor that reads them. Otherwise they are those that the
    generalized pipeline computes at the state, as MuJoCo does. So are the forces that `touch` reads
    of states of `generalized` with a broad phase, whose lists of contacts change in each step.

    Args:
        sys: the model.
        state: a state from `init` or `step`.
        act: controls, shape (nu,).
        external: torque and force on each link [N m, N], as in `step`, shape (n_links, ...).

    Returns:
        The numbers of all sensors, in the model's order, shape (n,).

    Raises:
        ShapeError: if an array does not fit the model.
    """
    act = check_step("sensors", sys, state, act, 1, external)
    if not sys.sensor_names:
        return jnp.zeros(0, state.q.dtype)
    # The contacts of the state are not read, and need not be carried through the kernel.
    state = completed(sys, state).replace(contact=None)
    return _measure(sys, state, act, external)


def slices(sys: System) -> dict[str, slice]:
    """Return the slice of each sensor, by its name, in the array of `sensors`."""
    ends = np.cumsum([t.width for t in sys.sensor_types]).tolist()
    widths = [t.width for t in sys.sensor_types]
    return {
        name: slice(end - width, end)
        for name, end, width in zip(sys.sensor_names, ends, widths, strict=True)
    }


def _kernel(sys: System, state: State, act: jax.Array, external: Force | None) -> jax.Array:
    """Return the numbers of all sensors, on arrays with a trailing batch axis."""
    problem = GENERALIZED.problem(placed(sys, state.mocap), act, external)
    context = EvaluationContext(
        problem, GENERALIZED.enter(problem, state.replace(forces=None)), state.forces
    )
    found, order = [], []
    for kind in dict.fromkeys(sys.sensor_types):
        index = [i for i, t in enumerate(sys.sensor_types) if t is kind]
        asked = Asked(
            [sys.sensor_object[i] for i in index], [sys.sensor_reference[i] for i in index]
        )
        read = _read(kind, context, asked)
        if kind.limited:
            bound = rows(sys.sensor.cutoff, index)[:, None]
            read = jnp.clip(read, -bound, bound)
        # A sensor of constants only may return a batch axis of size one.
        found.append(jnp.broadcast_to(read, (*read.shape[:-1], act.shape[-1])))
        order += index
    # The numbers are computed by type, and sorted back into the model's order.
    places = np.argsort(order).tolist()
    numbers = [table[k] for table in found for k in range(len(table))]
    return jnp.concatenate([numbers[k] for k in places])


def _read(kind: SensorType, context: EvaluationContext, asked: Asked) -> jax.Array:
    """Return the numbers of the sensors of a type.

    Raises:
        PluginError: if the type fails, or returns an array of the wrong shape.
    """
    who = plugins.specs("sensor").get(kind.name, f"sensor '{kind.name}'")
    try:
        read = kind.read(context, asked)
    except BraxError:
        raise
    except Exception as error:
        raise PluginError(f"{who}: read raised {describe_error(error)}") from error
    wanted = (len(asked.objects), kind.width)
    if not hasattr(read, "shape") or read.ndim != 3 or read.shape[:2] != wanted:
        got = describe(read).replace(str(context.q.shape[-1]), "batch")
        raise PluginError(
            f"{who}: read must return an array of shape (sensors, width, batch), here "
            f"[{wanted[0]}, {wanted[1]}, batch], but returns {got}"
        )
    return read


_measure = batch_last(_kernel, full=(1, 2))


def check_reads(sys: System) -> None:
    """Read the sensors of third-party types once, by shapes only.

    Raises:
        PluginError: if one of them fails, or returns another number of values than its width.
    """
    new = {
        kind
        for kind in sys.sensor_types
        if (found := plugins.specs("sensor").get(kind.name)) and not found.ours
    } - _checked_sensor_types
    if new:
        try:
            state = jax.eval_shape(GENERALIZED.init, sys, sys.init_q, jnp.zeros(sys.qd_size()))
        except ModelError:  # `sensors` rejects the model for the same reason
            return
        jax.eval_shape(sensors, sys, state, jnp.zeros(sys.act_size()))
        _checked_sensor_types.update(new)


_checked_sensor_types: set[SensorType] = set()
"""Types whose numbers passed the check."""
