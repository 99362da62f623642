"""`check_sensor`: verifies that a sensor type follows the interface of `brax.sensors`."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from brax.base import System
from brax.errors import BraxError
from brax.generalized.pipeline import GENERALIZED
from brax.sensors import SensorType
from brax.sensors.measure import sensors
from brax.testing.faults import in_turn, interface, outputs, raise_problems


def check_sensor(kind: SensorType, system: System) -> None:
    """Check one sensor type, on a model that has sensors of it.

    It must return as many finite numbers as its width says, at the model's start and in motion. A
    batch of two must be read as two single ones.

    Args:
        kind: the sensor type.
        system: a model with at least one sensor of the type.

    Raises:
        PluginError: naming everything that is wrong.
    """
    problems = in_turn(
        kind, interface("sensor"), outputs("sensor"), lambda kind: _numbers(kind, system)
    )
    raise_problems(kind, "sensors", problems)


def _numbers(kind: SensorType, sys: System) -> Iterator[str]:
    """Yield the problems of a sensor's numbers at the start, at rest and in motion."""
    if kind not in sys.sensor_types:
        yield "the model has no sensor of this type: add one with add_sensor"
        return

    def read(rate: jax.Array) -> jax.Array:
        state = GENERALIZED.init(sys, sys.init_q, jnp.full(sys.qd_size(), rate))
        return sensors(sys, state, jnp.zeros(sys.act_size()))

    # At rest and in motion, by one compiled program.
    rates = jnp.array([0.0, 0.3])
    try:
        single = np.stack([jax.jit(read)(rate) for rate in rates])
        both = np.asarray(jax.jit(jax.vmap(read))(rates))
    except BraxError as error:
        yield str(error)
        return
    if not np.isfinite(single).all():
        yield "read returns numbers that are not finite"
    elif not np.allclose(single, both, atol=1e-4, rtol=1e-4):
        yield "read returns other numbers in a batch: its operations mix environments"
