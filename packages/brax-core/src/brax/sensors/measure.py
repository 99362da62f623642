"""All sensors of a model at a state."""

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import Force, State, System
from brax.batch_last import batch_last
from brax.components import rows
from brax.contracts import check_step
from brax.generalized.pipeline import GENERALIZED
from brax.mocap import placed
from brax.pipeline import completed
from brax.sensors.here import Here
from brax.sensors.interface import Asked


def sensors(sys: System, state: State, act: jax.Array, external: Force | None = None) -> jax.Array:
    """What the sensors of a model say, MuJoCo's `sensordata`; `slices` has their places.

    Positions and velocities are those of `state.q` and `state.qd`. Forces and accelerations are
    those that the generalized pipeline finds there, whichever pipeline moves the model.

    Args:
        sys: the model.
        state: from `init` or `step`.
        act: controls, shape (nu,).
        external: torque and force on each link, as in `step`.

    Returns:
        The numbers of all sensors, in the model's order, shape (n,).

    Raises:
        ShapeError: if an array does not fit the model.
    """
    check_step("sensors", sys, state, act, external)
    if not sys.sensor_names:
        return jnp.zeros(0, state.q.dtype)
    state = completed(sys, state).replace(contact=None)
    return _measure(sys, state, jnp.asarray(act), external)


def slices(sys: System) -> dict[str, slice]:
    """Where each sensor's numbers are in the array of `sensors`, by its name."""
    ends = np.cumsum([t.width for t in sys.sensor_types]).tolist()
    widths = [t.width for t in sys.sensor_types]
    return {
        name: slice(end - width, end)
        for name, end, width in zip(sys.sensor_names, ends, widths, strict=True)
    }


def _kernel(sys: System, state: State, act: jax.Array, external: Force | None) -> jax.Array:
    problem = GENERALIZED.problem(placed(sys, state.mocap), act, external)
    here = Here(problem, GENERALIZED.enter(problem, state))
    found, order = [], []
    for kind in dict.fromkeys(sys.sensor_types):
        index = [i for i, t in enumerate(sys.sensor_types) if t is kind]
        asked = Asked(
            [sys.sensor_object[i] for i in index], [sys.sensor_reference[i] for i in index]
        )
        read = kind.read(here, asked)
        if kind.limited:
            bound = rows(sys.sensor.cutoff, index)[:, None]
            read = jnp.clip(read, -bound, bound)
        found.append(jnp.broadcast_to(read, (*read.shape[:-1], act.shape[-1])))
        order += index
    places = np.argsort(order).tolist()
    numbers = [table[k] for table in found for k in range(len(table))]
    return jnp.concatenate([numbers[k] for k in places])


_measure = batch_last(_kernel, full=(1, 2))
